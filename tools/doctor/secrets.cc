// Whether two hosts have one secret, by the plugin's own handshake of an encrypted socket: an eavesdropper learns
// nothing that helps to guess the secret.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "net_socket/connect/handshake.h"
#include "net_socket/connect/secret.h"
#include "tools/doctor/greeting.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr char kNoHandshake[] = "the other side is no doctor: its handshake makes no sense";
// An honest one takes two.
constexpr int kRoundsMax = 4;

std::unique_ptr<Secret> OwnSecret(const Patient& patient) {
  if (patient.options.secret_file.empty()) return nullptr;
  auto secret = Secret::Load(patient.options.secret_file);
  if (!secret.ok()) return nullptr;
  // The cipher that every build has.
  (*secret)->Encrypt(std::make_unique<Encryption>(std::vector<CipherSuite>{CipherSuite::kChaCha20Poly1305}));
  return *std::move(secret);
}

std::string Said(const std::string& bytes) { return absl::StrCat("said said=", absl::BytesToHexString(bytes)); }

// Gives the handshake what the line says, as far as it wants it. False: the line says nothing.
template <typename Handshake, typename Done>
bool Hear(absl::string_view line, Handshake* handshake, Done done) {
  const std::string hex = TextOf(ParseFields(line), "said");
  for (const char digit : hex) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit))) return false;
  }
  if (hex.empty() || hex.size() % 2 != 0) return false;
  const std::string bytes = absl::HexStringToBytes(hex);
  for (size_t at = 0; at < bytes.size() && !done();) {
    const size_t piece = std::min(handshake->wants(), bytes.size() - at);
    bytes.copy(handshake->room(), piece, at);
    handshake->Took(piece);
    at += piece;
  }
  return true;
}

SecretsAre Judge(const DialHandshake& dial, bool own) {
  if (!dial.status().ok()) return SecretsAre::kDifferent;
  switch (dial.answer().status) {
    case HelloStatus::kAccepted:
      return own ? SecretsAre::kSame : SecretsAre::kNone;
    case HelloStatus::kSecretAlone:
    case HelloStatus::kEncryptAlone:
      return SecretsAre::kOnlyHere;
    case HelloStatus::kSecretMissing:
    case HelloStatus::kEncryptMissing:
      return SecretsAre::kOnlyThere;
    default:
      return SecretsAre::kDifferent;
  }
}

}  // namespace

absl::Status ProveSecret(const Patient& patient, absl::string_view question, Channel* channel) {
  const std::unique_ptr<Secret> secret = OwnSecret(patient);
  AcceptHandshake accept(secret.get());
  using State = AcceptHandshake::State;
  absl::StatusOr<std::string> line = std::string(question);
  for (int round = 0; round < kRoundsMax && line.ok(); ++round) {
    if (!Hear(*line, &accept, [&accept] { return accept.state() != State::kReading; })) break;
    Answer answer;
    answer.status = accept.refusal();
    if (accept.state() == State::kForeign) break;
    if (accept.state() != State::kReading) return channel->Send(Said(accept.Encode(answer)));
    line = channel->Ask(Said(accept.TakeSaid()));
  }
  return line.ok() ? channel->Send(absl::StrCat("error ", kNoHandshake)) : line.status();
}

absl::StatusOr<SecretsAre> CompareSecrets(const Patient& patient, Channel* channel) {
  const std::unique_ptr<Secret> secret = OwnSecret(patient);
  DialHandshake dial(Hello(), secret.get());
  auto line = channel->Ask(absl::StrCat("tcpx_doctor 1 secret ", Said(dial.TakeSaid())));
  for (int round = 0; round < kRoundsMax && line.ok(); ++round) {
    const auto over = [&dial] { return dial.done() || !dial.status().ok(); };
    if (!Hear(*line, &dial, over)) return absl::UnavailableError(kNoHandshake);
    if (over()) return Judge(dial, secret != nullptr);
    line = channel->Ask(Said(dial.TakeSaid()));
  }
  return line.ok() ? absl::UnavailableError(kNoHandshake) : line.status();
}

}  // namespace doctor
}  // namespace tcpx
