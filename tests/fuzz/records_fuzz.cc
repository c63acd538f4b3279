// What a sender hears from its receiver: the first two bytes say where reads end, the rest is the stream. The result
// may not depend on where a read ends, and an error stays.
#include <string>

#include "net_socket/comm/peer_watch.h"
#include "net_socket/message/wire.h"
#include "tests/fuzz/fuzz.h"

namespace tcpx {
namespace {

void CheckText(const absl::Status& status) {
  Require(status.message().size() < 2 * kCauseBytesMax, "no peer writes long lines into the log");
  for (const char c : status.message()) Require(c >= ' ' && c <= '~', "no peer writes control characters into the log");
}

// Reads of `first` bytes and then of `step` bytes each.
absl::Status TakeInSteps(const std::string& stream, size_t first, size_t step) {
  RecordReader reader;
  absl::Status status;
  size_t at = 0;
  for (size_t length = first; at < stream.size() && status.ok(); at += length, length = step) {
    length = std::min(length, stream.size() - at);
    status = reader.Take(stream.data() + at, length);
  }
  if (!status.ok()) Require(reader.Take(stream.data(), 0) == status, "an error stays");
  return status;
}

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tcpx;
  Input input(data, size);
  const size_t first = size_t{input.Take<uint8_t>()} + 1;
  const size_t step = size_t{input.Take<uint8_t>()} + 1;
  const std::string stream = input.TakeBytes(size);
  const absl::Status whole = TakeInSteps(stream, stream.size(), 1);
  CheckText(whole);
  Require(TakeInSteps(stream, first, step) == whole, "the result does not depend on where a read ends");
  return 0;
}
