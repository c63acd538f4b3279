#include "tests/support/plugin_mode.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "net_socket/engine/engine.h"
#include "tests/support/own_network.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

Mode WithLanes(const Mode& driver, int lanes, int family) {
  Mode mode = driver;
  mode.lanes = lanes;
  mode.family = family;
  return mode;
}

}  // namespace

Environment Mode::Variables() const {
  Environment all = environment;
  // What is there stays.
  all.insert({{"TCPX_THREADS", absl::StrCat(threads)},
              {"TCPX_ENGINE", engine},
              {"TCPX_LANES", absl::StrCat(lanes)},
              {"NCCL_SOCKET_IFNAME", "lo"},
              {"NCCL_SOCKET_FAMILY", family == AF_INET6 ? "AF_INET6" : "AF_INET"}});
  return all;
}

void Mode::Apply() const {
  for (const auto& [name, value] : Variables()) setenv(name.c_str(), value.c_str(), 1);
}

std::string Mode::ReasonToSkip() const {
  if (family == AF_INET6 && !InOwnNetwork()) {
    return "no network namespace, so no IPv6 address that NCCL's rules accept";
  }
  std::string reason;
  const bool rings = threads > 0 && engine == "io_uring";
  if (!rings || ProbeEngine(EngineChoice::kIoUring, &reason) == EngineChoice::kIoUring) return "";
  return "no io_uring: " + reason;
}

std::string Mode::Describe(char separator) const {
  const std::string mode = threads == 0 ? "caller" : absl::StrCat(engine, " ", threads);
  std::string text = absl::StrCat(mode, " lanes ", lanes, family == AF_INET6 ? " IPv6" : " IPv4");
  if (version != 0) absl::StrAppend(&text, " v", version);
  if (environment.count("TCPX_ZEROCOPY") != 0) absl::StrAppend(&text, " zero copy ", environment.at("TCPX_ZEROCOPY"));
  std::replace(text.begin(), text.end(), ' ', separator);
  return text;
}

std::string Mode::ShortName() const {
  const std::string driver = threads == 0 ? "caller" : engine == "io_uring" ? "uring" : engine;
  const char* const copies = environment.count("TCPX_ZEROCOPY") != 0 ? "_zerocopy_" : "_";
  return absl::StrCat(driver, copies, lanes, lanes == 1 ? "lane" : "lanes");
}

void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.Describe(); }

std::vector<int> EveryLaneCount() {
  return kSanitized || ShortRun() ? std::vector<int>{1, 4} : std::vector<int>{1, 2, 4, 8};
}

std::vector<Mode> AllModes(const std::vector<int>& lanes, const std::vector<int>& families) {
  const Mode drivers[] = {{}, {.threads = 2, .engine = "io_uring"}, {.threads = 2}};
  const Mode zero_copy = {.threads = 2, .engine = "io_uring", .environment = {{"TCPX_ZEROCOPY", "on"}}};
  std::vector<Mode> all;
  for (int family : families) {
    for (int count : lanes) {
      for (const Mode& driver : drivers) {
        if (kSanitized && count == 1 && driver.threads > 0) continue;
        if (ShortRun() && count != (driver.threads == 0 ? lanes.front() : lanes.back())) continue;
        all.push_back(WithLanes(driver, count, family));
      }
    }
    const bool bulk = std::find(lanes.begin(), lanes.end(), 4) != lanes.end();
    if (bulk && !ShortRun()) all.push_back(WithLanes(zero_copy, 4, family));
  }
  return all;
}

ScopedEnvironment::~ScopedEnvironment() {
  for (const auto& [name, value] : before_) {
    if (value.has_value()) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
}

void ScopedEnvironment::Set(const Environment& variables) {
  for (const auto& [name, value] : variables) {
    const char* const old = std::getenv(name.c_str());
    before_.emplace(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    setenv(name.c_str(), value.c_str(), 1);
  }
}

}  // namespace tcpx
