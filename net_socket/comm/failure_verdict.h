// failure_verdict.h: gathers what tells why a connection has failed, and has it judged.
//
// Threads: any; not with a mutex held that the health socket's hearers take.
// Errors:  what can't be found out is left out.
#ifndef TCPX_NET_SOCKET_COMM_FAILURE_VERDICT_H_
#define TCPX_NET_SOCKET_COMM_FAILURE_VERDICT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "net_socket/health/verdict.h"

namespace tcpx {

struct ConnectionSetup;

// An error that is due to silence: nobody has answered on `lane` for the whole timeout.
absl::Status SilenceError(const std::string& text);

Verdict VerdictOfFailure(const ConnectionSetup& setup, const absl::Status& status, int lane);

// "verdict: host-gone: node7 pid 4711: its host is gone, or cut off; " and empty where the cause is not known.
std::string VerdictPrefix(const Verdict& verdict);

// The same of a lane that is moved because the network swallows it.
std::string HealedVerdict(const ConnectionSetup& setup);

// How long whoever finds a lane broken may wait for the reason: once in a while, since a thread that moves other lanes
// may be the one. Whoever comes while another waits, as another lane's thread does, waits until the same time: else it
// would tell the error without its reason. From any thread.
class Patience {
 public:
  // Half of the time in which the end of a peer has to be known here. What ends a process ends its sockets within
  // microseconds of each other, or a few time slices where the CPU is wanted by many.
  static constexpr int64_t kLongNs = 100 * kMillisecond;
  static constexpr int64_t kEveryNs = 10 * kSecond;

  // Not above now: there is nothing to wait for.
  int64_t Until(int64_t now_ns);

 private:
  std::atomic<int64_t> begun_ns_{-kEveryNs};
};

// A lane has broken, or ended, and nobody has said why. What ends a process ends its health socket a moment later: waits
// for that, or for `explained`, as Patience allows in the whole process.
void AwaitExplanation(const ConnectionSetup& setup, const std::function<bool()>& explained);

// How this end and the peer are called in verdicts.
std::string PeerName(const ConnectionSetup& setup);
// An interface of a lane of it that is out, or has lost its address; empty: none.
std::string DownInterface(const ConnectionSetup& setup);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_FAILURE_VERDICT_H_
