#include "bench/netns/wire/checksum.h"

namespace tcpx {
namespace wire {

uint64_t AddWords(const uint8_t* data, size_t bytes, uint64_t sum) {
  for (; bytes > 1; data += 2, bytes -= 2) sum += Read16(data);
  return bytes == 0 ? sum : sum + (static_cast<uint64_t>(*data) << 8);
}

uint16_t Fold(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

uint64_t PseudoHeader(const uint8_t* addresses, size_t address_bytes, uint8_t protocol, uint32_t transport_bytes) {
  return AddWords(addresses, 2 * address_bytes, protocol + (transport_bytes >> 16) + (transport_bytes & 0xffff));
}

}  // namespace wire
}  // namespace tcpx
