// health_reader.h: what is said on a health socket, digested. Pure.
//
// Threads: one at a time.
// Units:   bytes.
// Errors:  kUnavailable for garbage; it stays.
#ifndef TCPX_NET_SOCKET_HEALTH_HEALTH_READER_H_
#define TCPX_NET_SOCKET_HEALTH_HEALTH_READER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "net_socket/message/frame_reader.h"

namespace tcpx {

using ConnectionId = std::array<uint8_t, 16>;

// What the peer said on a health socket.
struct HealthNotice {
  ConnectionId connection{};
  std::string cause;
  bool parting = false;         // it has given the connection up; else the connection has failed
  bool left = false;            // it has not failed: its end is closed
  int silent = -1;              // it stands: what the peer says on this lane is not acknowledged
  std::string waits;            // what the peer waits for (wait_news.h); the connection stands
  std::vector<uint64_t> taken;  // with left: bytes of each lane's stream, where the peer received
};

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
