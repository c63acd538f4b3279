// health_notice.h: what the ends of a connection tell each other on their processes' health socket. Pure.
//
// Wire:    each record's body begins with the connection's id; one of zeros stands for the process. Then: of an error or
//          a parting the text; of left, from an end that received, the bytes taken of each lane's stream (eight bytes
//          each); of silent the lane (two bytes); of waits what wait_record.h says; of clock what clock_record.h says.
// Threads: any.
// Units:   bytes.
// Errors:  DecodeNotice: false for nonsense, and what is of no interest: a newer peer may say more.
#ifndef TCPX_NET_SOCKET_MESSAGE_HEALTH_NOTICE_H_
#define TCPX_NET_SOCKET_MESSAGE_HEALTH_NOTICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "net_socket/message/wire.h"

namespace tcpx {

// What the peer said on a health socket.
struct HealthNotice {
  ConnectionId connection{};
  std::string cause;
  bool parting = false;         // it has given the connection up; else the connection has failed
  bool left = false;            // it has not failed: its end is closed
  int silent = -1;              // it goes on: what the peer says on this lane is not acknowledged
  std::string waits;            // what the peer waits for (wait_record.h); the connection goes on
  std::string clock;            // of no connection: the time, or a question for it (clock_record.h)
  std::vector<uint64_t> taken;  // with left: bytes of each lane's stream, where the peer received
};

// Records, whole. `cause`: its first kCauseBytesMax bytes.
std::string FailureNotice(const ConnectionId& id, absl::string_view cause, bool parting);
std::string LeftNotice(const ConnectionId& id, const std::vector<uint64_t>& taken);
std::string SilentNotice(const ConnectionId& id, int lane);
std::string WaitsNotice(const ConnectionId& id, absl::string_view waits);
std::string ClockNotice(absl::string_view clock);

bool DecodeNotice(FrameKind kind, absl::string_view body, HealthNotice* notice);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_MESSAGE_HEALTH_NOTICE_H_
