// handshake.h: what the two sides of a new socket say before it carries anything else.
//
// Purpose: both halves of hello and answer, and, where there is a shared secret, of challenge and proof in between.
//          Pure but for the nonces: no socket, no clock. The socket's owner sends what `said` holds, and reads at
//          most `wants` bytes into `room`, because what follows belongs to the comm.
//
//   dialler   hello with kFeatureSecret
//   acceptor  challenge: an answer with kProve, nonce A
//   dialler   nonce D, HMAC("tcpx dialler" | hello | A | D)
//   acceptor  answer, HMAC("tcpx acceptor" | hello | A | D | answer)
//
//   With TCPX_ENCRYPT nonces A and D are ephemeral public keys (X25519), and the MACs those that a key schedule gives,
//   which the exchange and the secret go into (seal/key_schedule.h): an eavesdropper can't even guess at a weak secret.
//   Without a secret it is hello and answer. Each side draws its nonce anew, so nothing that was recorded serves again;
//   the two labels keep one side's proof from serving as the other's. Believe of an answer only what is proven; a
//   refusal is not, because there is nothing to prove it with.
// Threads: one at a time.
// Lifetime: borrows the secret.
// Errors:  as the accessors say. Every byte that comes in is hostile.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "net_socket/connect/secret.h"
#include "net_socket/message/wire.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

// What both sides have.
class Handshake {
 public:
  // What is heard may then cost a key, or an agreement.
  bool Encrypts() const { return secret_ != nullptr && secret_->encryption() != nullptr; }
  // What is to be sent next; empty: nothing. Taken once.
  std::string TakeSaid() { return std::exchange(said_, std::string()); }
  size_t wants() const { return until_ - have_; }
  // Once done, or greeted: what seals the socket after the answer, given once; empty where nothing is encrypted.
  Seals TakeSeals() { return std::move(seals_); }

 protected:
  // `secret`: null where there is none. `wants`: bytes of what comes first.
  Handshake(const Secret* secret, size_t wants) : secret_(secret), until_(wants) {}

  // Where it is encrypted, the nonce is the public half of a key, which is kept for Agree.
  absl::Status DrawNonce(std::string* nonce);
  void AddChallenge(absl::string_view challenge) {
    absl::StrAppend(&transcript_, Encrypts() ? challenge : challenge.substr(kAnswerFixedBytes));
  }
  // Both nonces are in the transcript. False: `theirs` is no public key.
  bool Agree(const char* theirs);
  // What proves that `side` has the secret, and has said or heard the transcript and `answer`.
  Mac Prove(Side side, absl::string_view answer = "") const;
  // The dialler's proof is in the transcript.
  void MakeSeals(Side own, Side other);

  const Secret* const secret_;
  CipherSuite suite_ = CipherSuite::kAes128Ocb;
  // What is proven: the hello, the challenge (in the clear its nonce alone), the dialler's nonce and, where it is
  // encrypted, its proof.
  std::string transcript_;
  std::unique_ptr<EphemeralKey> key_;
  std::unique_ptr<KeySchedule> schedule_;
  Seals seals_;
  std::string said_;
  size_t have_ = 0;
  size_t until_;
};

class DialHandshake : public Handshake {
 public:
  DialHandshake(Hello hello, const Secret* secret);

  char* room() { return bytes_ + have_; }
  // `got` bytes have come into the room.
  void Took(size_t got);

  // True exactly when the answer is whole. With a secret an acceptance is proven; a refusal never is.
  bool done() const { return step_ == Step::kDone; }
  // OK until something came that no honest peer with the same secret says.
  const absl::Status& status() const { return status_; }
  const Answer& answer() const { return answer_; }

 private:
  enum class Step { kFixed, kNonce, kNics, kMac, kDone };

  void FixedCame();
  // What is wrong with the cipher that was chosen; null: nothing.
  const char* TakeChoice();
  void NonceCame();
  void NicsCame();
  void MacCame();
  void Await(Step step, size_t bytes) {
    step_ = step;
    until_ = have_ + bytes;
  }
  void NicsAreThere();
  void Fail(std::string why) { status_ = absl::UnavailableError(std::move(why)); }

  Step step_ = Step::kFixed;
  absl::Status status_;
  Answer answer_;
  int nics_ = 0;
  bool proven_ = false;      // ourselves
  size_t answer_bytes_ = 0;  // of bytes_
  char bytes_[kAnswerBytesMax + kMacBytes];
};

// The acceptor's side, until its answer.
class AcceptHandshake : public Handshake {
 public:
  // Whether a hello has a ticket that is open.
  using Known = std::function<bool(const Hello&)>;

  // `known`: asked before a key is made; null: everybody gets one.
  explicit AcceptHandshake(const Secret* secret, const Known* known = nullptr)
      : Handshake(secret, kHelloBytes), known_(known) {}

  char* room() { return bytes_ + have_; }
  void Took(size_t got);

  enum class State {
    kReading,
    kForeign,  // not a tcpx peer: no answer
    kRefused,  // `refusal` says why
    kGreeted,  // the hello is whole and, with a secret, proven; it is to be answered
  };
  State state() const { return state_; }
  bool nothing_came() const { return have_ == 0; }
  HelloStatus refusal() const { return refusal_; }
  const Hello& hello() const { return hello_; }

  // The answer's bytes, and its MAC where it accepts with a secret. A status that is local is said as kBusy.
  std::string Encode(Answer answer) const;

 private:
  void HelloCame();
  // Why the hello's idea of encryption is refused; kAccepted: it is not.
  HelloStatus CheckEncryption();
  void Challenge();
  void ProofCame();
  void Refuse(HelloStatus why) {
    refusal_ = why;
    state_ = State::kRefused;
  }

  const Known* const known_;
  State state_ = State::kReading;
  HelloStatus refusal_ = HelloStatus::kAccepted;
  Hello hello_;
  bool challenged_ = false;
  char bytes_[kHelloBytes + kProofBytes];
};

}  // namespace tcpx
