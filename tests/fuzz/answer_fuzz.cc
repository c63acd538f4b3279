// The answer to a hello: decoded in two steps, as the dialler does it, from a buffer that is exactly as long.
#include <cstring>
#include <vector>

#include "net_socket/message/wire.h"
#include "tests/fuzz/fuzz.h"

namespace tcpx {
namespace {

void CheckComesBack(const Answer& answer) {
  std::vector<char> encoded(kAnswerBytesMax);
  const size_t length = EncodeAnswer(answer, encoded.data());
  Require(length == kAnswerFixedBytes + answer.nics.size() * kPeerNicBytes, "length");
  Answer again;
  int nics = -1;
  Require(DecodeAnswer(encoded.data(), &again, &nics) == nullptr, "what was decoded can be decoded again");
  Require(DecodeAnswerNics(encoded.data() + kAnswerFixedBytes, nics, &again) == nullptr, "its interfaces too");
  Require(again.status == answer.status && again.version == answer.version, "status and version");
  Require(again.max_receives == answer.max_receives && again.features == answer.features, "limits and features");
  Require(again.nics.size() == answer.nics.size(), "interfaces");
  for (size_t i = 0; i < answer.nics.size(); ++i) {
    Require(again.nics[i].address == answer.nics[i].address, "addresses");
    Require(again.nics[i].speed_mbps == answer.nics[i].speed_mbps, "speeds");
  }
}

void Read(Input input) {
  const std::string fixed = input.TakeBytes(kAnswerFixedBytes);
  if (fixed.size() < kAnswerFixedBytes) return;
  Answer answer;
  int nics = -1;
  if (DecodeAnswer(fixed.data(), &answer, &nics) != nullptr) return;
  Require(nics >= 0 && nics <= kNicsMax, "no more interfaces than an answer has room for");
  Require(answer.max_receives >= 1 && answer.max_receives <= kReceivesMax, "a sender sizes its requests by it");
  Require(HelloStatusText(answer.status)[0] != '\0', "every status has a text");
  const std::vector<char> exact(static_cast<size_t>(nics) * kPeerNicBytes);
  std::string rest = input.TakeBytes(exact.size());
  rest.resize(exact.size());
  const std::vector<char> encoded(rest.begin(), rest.end());
  if (DecodeAnswerNics(encoded.data(), nics, &answer) != nullptr) return;
  Require(answer.nics.size() == static_cast<size_t>(nics), "no interface is made up or lost");
  CheckComesBack(answer);
}

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tcpx::Read(tcpx::Input(data, size));
  return 0;
}
