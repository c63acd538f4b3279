// samples.h: packets for the tests of wire.
//
// Threads: any; pure.
// Units:   bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/netns/wire/frame.h"

namespace tcpx {
namespace wire {

inline constexpr size_t kSampleSegment = 1448;
inline constexpr uint32_t kSampleSequence = 0xfffff000;  // wraps after a few segments

// A TCP packet of 10.0.0.1:`port` to 10.0.0.2:80, or of fd00::1 to fd00::2, with 12 bytes of TCP options; above
// kSampleSegment bytes of payload a GSO frame. Byte i of the payload is i * 7. FIN, PSH, ACK and CWR are set.
Frame SampleFrame(bool ipv6, size_t payload_bytes, uint16_t port, BufferPool* pool);

// The bytes of a piece as it is written to the device: headers, then payload.
Bytes Written(const Piece& piece, size_t* bytes);

}  // namespace wire
}  // namespace tcpx
