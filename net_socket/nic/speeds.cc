#include "net_socket/nic/speeds.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tcpx {
namespace {

// A hundred times what cards have today.
constexpr int kSpeedMax = 100000000;

struct Entry {
  absl::string_view name;  // empty: every interface
  int speed_mbps = 0;      // 0: not a speed
};

Entry ReadEntry(absl::string_view text) {
  Entry entry;
  const size_t equals = text.rfind('=');
  if (equals != absl::string_view::npos) entry.name = text.substr(0, equals);
  const absl::string_view number = equals == absl::string_view::npos ? text : text.substr(equals + 1);
  const bool named = equals == absl::string_view::npos || !entry.name.empty();
  int speed = 0;
  if (named && absl::SimpleAtoi(number, &speed) && speed > 0 && speed <= kSpeedMax) entry.speed_mbps = speed;
  return entry;
}

}  // namespace

bool OverrideSpeed(const std::string& spec, const std::string& name, InterfaceHardware* hardware) {
  int speed = 0;
  bool exact = false;
  for (absl::string_view text : absl::StrSplit(spec, ',', absl::SkipWhitespace())) {
    const Entry entry = ReadEntry(text);
    if (entry.speed_mbps == 0 || (!entry.name.empty() && entry.name != name)) continue;
    if (exact && entry.name.empty()) continue;
    exact = !entry.name.empty();
    speed = entry.speed_mbps;
  }
  if (speed == 0) return false;
  hardware->speed_mbps = speed;
  hardware->speed_source = SpeedSource::kParameter;
  return true;
}

std::vector<std::string> CheckSpeeds(const std::string& spec, const std::vector<Interface>& chosen) {
  std::vector<std::string> warnings;
  for (absl::string_view text : absl::StrSplit(spec, ',', absl::SkipWhitespace())) {
    const Entry entry = ReadEntry(text);
    const auto is_named = [&](const Interface& one) { return one.name == entry.name; };
    if (entry.speed_mbps == 0) {
      warnings.push_back(absl::StrCat("TCPX_SPEED_MBPS: '", text, "' is left out: allowed are a speed of 1 to ",
                                      kSpeedMax, " Mbit/s for all interfaces, or one for each, eth0=100000"));
    } else if (!entry.name.empty() && std::none_of(chosen.begin(), chosen.end(), is_named)) {
      warnings.push_back(absl::StrCat("TCPX_SPEED_MBPS: '", text, "': ", entry.name,
                                      " is not among the interfaces in use: correct the name, or let "
                                      "NCCL_SOCKET_IFNAME choose it too"));
    }
  }
  return warnings;
}

const char* SpeedOrigin(const InterfaceHardware& hardware) {
  // By SpeedSource.
  constexpr const char* kOrigins[] = {" (from the kernel)", " (from the kernel, which can't know the real card)",
                                      " (assumed: the kernel knows none)", " (TCPX_SPEED_MBPS)"};
  return kOrigins[static_cast<int>(hardware.speed_source)];
}

}  // namespace tcpx
