#include "net_socket/connect/handshake.h"

#include "common/random.h"

namespace tcpx {
namespace {

// All have the same length, so that none is the beginning of another.
constexpr absl::string_view kDiallerLabel = "tcpx dialler ";
constexpr absl::string_view kAcceptorLabel = "tcpx acceptor";
static_assert(kDiallerLabel.size() == kAcceptorLabel.size());

absl::string_view View(const Mac& mac) { return {reinterpret_cast<const char*>(mac.data()), mac.size()}; }

}  // namespace

absl::Status Handshake::DrawNonce(std::string* nonce) {
  if (!Encrypts()) {
    nonce->resize(kNonceBytes);
    return FillRandom(&(*nonce)[0], kNonceBytes);
  }
  Key32 random;
  absl::Status filled = FillRandom(random.data(), Key32::size());
  if (!filled.ok()) return filled;
  key_ = std::make_unique<EphemeralKey>(random);
  *nonce = View(key_->public_key());
  return absl::OkStatus();
}

bool Handshake::Agree(const char* theirs) {
  if (!Encrypts()) return true;
  const std::unique_ptr<EphemeralKey> key = std::move(key_);
  Key32 shared;
  if (!key->Agree(theirs, &shared)) return false;
  schedule_ = std::make_unique<KeySchedule>(secret_->Early(), shared, transcript_);
  return true;
}

Mac Handshake::Prove(Side side, absl::string_view answer) const {
  if (Encrypts()) return schedule_->Finished(side, absl::StrCat(transcript_, answer));
  return secret_->Sign({side == Side::kDialler ? kDiallerLabel : kAcceptorLabel, transcript_, answer});
}

void Handshake::MakeSeals(Side own, Side other) {
  seals_ = secret_->encryption()->Make(suite_, schedule_->TrafficSecret(own, transcript_),
                                       schedule_->TrafficSecret(other, transcript_));
}

DialHandshake::DialHandshake(Hello hello, const Secret* secret) : Handshake(secret, kAnswerFixedBytes) {
  hello.features |= kFeatureKnowsEncrypt;
  if (secret != nullptr) hello.features |= kFeatureSecret;
  if (Encrypts()) hello.features |= kFeatureEncrypt | (secret->encryption()->offered() << kFeatureCipherShift);
  transcript_.resize(kHelloBytes);
  EncodeHello(hello, &transcript_[0]);
  said_ = transcript_;
}

void DialHandshake::Took(size_t got) {
  have_ += got;
  if (have_ != until_ || !status_.ok()) return;
  if (step_ == Step::kFixed) return FixedCame();
  if (step_ == Step::kNonce) return NonceCame();
  if (step_ == Step::kNics) return NicsCame();
  if (step_ == Step::kMac) return MacCame();
}

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

void DialHandshake::NonceCame() {
  std::string nonce;
  status_ = DrawNonce(&nonce);
  if (!status_.ok()) return;
  AddChallenge({bytes_, kAnswerFixedBytes + kNonceBytes});
  transcript_ += nonce;
  if (!Agree(bytes_ + kAnswerFixedBytes)) return Fail("the answer makes no sense: its public key is none");
  const Mac mac = Prove(Side::kDialler);
  said_ = absl::StrCat(nonce, View(mac));
  if (Encrypts()) absl::StrAppend(&transcript_, View(mac));
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
  if (!Secret::Same(Prove(Side::kAcceptor, {bytes_, answer_bytes_}), bytes_ + answer_bytes_)) {
    return Fail("the peer did not prove the shared secret: give all ranks the same TCPX_SECRET_FILE");
  }
  if (Encrypts()) MakeSeals(Side::kDialler, Side::kAcceptor);
  schedule_ = nullptr;
  step_ = Step::kDone;
}

void AcceptHandshake::Took(size_t got) {
  have_ += got;
  if (!challenged_ && have_ >= kHelloMagicBytes && DecodeHello(bytes_, &hello_) != nullptr) {
    state_ = State::kForeign;
  } else if (have_ == until_) {
    challenged_ ? ProofCame() : HelloCame();
  }
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
  Challenge();
}

void AcceptHandshake::Challenge() {
  std::string nonce;
  if (!DrawNonce(&nonce).ok()) return Refuse(HelloStatus::kBusy);
  Answer challenge;
  challenge.status = HelloStatus::kProve;
  challenge.features = kFeatureSecret;
  if (Encrypts()) challenge.features |= kFeatureEncrypt | (Encryption::Bit(suite_) << kFeatureCipherShift);
  said_.resize(kAnswerFixedBytes);
  EncodeAnswer(challenge, &said_[0]);
  said_ += nonce;
  transcript_.assign(bytes_, kHelloBytes);
  AddChallenge(said_);
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

void AcceptHandshake::ProofCame() {
  const char* const nonce = bytes_ + kHelloBytes;
  const char* const mac = nonce + kNonceBytes;
  transcript_.append(nonce, kNonceBytes);
  if (!Agree(nonce) || !Secret::Same(Prove(Side::kDialler), mac)) return Refuse(HelloStatus::kSecretWrong);
  if (Encrypts()) {
    transcript_.append(mac, kMacBytes);
    MakeSeals(Side::kAcceptor, Side::kDialler);
  }
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
  return proves ? absl::StrCat(bytes, View(Prove(Side::kAcceptor, bytes))) : bytes;
}

}  // namespace tcpx
