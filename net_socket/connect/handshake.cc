#include "net_socket/connect/handshake.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/random.h"

namespace tcpx {
namespace {

// Of one length, so that none is the beginning of another.
constexpr absl::string_view kDiallerLabel = "tcpx dialler ";
constexpr absl::string_view kAcceptorLabel = "tcpx acceptor";
static_assert(kDiallerLabel.size() == kAcceptorLabel.size());

absl::string_view View(const Mac& mac) { return {reinterpret_cast<const char*>(mac.data()), mac.size()}; }

}  // namespace

DialHandshake::DialHandshake(Hello hello, const Secret* secret) : secret_(secret) {
  if (secret != nullptr) hello.features |= kFeatureSecret;
  EncodeHello(hello, hello_);
  said_.assign(hello_, kHelloBytes);
}

std::string DialHandshake::TakeSaid() { return std::exchange(said_, std::string()); }

void DialHandshake::Took(size_t got) {
  have_ += got;
  if (have_ == until_ && status_.ok()) Advance();
}

void DialHandshake::Advance() {
  switch (step_) {
    case Step::kFixed:
      return FixedCame();
    case Step::kNonce:
      return NonceCame();
    case Step::kNics:
      return NicsCame();
    case Step::kMac:
      return MacCame();
    case Step::kDone:
      return;
  }
}

void DialHandshake::Await(Step step, size_t bytes) {
  step_ = step;
  until_ = have_ + bytes;
}

void DialHandshake::Fail(std::string why) { status_ = absl::UnavailableError(std::move(why)); }

void DialHandshake::FixedCame() {
  if (const char* wrong = DecodeAnswer(bytes_, &answer_, &nics_)) {
    Fail(absl::StrCat("the answer makes no sense: ", wrong));
  } else if (answer_.status == HelloStatus::kProve) {
    if (secret_ == nullptr || proven_) return Fail("the answer makes no sense: it asks for a proof");
    Await(Step::kNonce, kNonceBytes);
  } else if (answer_.status == HelloStatus::kAccepted && secret_ != nullptr && !proven_) {
    Fail(HelloStatusText(HelloStatus::kSecretAlone));
  } else if (nics_ > 0) {
    Await(Step::kNics, static_cast<size_t>(nics_) * kPeerNicBytes);
  } else {
    NicsAreThere();
  }
}

void DialHandshake::NonceCame() {
  char nonce[kNonceBytes];
  const absl::Status random = FillRandom(nonce, sizeof(nonce));
  if (!random.ok()) {
    status_ = random;
    return;
  }
  nonces_ =
      absl::StrCat(absl::string_view(bytes_ + kAnswerFixedBytes, kNonceBytes), absl::string_view(nonce, kNonceBytes));
  const Mac mac = secret_->Sign({kDiallerLabel, absl::string_view(hello_, kHelloBytes), nonces_});
  said_ = absl::StrCat(absl::string_view(nonce, kNonceBytes), View(mac));
  proven_ = true;
  have_ = 0;
  Await(Step::kFixed, kAnswerFixedBytes);
}

void DialHandshake::NicsCame() {
  if (const char* wrong = DecodeAnswerNics(bytes_ + kAnswerFixedBytes, nics_, &answer_)) {
    Fail(absl::StrCat("the answer makes no sense: ", wrong));
  } else {
    NicsAreThere();
  }
}

void DialHandshake::NicsAreThere() {
  answer_bytes_ = have_;
  if (proven_ && answer_.status == HelloStatus::kAccepted) {
    Await(Step::kMac, kMacBytes);
  } else {
    step_ = Step::kDone;
  }
}

void DialHandshake::MacCame() {
  const Mac expected = secret_->Sign(
      {kAcceptorLabel, absl::string_view(hello_, kHelloBytes), nonces_, absl::string_view(bytes_, answer_bytes_)});
  if (!Secret::Same(expected, bytes_ + answer_bytes_)) {
    Fail("the peer did not prove the shared secret: give all ranks the same TCPX_SECRET_FILE");
    return;
  }
  step_ = Step::kDone;
}

std::string AcceptHandshake::TakeSaid() { return std::exchange(said_, std::string()); }

void AcceptHandshake::Took(size_t got) {
  have_ += got;
  if (!challenged_ && have_ >= kHelloMagicBytes && DecodeHello(bytes_, &hello_) != nullptr) {
    state_ = State::kForeign;
  } else if (have_ == until_) {
    challenged_ ? ProofCame() : HelloCame();
  }
}

void AcceptHandshake::Refuse(HelloStatus why) {
  refusal_ = why;
  state_ = State::kRefused;
}

void AcceptHandshake::HelloCame() {
  const bool has_secret = (hello_.features & kFeatureSecret) != 0;
  if (hello_.version != kWireVersion) return Refuse(HelloStatus::kWrongVersion);
  if (secret_ == nullptr) {
    if (has_secret) return Refuse(HelloStatus::kSecretAlone);
    state_ = State::kGreeted;
    return;
  }
  if (!has_secret) return Refuse(HelloStatus::kSecretMissing);
  if (!FillRandom(nonces_.data(), kNonceBytes).ok()) return Refuse(HelloStatus::kBusy);
  Answer challenge;
  challenge.status = HelloStatus::kProve;
  challenge.features = kFeatureSecret;
  said_.resize(kAnswerFixedBytes);
  EncodeAnswer(challenge, &said_[0]);
  said_.append(nonces_.data(), kNonceBytes);
  challenged_ = true;
  until_ += kProofBytes;
}

void AcceptHandshake::ProofCame() {
  const char* proof = bytes_ + kHelloBytes;
  std::memcpy(nonces_.data() + kNonceBytes, proof, kNonceBytes);
  const absl::string_view nonces(nonces_.data(), nonces_.size());
  if (!Secret::Same(secret_->Sign({kDiallerLabel, hello_bytes(), nonces}), proof + kNonceBytes))
    return Refuse(HelloStatus::kSecretWrong);
  state_ = State::kGreeted;
}

std::string AcceptHandshake::Encode(Answer answer) const {
  const bool proves = secret_ != nullptr && state_ == State::kGreeted && answer.status == HelloStatus::kAccepted;
  if (proves) answer.features |= kFeatureSecret;
  std::string bytes(kAnswerBytesMax, '\0');
  bytes.resize(EncodeAnswer(answer, &bytes[0]));
  if (!proves) return bytes;
  const absl::string_view nonces(nonces_.data(), nonces_.size());
  return absl::StrCat(bytes, View(secret_->Sign({kAcceptorLabel, hello_bytes(), nonces, bytes})));
}

}  // namespace tcpx
