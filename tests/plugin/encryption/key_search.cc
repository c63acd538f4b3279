#include "tests/plugin/encryption/key_search.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "net_socket/message/wire.h"
#include "net_socket/seal/key_schedule.h"
#include "tests/support/process_memory.h"
#include "tests/support/processes.h"

namespace {

// What the process under test has drawn, so that nobody who looks for it finds it here.
constexpr unsigned char kMask = 0xa5;
constexpr size_t kKeyBytes = 32;
constexpr int kDrawnMax = 4096;
std::atomic<int> drawn{0};
unsigned char masked[kDrawnMax][kKeyBytes];

}  // namespace

// The library's too.
extern "C" __attribute__((visibility("default"))) ssize_t getrandom(void* data, size_t bytes, unsigned flags) {
  const ssize_t got = syscall(SYS_getrandom, data, bytes, flags);
  if (got == static_cast<ssize_t>(kKeyBytes) && drawn < kDrawnMax) {
    unsigned char* const place = masked[drawn++];
    for (size_t i = 0; i < kKeyBytes; ++i) place[i] = static_cast<const unsigned char*>(data)[i] ^ kMask;
  }
  return got;
}

namespace tcpx {
namespace {

constexpr size_t kNeedleMax = 64;

std::string Text(const Key32& key) { return std::string(key.view()); }

Key32 Derive(const Key32& secret, absl::string_view label, absl::string_view text) {
  const Digest digest = Sha256(text);
  Key32 derived;
  ExpandLabel(secret, label, {reinterpret_cast<const char*>(digest.data()), digest.size()}, derived.data(), 32);
  return derived;
}

std::string Expand(const Key32& secret, absl::string_view label, size_t bytes) {
  std::string out(bytes, '\0');
  ExpandLabel(secret, label, "", reinterpret_cast<uint8_t*>(&out[0]), bytes);
  return out;
}

// The private key of `public_key` among what was drawn; false: it is not there.
bool FindPrivate(const std::vector<std::string>& all, const std::string& public_key, Key32* found) {
  for (const std::string& random : all) {
    memcpy(found->data(), random.data(), kKeyBytes);
    const EphemeralKey key(*found);
    if (memcmp(key.public_key().data(), public_key.data(), kKeyBytes) == 0) return true;
  }
  return false;
}

// As the arithmetic of X25519 has it: digits of 51 bits, in words.
std::string InWords(const std::string& text) {
  std::string words;
  for (size_t i = 0; i < 5; ++i) {
    uint64_t word = 0;
    for (size_t bit = 0; bit < 51 && 51 * i + bit < 255; ++bit) {
      const size_t at = 51 * i + bit;
      word |= static_cast<uint64_t>((text[at / 8] >> (at % 8)) & 1) << bit;
    }
    words.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return words;
}

// The same, of a number that a point is multiplied with: digits of 4 bits, from -8 to 8, in bytes.
std::string InDigits(const std::string& text) {
  std::string digits;
  int carry = 0;
  for (size_t i = 0; i < 63; ++i) {
    const int digit = ((text[i / 2] >> (4 * (i % 2))) & 15) + carry;
    carry = (digit + 8) >> 4;
    digits.push_back(static_cast<char>(digit - (carry << 4)));
  }
  return digits;
}

void AddPrivate(const std::string& name, const Key32& key, std::vector<Needle>* needles) {
  std::string text = Text(key);
  needles->push_back({name, text});
  text[0] = static_cast<char>(text[0] & 248);
  text[31] = static_cast<char>((text[31] & 127) | 64);
  needles->push_back({name + ", as it is used", text});
  needles->push_back({name + " in digits", InDigits(text)});
}

void AddTraffic(const std::string& name, const Key32& traffic, std::vector<Needle>* needles) {
  needles->push_back({name + "'s traffic secret", Text(traffic)});
  needles->push_back({name + "'s key of 16 bytes", Expand(traffic, "key", 16)});
  needles->push_back({name + "'s key of 32 bytes", Expand(traffic, "key", 32)});
}

}  // namespace

std::string MaskedDraws() {
  return std::string(reinterpret_cast<const char*>(masked), kKeyBytes * static_cast<size_t>(drawn));
}

std::vector<std::string> Unmask(std::string draws) {
  for (char& c : draws) c = static_cast<char>(c ^ kMask);
  std::vector<std::string> all;
  for (size_t i = 0; i < draws.size(); i += kKeyBytes) all.push_back(draws.substr(i, kKeyBytes));
  return all;
}

void AddSocket(const Key32& early, const std::vector<std::string>& all, const std::string& dialler,
               const std::string& acceptor, std::vector<Needle>* needles) {
  TCPX_REQUIRE(dialler.size() >= kHelloBytes + kProofBytes && acceptor.size() >= kAnswerFixedBytes + kNonceBytes);
  const std::string public_a = acceptor.substr(kAnswerFixedBytes, kNonceBytes);
  const std::string public_d = dialler.substr(kHelloBytes, kNonceBytes);
  const std::string t1 =
      absl::StrCat(dialler.substr(0, kHelloBytes), acceptor.substr(0, kAnswerFixedBytes), public_a, public_d);
  const std::string t2 = t1 + dialler.substr(kHelloBytes + kNonceBytes, kMacBytes);
  Key32 private_a;
  Key32 private_d;
  TCPX_REQUIRE(FindPrivate(all, public_a, &private_a) && FindPrivate(all, public_d, &private_d));
  AddPrivate("the acceptor's private key", private_a, needles);
  AddPrivate("the dialler's private key", private_d, needles);
  Key32 shared;
  TCPX_REQUIRE(EphemeralKey(private_a).Agree(public_d.data(), &shared));
  needles->push_back({"what both agreed upon", Text(shared)});
  needles->push_back({"what both agreed upon, in words", InWords(Text(shared))});
  const Key32 handshake = Extract(Derive(early, "derived", "").view(), shared.view());
  needles->push_back({"the handshake secret", Text(handshake)});
  const Key32 finished_s = Derive(handshake, "s hs traffic", t1);
  needles->push_back({"the dialler's handshake secret", Text(finished_s)});
  needles->push_back({"the dialler's key of proofs", Expand(finished_s, "finished", 32)});
  const Key32 master = Extract(Derive(handshake, "derived", "").view(), Key32().view());
  needles->push_back({"the master secret", Text(master)});
  AddTraffic("the acceptor", Derive(master, "c ap traffic", t2), needles);
  AddTraffic("the dialler", Derive(master, "s ap traffic", t2), needles);
}

std::vector<std::string> FindInMemory(int pid, const std::vector<Needle>& needles) {
  std::vector<std::string> found;
  const auto look = [&](const MemoryPiece& piece) {
    for (const Needle& needle : needles) {
      const void* const place = memmem(piece.data, piece.bytes, needle.bytes.data(), needle.bytes.size());
      if (place == nullptr) continue;
      const size_t offset = static_cast<size_t>(static_cast<const char*>(place) - piece.data);
      found.push_back(absl::StrCat(needle.name, " at ", absl::Hex(piece.address + offset), " in ", piece.mapping));
    }
  };
  TCPX_REQUIRE(ForEachPieceOfMemory(kNeedleMax, look, absl::StrCat(pid)));
  return found;
}

void SendText(Control* peer, const std::string& text) {
  const size_t bytes = text.size();
  peer->Send(&bytes, sizeof(bytes));
  peer->Send(text.data(), bytes);
}

std::string ReceiveText(Control* peer) {
  size_t bytes = 0;
  peer->Receive(&bytes, sizeof(bytes));
  std::string text(bytes, '\0');
  peer->Receive(&text[0], bytes);
  return text;
}

}  // namespace tcpx
