// The answer to a hello: decoded in two steps, as the dialler does it, from a buffer that is exactly as long.
#include <cstring>
#include <vector>

#include "net_socket/wire.h"
#include "tests/fuzz/fuzz.h"

namespace tcpx {
namespace {

void CheckComesBack(const Answer& answer) {
  std::vector<char> encoded(kAnswerBytesMax);
  const size_t length = EncodeAnswer(answer, encoded.data());
  Require(length == kAnswerFixedBytes + answer.addresses.size() * SocketAddress::kEncodedBytes, "length");
  Answer again;
  int addresses = -1;
  Require(DecodeAnswer(encoded.data(), &again, &addresses) == nullptr, "what was decoded can be decoded again");
  DecodeAnswerAddresses(encoded.data() + kAnswerFixedBytes, addresses, &again);
  Require(again.status == answer.status && again.version == answer.version, "status and version");
  Require(again.max_receives == answer.max_receives && again.features == answer.features, "limits and features");
  Require(again.addresses == answer.addresses, "addresses");
}

void Read(Input input) {
  const std::string fixed = input.TakeBytes(kAnswerFixedBytes);
  if (fixed.size() < kAnswerFixedBytes) return;
  Answer answer;
  int addresses = -1;
  if (DecodeAnswer(fixed.data(), &answer, &addresses) != nullptr) return;
  Require(addresses >= 0 && addresses <= kAddressesMax, "no more addresses than an answer has room for");
  Require(answer.max_receives >= 1 && answer.max_receives <= kReceivesMax, "a sender sizes its requests by it");
  Require(HelloStatusText(answer.status)[0] != '\0', "every status has a text");
  const std::vector<char> exact(static_cast<size_t>(addresses) * SocketAddress::kEncodedBytes);
  std::string rest = input.TakeBytes(exact.size());
  rest.resize(exact.size());
  const std::vector<char> encoded(rest.begin(), rest.end());
  DecodeAnswerAddresses(encoded.data(), addresses, &answer);
  Require(answer.addresses.size() <= static_cast<size_t>(addresses), "no address is made up");
  CheckComesBack(answer);
}

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tcpx::Read(tcpx::Input(data, size));
  return 0;
}
