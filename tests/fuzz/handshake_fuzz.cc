// Hello, challenge, proof and answer, with a secret that the input does not know, also encrypted: both sides, in reads
// of any length. Nobody gets through, whatever he says; without a secret, what gets through is a hello or an answer
// that decodes.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "net_socket/connect/handshake.h"
#include "tests/fuzz/fuzz.h"

namespace tcpx {
namespace {

// Feeds a side with what the input holds, in pieces as its first bytes say.
template <typename Side, typename Until>
void Feed(Side* side, Input* input, size_t piece, const Until& until) {
  while (!until(*side)) {
    (void)side->TakeSaid();
    Require(side->wants() > 0, "a side that is not done wants something");
    const std::string bytes = input->TakeBytes(std::min(piece, side->wants()));
    if (bytes.empty()) return;
    bytes.copy(side->room(), bytes.size());
    side->Took(bytes.size());
  }
}

void Accept(const Secret* secret, Input* input, size_t piece) {
  AcceptHandshake side(secret);
  Feed(&side, input, piece, [](const AcceptHandshake& s) { return s.state() != AcceptHandshake::State::kReading; });
  if (side.state() == AcceptHandshake::State::kGreeted) {
    Require(secret == nullptr, "nobody greets without the secret");
    Require(side.hello().version == kWireVersion, "the version is right");
    Require((side.hello().features & kFeatureSecret) == 0, "nobody is believed to have one");
  }
  if (side.state() == AcceptHandshake::State::kRefused) {
    Answer answer;
    answer.status = side.refusal();
    Require(answer.status != HelloStatus::kAccepted, "a refusal says why");
    Require(side.Encode(answer).size() == kAnswerFixedBytes, "a refusal proves nothing");
  }
}

void Dial(const Secret* secret, Input* input, size_t piece) {
  DialHandshake side(Hello(), secret);
  Feed(&side, input, piece, [](const DialHandshake& s) { return s.done() || !s.status().ok(); });
  if (!side.done()) return;
  Require(side.status().ok(), "done is no error");
  Require(secret == nullptr || side.answer().status != HelloStatus::kAccepted, "nobody accepts without the secret");
  Require(side.answer().nics.size() <= static_cast<size_t>(kNicsMax), "no more interfaces than there is room for");
  Require(HelloStatusText(side.answer().status)[0] != '\0', "every status has a text");
}

void Run(Input input, const Secret* with, uint8_t how) {
  const size_t piece = 1 + (how >> 2);
  if ((how & 2) != 0) {
    Dial(with, &input, piece);
  } else {
    Accept(with, &input, piece);
  }
}

// With a secret once in the clear, and once encrypted.
void Run(Input input) {
  const uint8_t how = input.Take<uint8_t>();
  if ((how & 1) == 0) return Run(input, nullptr, how);
  Secret secret("what the input does not know");
  Run(input, &secret, how);
  secret.Encrypt(std::make_unique<Encryption>(std::vector<CipherSuite>{CipherSuite::kChaCha20Poly1305}));
  Run(input, &secret, how);
}

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tcpx::Run(tcpx::Input(data, size));
  return 0;
}
