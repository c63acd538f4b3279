#include "net_socket/connect/handshake.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/random.h"

namespace tcpx {
namespace {

// All have the same length, so that none is the beginning of another.
constexpr absl::string_view kDiallerLabel = "tcpx dialler ";
constexpr absl::string_view kAcceptorLabel = "tcpx acceptor";
static_assert(kDiallerLabel.size() == kAcceptorLabel.size());

absl::string_view View(const Mac& mac) { return {reinterpret_cast<const char*>(mac.data()), mac.size()}; }

}  // namespace

DialHandshake::DialHandshake(Hello hello, const Secret* secret) : secret_(secret) {
  hello.features |= kFeatureKnowsEncrypt;
  if (secret != nullptr) hello.features |= kFeatureSecret;
  if (Encrypts()) hello.features |= kFeatureEncrypt | (secret->encryption()->offered() << kFeatureCipherShift);
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
    if (const char* refused = TakeChoice()) return Fail(refused);
    Await(Step::kNonce, kNonceBytes);
  } else if (answer_.status == HelloStatus::kAccepted && secret_ != nullptr && !proven_) {
    Fail(HelloStatusText(HelloStatus::kSecretAlone));
  } else if (nics_ > 0) {
    Await(Step::kNics, static_cast<size_t>(nics_) * kPeerNicBytes);
  } else {
    NicsAreThere();
  }
}

const char* DialHandshake::TakeChoice() {
  const bool theirs = (answer_.features & kFeatureEncrypt) != 0;
  if (!Encrypts()) return theirs ? HelloStatusText(HelloStatus::kEncryptMissing) : nullptr;
  if (!theirs) return HelloStatusText(HelloStatus::kEncryptAlone);
  const uint64_t chosen = (answer_.features & kFeatureCiphers) >> kFeatureCipherShift;
  if (!secret_->encryption()->Choose(chosen, &suite_) || Encryption::Bit(suite_) != chosen) {
    return "the answer makes no sense: it chooses no cipher, or another than was offered";
  }
  return nullptr;
}

// nonces_ becomes the transcript.
bool DialHandshake::Agree() {
  Key32 random;
  const absl::Status filled = FillRandom(random.data(), Key32::size());
  if (!filled.ok()) {
    status_ = filled;
    return false;
  }
  const EphemeralKey key(random);
  const absl::string_view challenge(bytes_, kAnswerFixedBytes + kNonceBytes);
  nonces_ = absl::StrCat(absl::string_view(hello_, kHelloBytes), challenge, View(key.public_key()));
  Key32 shared;
  if (!key.Agree(bytes_ + kAnswerFixedBytes, &shared)) {
    Fail("the answer makes no sense: its public key is none");
    return false;
  }
  schedule_ = std::make_unique<KeySchedule>(secret_->Early(), shared, nonces_);
  const Mac mac = schedule_->Finished(Side::kDialler, nonces_);
  said_ = absl::StrCat(View(key.public_key()), View(mac));
  absl::StrAppend(&nonces_, View(mac));
  return true;
}

void DialHandshake::NonceCame() {
  if (Encrypts()) {
    if (!Agree()) return;
    proven_ = true;
    have_ = 0;
    return Await(Step::kFixed, kAnswerFixedBytes);
  }
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
  const absl::string_view answer(bytes_, answer_bytes_);
  const Mac expected = Encrypts()
                           ? schedule_->Finished(Side::kAcceptor, absl::StrCat(nonces_, answer))
                           : secret_->Sign({kAcceptorLabel, absl::string_view(hello_, kHelloBytes), nonces_, answer});
  if (!Secret::Same(expected, bytes_ + answer_bytes_)) {
    Fail("the peer did not prove the shared secret: give all ranks the same TCPX_SECRET_FILE");
    return;
  }
  if (Encrypts()) {
    seals_ = secret_->encryption()->Make(suite_, schedule_->TrafficSecret(Side::kDialler, nonces_),
                                         schedule_->TrafficSecret(Side::kAcceptor, nonces_));
    schedule_ = nullptr;
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
  const HelloStatus encryption = CheckEncryption();
  if (encryption != HelloStatus::kAccepted) return Refuse(encryption);
  if (secret_ == nullptr) {
    if (has_secret) return Refuse(HelloStatus::kSecretAlone);
    state_ = State::kGreeted;
    return;
  }
  if (!has_secret) return Refuse(HelloStatus::kSecretMissing);
  if (Encrypts() && known_ != nullptr && !(*known_)(hello_)) {
    return Refuse(hello_.kind == HelloKind::kResume ? HelloStatus::kGone : HelloStatus::kUnknownTicket);
  }
  Answer challenge;
  challenge.status = HelloStatus::kProve;
  challenge.features = kFeatureSecret;
  if (Encrypts()) {
    Key32 random;
    if (!FillRandom(random.data(), Key32::size()).ok()) return Refuse(HelloStatus::kBusy);
    key_ = std::make_unique<EphemeralKey>(random);
    std::memcpy(nonces_.data(), key_->public_key().data(), kNonceBytes);
    challenge.features |= kFeatureEncrypt | (Encryption::Bit(suite_) << kFeatureCipherShift);
  } else if (!FillRandom(nonces_.data(), kNonceBytes).ok()) {
    return Refuse(HelloStatus::kBusy);
  }
  said_.resize(kAnswerFixedBytes);
  EncodeAnswer(challenge, &said_[0]);
  said_.append(nonces_.data(), kNonceBytes);
  if (Encrypts()) transcript_ = absl::StrCat(hello_bytes(), said_);
  challenged_ = true;
  until_ += kProofBytes;
}

HelloStatus AcceptHandshake::CheckEncryption() {
  const bool theirs = (hello_.features & kFeatureEncrypt) != 0;
  if (theirs != Encrypts()) return theirs ? HelloStatus::kEncryptAlone : HelloStatus::kEncryptMissing;
  if (!theirs) return HelloStatus::kAccepted;
  const uint64_t offered = (hello_.features & kFeatureCiphers) >> kFeatureCipherShift;
  return secret_->encryption()->Choose(offered, &suite_) ? HelloStatus::kAccepted : HelloStatus::kNoCipher;
}

void AcceptHandshake::KeyCame(const char* proof) {
  Key32 shared;
  if (!key_->Agree(proof, &shared)) return Refuse(HelloStatus::kSecretWrong);
  absl::StrAppend(&transcript_, absl::string_view(proof, kNonceBytes));
  schedule_ = std::make_unique<KeySchedule>(secret_->Early(), shared, transcript_);
  key_ = nullptr;
  if (!Secret::Same(schedule_->Finished(Side::kDialler, transcript_), proof + kNonceBytes)) {
    return Refuse(HelloStatus::kSecretWrong);
  }
  absl::StrAppend(&transcript_, absl::string_view(proof + kNonceBytes, kMacBytes));
  seals_ = secret_->encryption()->Make(suite_, schedule_->TrafficSecret(Side::kAcceptor, transcript_),
                                       schedule_->TrafficSecret(Side::kDialler, transcript_));
  state_ = State::kGreeted;
}

void AcceptHandshake::ProofCame() {
  const char* proof = bytes_ + kHelloBytes;
  if (Encrypts()) return KeyCame(proof);
  std::memcpy(nonces_.data() + kNonceBytes, proof, kNonceBytes);
  const absl::string_view nonces(nonces_.data(), nonces_.size());
  if (!Secret::Same(secret_->Sign({kDiallerLabel, hello_bytes(), nonces}), proof + kNonceBytes))
    return Refuse(HelloStatus::kSecretWrong);
  state_ = State::kGreeted;
}

std::string AcceptHandshake::Encode(Answer answer) const {
  if (answer.status >= HelloStatus::kLocalOnly) answer.status = HelloStatus::kBusy;
  const bool proves = secret_ != nullptr && state_ == State::kGreeted && answer.status == HelloStatus::kAccepted;
  if (proves) answer.features |= kFeatureSecret;
  // What an older build can tell its user, who has to install another one.
  const bool older = (hello_.features & kFeatureKnowsEncrypt) == 0;
  if (older && answer.status == HelloStatus::kEncryptMissing) answer.status = HelloStatus::kWrongVersion;
  std::string bytes(kAnswerBytesMax, '\0');
  bytes.resize(EncodeAnswer(answer, &bytes[0]));
  if (!proves) return bytes;
  if (Encrypts()) {
    return absl::StrCat(bytes, View(schedule_->Finished(Side::kAcceptor, absl::StrCat(transcript_, bytes))));
  }
  const absl::string_view nonces(nonces_.data(), nonces_.size());
  return absl::StrCat(bytes, View(secret_->Sign({kAcceptorLabel, hello_bytes(), nonces, bytes})));
}

}  // namespace tcpx
