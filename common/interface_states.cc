#include "common/interface_states.h"

#include "absl/strings/str_cat.h"
#include "common/this_host.h"

namespace tcpx {

std::string DownInterfaceOf(const SocketAddress& local) {
  const std::string name = InterfaceWith(local);
  if (name.empty()) return absl::StrCat("with ", local.HostString());
  return InterfaceRuns(name) ? "" : name;
}

std::string InterfaceStates::Down(const SocketAddress& local, int64_t now_ns) {
  MutexLock lock(mutex_);
  const auto [found, is_new] = states_.try_emplace(local.HostString());
  State& state = found->second;
  if (is_new || now_ns - state.looked_ns >= kKeptNs) state = {look_(local), now_ns};
  return state.down;
}

}  // namespace tcpx
