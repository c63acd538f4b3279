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

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net_socket/connect/secret.h"
#include "net_socket/message/wire.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

// The dialler's side.
class DialHandshake {
 public:
  // `secret`: null where there is none.
  DialHandshake(Hello hello, const Secret* secret);

  // What is to be sent next; empty: nothing. Taken once.
  std::string TakeSaid();
  char* room() { return bytes_ + have_; }
  size_t wants() const { return until_ - have_; }
  // `got` bytes have come into the room.
  void Took(size_t got);

  // True exactly when the answer is whole. With a secret an acceptance is proven; a refusal never is.
  bool done() const { return step_ == Step::kDone; }
  // OK until something came that no honest peer with the same secret says.
  const absl::Status& status() const { return status_; }
  const Answer& answer() const { return answer_; }
  // Once done: what seals the socket, given once; empty where nothing is encrypted.
  Seals TakeSeals() { return std::move(seals_); }

 private:
  enum class Step { kFixed, kNonce, kNics, kMac, kDone };

  void Advance();
  void FixedCame();
  // What is wrong with the cipher that was chosen; null: nothing.
  const char* TakeChoice();
  bool Encrypts() const { return secret_ != nullptr && secret_->encryption() != nullptr; }
  void NonceCame();
  bool Agree();
  void NicsCame();
  void MacCame();
  void Await(Step step, size_t bytes);
  void NicsAreThere();
  void Fail(std::string why);

  const Secret* const secret_;
  char hello_[kHelloBytes];
  std::string said_;
  Step step_ = Step::kFixed;
  absl::Status status_;
  Answer answer_;
  int nics_ = 0;
  bool proven_ = false;  // ourselves
  std::string nonces_;   // of the acceptor and of us; where it is encrypted all that was said up to our proof
  CipherSuite suite_ = CipherSuite::kAes128Ocb;
  std::unique_ptr<KeySchedule> schedule_;
  Seals seals_;
  size_t answer_bytes_ = 0;  // of bytes_
  size_t have_ = 0;
  size_t until_ = kAnswerFixedBytes;
  char bytes_[kAnswerBytesMax + kMacBytes];
};

// The acceptor's side, until its answer.
class AcceptHandshake {
 public:
  // Whether a hello has a ticket that is open.
  using Known = std::function<bool(const Hello&)>;

  // `known`: asked before a key is made; null: everybody gets one.
  explicit AcceptHandshake(const Secret* secret, const Known* known = nullptr) : secret_(secret), known_(known) {}

  std::string TakeSaid();
  char* room() { return bytes_ + have_; }
  size_t wants() const { return until_ - have_; }
  void Took(size_t got);

  enum class State {
    kReading,
    kForeign,  // not a tcpx peer: no answer
    kRefused,  // `refusal` says why
    kGreeted,  // the hello is whole and, with a secret, proven; it is to be answered
  };
  State state() const { return state_; }
  // What comes next may cost a key, or an agreement.
  bool MakesKeys() const { return Encrypts(); }
  bool nothing_came() const { return have_ == 0; }
  HelloStatus refusal() const { return refusal_; }
  const Hello& hello() const { return hello_; }

  // The answer's bytes, and its MAC where it accepts with a secret. A status that is local is said as kBusy.
  std::string Encode(Answer answer) const;
  // Once greeted: what seals the socket after the answer, given once; empty where nothing is encrypted.
  Seals TakeSeals() { return std::move(seals_); }

 private:
  void HelloCame();
  // Why the hello's idea of encryption is refused; kAccepted: it is not.
  HelloStatus CheckEncryption();
  void ProofCame();
  void KeyCame(const char* proof);
  bool Encrypts() const { return secret_ != nullptr && secret_->encryption() != nullptr; }
  void Refuse(HelloStatus why);
  absl::string_view hello_bytes() const { return {bytes_, kHelloBytes}; }

  const Secret* secret_;
  const Known* known_;
  State state_ = State::kReading;
  HelloStatus refusal_ = HelloStatus::kAccepted;
  Hello hello_;
  bool challenged_ = false;
  std::array<char, 2 * kNonceBytes> nonces_{};  // ours and the dialler's
  CipherSuite suite_ = CipherSuite::kAes128Ocb;
  std::unique_ptr<EphemeralKey> key_;
  std::string transcript_;  // of what is encrypted: up to the dialler's proof
  std::unique_ptr<KeySchedule> schedule_;
  Seals seals_;
  std::string said_;
  size_t have_ = 0;
  size_t until_ = kHelloBytes;
  char bytes_[kHelloBytes + kProofBytes];
};

}  // namespace tcpx
