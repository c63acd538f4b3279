#include "net_socket/connect/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bitset>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/fd.h"
#include "common/status.h"

namespace tcpx {
namespace {

static_assert(kMacBytes == crypto_auth_hmacsha256_BYTES);

// With room for a newline, and for a byte that is too many.
constexpr size_t kPlaceBytes = Secret::kBytesMax + 3;
// deploy/kubernetes/secret.yaml.
constexpr absl::string_view kPlaceholder = "replace-this-by-";

absl::Status Refusal(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("TCPX_SECRET_FILE ", path, " ", why));
}

absl::StatusOr<absl::string_view> Read(const std::string& path, int fd, const KeyPages& place) {
  size_t bytes = 0;
  while (bytes < kPlaceBytes) {
    const ssize_t got = read(fd, place.data() + bytes, kPlaceBytes - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Refusal(path, absl::StrCat("can't be read: ", ErrnoText(errno)));
    if (got == 0) break;
    bytes += static_cast<size_t>(got);
  }
  return absl::string_view(reinterpret_cast<const char*>(place.data()), bytes);
}

absl::string_view WithoutNewline(absl::string_view text) {
  return absl::StripSuffix(absl::StripSuffix(text, "\n"), "\r");
}

// What no random text of this length has fewer of: sixteen random bytes have 12 at least, 32 of them 25, and so has
// what base64 makes of these; there are 16 hexadecimal digits, and two or three may be missing among 64.
size_t DifferentMin(size_t bytes) { return bytes < 32 ? 8 : bytes < 64 ? 16 : 12; }

absl::Status CheckStrength(const std::string& path, absl::string_view secret) {
  const auto weak = [&path](absl::string_view why) {
    return Refusal(path, absl::StrCat(why, ": make another one (umask 077; openssl rand -base64 32 >", path,
                                      ") and copy it to all ranks"));
  };
  if (secret.empty()) return weak("is empty");
  if (secret.size() < Secret::kBytesMin) {
    return weak(absl::StrCat("holds ", secret.size(), " bytes, which can be guessed, and needs ", Secret::kBytesMin));
  }
  if (secret.size() > Secret::kBytesMax) return weak(absl::StrCat("holds more than ", Secret::kBytesMax, " bytes"));
  if (absl::StartsWith(secret, kPlaceholder)) return weak("holds the placeholder of the manifest, which all know");
  std::bitset<256> seen;
  for (const char byte : secret) seen.set(static_cast<uint8_t>(byte));
  if (seen.count() >= DifferentMin(secret.size())) return absl::OkStatus();
  return weak(absl::StrCat("holds only ", seen.count(), " different bytes, and can be guessed"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Secret>> Secret::Load(const std::string& path) {
  // Non-blocking: a pipe without a writer would hold init up.
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return Refusal(path, absl::StrCat("can't be opened: ", ErrnoText(errno)));
  struct stat file;
  if (fstat(fd.get(), &file) != 0 || !S_ISREG(file.st_mode)) return Refusal(path, "is not a file");
  if ((file.st_mode & (S_IROTH | S_IWOTH)) != 0) {
    return Refusal(path, absl::StrCat("can be read or written by every user of this host: chmod 600 ", path,
                                      " (in a Kubernetes secret volume: defaultMode 0400); if others have had it long, "
                                      "make another one (openssl rand -base64 32)"));
  }
  const KeyPages place(kPlaceBytes);
  const auto read = Read(path, fd.get(), place);
  if (!read.ok()) return read.status();
  const absl::string_view bytes = WithoutNewline(*read);
  absl::Status strength = CheckStrength(path, bytes);
  if (!strength.ok()) return strength;
  return std::make_unique<Secret>(bytes);
}

Mac Secret::Sign(std::initializer_list<absl::string_view> parts) const {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key_.data(), bytes_);
  for (absl::string_view part : parts) {
    crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
  }
  Mac mac;
  crypto_auth_hmacsha256_final(&state, mac.data());
  sodium_memzero(&state, sizeof(state));
  return mac;
}

bool Secret::Same(const Mac& expected, const char* mac) {
  return sodium_memcmp(expected.data(), mac, expected.size()) == 0;
}

}  // namespace tcpx
