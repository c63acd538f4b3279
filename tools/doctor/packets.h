// packets.h: single UDP packets there and back: how large they may be, and which marks they keep.
//
// Purpose: TCP hides both. Whether routes and switches pass a size, and whether they wash the DSCP, is asked with
//          packets that may not be fragmented and bear a mark; the other side says what came.
// Threads: one. Units: bytes of IP packets; an octet as in IPv4 TOS.
// Errors:  silence: UDP may be blocked where TCP is not.
// Source:  ip(7), ipv6(7): IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IP_MTU, IP_RECVTOS; RFC 2474.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/fd.h"
#include "tools/doctor/channel.h"

namespace tcpx {
namespace doctor {

// The answering side: opens a socket on the address of `channel`, tells its port, and answers until the channel ends.
absl::Status AnswerPackets(Channel* channel);

struct PacketFacts {
  bool answered = false;
  int there = 0;         // largest packet that reaches the other side
  int back = 0;          // and us
  int kernel_there = 0;  // what the kernel believes now (IP_MTU); 0: unknown
  int mark_there = -1;   // the octet that `mark` arrived as
  int mark_back = -1;
};

// The asking side: `largest` is what the interface here sends, `mark` the octet to try.
absl::StatusOr<PacketFacts> AskPackets(Channel* channel, int largest, int largest_back, int mark);

}  // namespace doctor
}  // namespace tcpx
