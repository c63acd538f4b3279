// peer_watch.h: listens, on a send comm's lanes, for what the receiver says: records, and the end.
//
// Purpose: a sender reads nothing on its message path. The reactor reads the reverse direction of its lanes, so that an
//          error of the receiver, or its death, is known without a system call in isend or test.
//
// Threads: Start and the handlers in the reactor; Stop by the comm's closing thread, after which the comm is never
// touched. Lifetime: destroyed in the reactor, after the descriptors were unwatched (by ReleaseSocket). Errors:  to
// SendComm::PeerGone.
#ifndef TCPX_NET_SOCKET_PEER_WATCH_H_
#define TCPX_NET_SOCKET_PEER_WATCH_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "net_socket/reactor.h"
#include "net_socket/wire.h"

namespace tcpx {

class SendComm;

// Digests the reverse stream of one lane. Pure.
class RecordReader {
 public:
  // Takes what has arrived. Not OK when the peer reported an error or sent garbage.
  absl::Status Take(const char* data, size_t bytes);

 private:
  std::string pending_;  // less than one frame
};

class PeerWatch {
 public:
  explicit PeerWatch(SendComm* comm);
  ~PeerWatch();

  void StartInLoop(Reactor* reactor, const std::vector<int>& fds);
  void Stop();

 private:
  class Lane;

  void Report(absl::Status status, int lane);

  std::mutex mutex_;
  SendComm* comm_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PEER_WATCH_H_
