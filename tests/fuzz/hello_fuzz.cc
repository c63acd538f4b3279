// The first bytes of a stranger: decoded as the acceptor does it, also while they are still incomplete.
#include <cstring>

#include "net_socket/message/wire.h"
#include "tests/fuzz/fuzz.h"

namespace tcpx {
namespace {

void CheckComesBack(const Hello& hello) {
  char encoded[kHelloBytes];
  EncodeHello(hello, encoded);
  Hello again;
  Require(DecodeHello(encoded, &again) == nullptr, "what was decoded can be decoded again");
  Require(again.version == hello.version && again.lane == hello.lane && again.lanes == hello.lanes, "lane and version");
  Require(again.ticket == hello.ticket && again.connection_id == hello.connection_id, "ticket and connection");
  Require(again.features == hello.features && again.express_bytes == hello.express_bytes, "features and express size");
  Require(again.traffic_class == hello.traffic_class, "traffic class");
}

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tcpx;
  char bytes[kHelloBytes] = {};
  const size_t have = std::min(size, kHelloBytes);
  if (have > 0) std::memcpy(bytes, data, have);
  Hello hello;
  if (DecodeHello(bytes, &hello) == nullptr) CheckComesBack(hello);
  return 0;
}
