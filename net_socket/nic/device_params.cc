#include "net_socket/nic/device_params.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "nccl/plugin_api.h"

namespace tcpx {
namespace {

std::string Names(const std::vector<FuseCandidate>& all) {
  return absl::StrJoin(all, ", ", [](std::string* out, const FuseCandidate& one) { out->append(one.interface.name); });
}

// "eth1 (10.0.0.1), eth2 (fd00::1 and 10.0.2.1)".
std::string WithAddresses(const std::vector<FuseCandidate>& members) {
  return absl::StrJoin(members, ", ", [](std::string* out, const FuseCandidate& one) {
    absl::StrAppend(out, one.interface.name, " (", one.interface.address.HostString(),
                    one.other.has_value() ? absl::StrCat(" and ", one.other->address.HostString()) : "", ")");
  });
}

bool AllHave(const std::vector<FuseCandidate>& members, int family) {
  return std::all_of(members.begin(), members.end(), [family](const FuseCandidate& one) {
    return one.interface.address.family() == family || (one.other.has_value() && one.other->address.family() == family);
  });
}

int Find(const std::vector<FuseCandidate>& chosen, absl::string_view name) {
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i].interface.name == name) return static_cast<int>(i);
  }
  return -1;
}

// The group's members; on failure `*reason` says why there are none.
std::vector<int> ReadGroup(absl::string_view group, const std::vector<FuseCandidate>& chosen,
                           const std::vector<bool>& taken, std::string* reason) {
  std::vector<int> members;
  std::vector<FuseCandidate> candidates;
  for (absl::string_view name : absl::StrSplit(group, '+')) {
    const int found = Find(chosen, name);
    if (found < 0) {
      *reason = absl::StrCat("'", name, "' is not among the interfaces in use (", Names(chosen),
                             "): correct the name, or let NCCL_SOCKET_IFNAME choose it too");
      return {};
    }
    if (taken[static_cast<size_t>(found)]) {
      *reason = absl::StrCat("'", name, "' is in another group already");
      return {};
    }
    members.push_back(found);
    candidates.push_back(chosen[static_cast<size_t>(found)]);
  }
  *reason = members.size() < 2 ? "a group is two interfaces or more, such as eth1+eth2" : WhyNotFused(candidates);
  return reason->empty() ? members : std::vector<int>();
}

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

std::string WhyNotFused(const std::vector<FuseCandidate>& members) {
  if (members.size() > static_cast<size_t>(kNicsMax)) {
    return absl::StrCat(members.size(), " interfaces are too many: a device has ", kNicsMax, " at most");
  }
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string& name = members[i].interface.name;
    if (Find(members, name) != static_cast<int>(i)) return absl::StrCat("'", name, "' is there twice");
  }
  if (FamilyOfAll(members) != 0) return "";
  return absl::StrCat(WithAddresses(members),
                      " have addresses of no common family: give each of them an IPv4 address, or each an IPv6 address "
                      "that reaches beyond its link");
}

int FamilyOfAll(const std::vector<FuseCandidate>& members) {
  if (members.empty()) return 0;
  for (const std::optional<Interface>& each : {std::optional<Interface>(members[0].interface), members[0].other}) {
    if (each.has_value() && AllHave(members, each->address.family())) return each->address.family();
  }
  return 0;
}

std::vector<std::vector<int>> PlanFusion(const std::string& spec, const std::vector<FuseCandidate>& chosen,
                                         std::vector<std::string>* warnings) {
  std::vector<bool> taken(chosen.size(), false);
  std::vector<std::vector<int>> devices;
  for (absl::string_view group : absl::StrSplit(spec, ',', absl::SkipEmpty())) {
    std::string reason;
    std::vector<int> members = ReadGroup(group, chosen, taken, &reason);
    if (members.empty()) {
      warnings->push_back(absl::StrCat("TCPX_FUSE: ", group, " is not fused: ", reason));
      continue;
    }
    for (int member : members) taken[static_cast<size_t>(member)] = true;
    devices.push_back(std::move(members));
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!taken[i]) devices.push_back({static_cast<int>(i)});
  }
  std::sort(devices.begin(), devices.end(), [](const std::vector<int>& a, const std::vector<int>& b) {
    return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
  });
  return devices;
}

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
