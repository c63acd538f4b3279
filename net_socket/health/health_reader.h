// health_reader.h: what is said on a health socket, digested. Pure.
//
// Threads: one at a time.
// Units:   bytes.
// Errors:  kUnavailable for garbage; it stays.
#ifndef TCPX_NET_SOCKET_HEALTH_HEALTH_READER_H_
#define TCPX_NET_SOCKET_HEALTH_HEALTH_READER_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "net_socket/message/frame_reader.h"
#include "net_socket/message/health_notice.h"

namespace tcpx {

// Digests the stream of one health socket. Pure.
class HealthReader {
 public:
  // Takes what has arrived; notices are appended. Not OK when it is garbage.
  absl::Status Take(const char* data, size_t bytes, std::vector<HealthNotice>* notices);
  bool bye() const { return bye_; }

 private:
  FrameReader frames_{"a message on the health socket"};
  bool bye_ = false;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_HEALTH_HEALTH_READER_H_
