// plugin_mode.h: the modes in which the plugin's tests run: who moves the bytes, over how many lanes, over which IP.
//
// Purpose: a Mode is the parameter of a test. It names itself, says why it can't run on this machine, and knows the
//          environment that the plugin reads when it is loaded.
// Threads: any; what changes the environment, in a process with one thread, before the library is opened.
// Errors:  ReasonToSkip says why a mode can't run here; a test then skips with that text.
#pragma once

#include <sys/socket.h>

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "nccl/net_types.h"

namespace tcpx {

using Environment = std::map<std::string, std::string>;

struct Mode {
  int threads = 0;  // 0: the caller drives everything
  std::string engine = "epoll";
  int lanes = 1;
  int family = AF_INET;  // AF_INET6 needs own_network.h
  int version = 0;       // of the API; 0: the newest
  Environment environment = {};
  ncclProfilerCallback_t profiler = nullptr;

  // What the plugin reads, `environment` last.
  Environment Variables() const;
  // Sets them, for good.
  void Apply() const;
  // Empty exactly when it can run here.
  std::string ReasonToSkip() const;
  // "io_uring 2 lanes 4 IPv6 v12", with `separator` for the spaces.
  std::string Describe(char separator = ' ') const;
  // "uring_4lanes": engine and lanes only.
  std::string ShortName() const;
};

void PrintTo(const Mode& mode, std::ostream* out);
// The names of a parameterized test.
inline constexpr auto ModeName = [](const auto& info) { return info.param.Describe('_'); };
inline constexpr auto ShortModeName = [](const auto& info) { return info.param.ShortName(); };

// 1, 2, 4 and 8; 1 and 4 where a sanitizer looks on, which sees nothing else in the others, and in a short run.
std::vector<int> EveryLaneCount();

// {caller-driven, io_uring pool of 2, epoll pool of 2} x `lanes`, and, where 4 lanes are among them, io_uring without
// copies over 4 lanes; all of it x `families`. A pool has nothing to do for the only lane, which NCCL's thread drives:
// where a sanitizer looks on, one lane is driven by the caller alone. In a short run the caller drives the fewest lanes
// and the pools the most, and nothing else is among them.
std::vector<Mode> AllModes(const std::vector<int>& lanes = EveryLaneCount(),
                           const std::vector<int>& families = {AF_INET});

// Sets variables, and puts the old values back at its end.
class ScopedEnvironment {
 public:
  ScopedEnvironment() = default;
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;
  ~ScopedEnvironment();

  void Set(const Environment& variables);

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace tcpx
