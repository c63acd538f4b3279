#include "net_socket/connect/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/fd.h"
#include "common/status.h"

namespace tcpx {
namespace {

static_assert(kMacBytes == crypto_auth_hmacsha256_BYTES);

// A place for the secret, wiped at its end. With room for a newline, and for a byte that is too many.
struct Place {
  ~Place() { sodium_memzero(data, sizeof(data)); }
  char data[Secret::kBytesMax + 3];
  size_t bytes = 0;
};

absl::Status Refusal(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("TCPX_SECRET_FILE ", path, " ", why));
}

absl::Status Read(const std::string& path, int fd, Place* place) {
  while (place->bytes < sizeof(place->data)) {
    const ssize_t got = read(fd, place->data + place->bytes, sizeof(place->data) - place->bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Refusal(path, absl::StrCat("can't be read: ", ErrnoText(errno)));
    if (got == 0) break;
    place->bytes += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::string_view WithoutNewline(absl::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

absl::Status CheckLength(const std::string& path, size_t bytes) {
  if (bytes == 0) return Refusal(path, "is empty: write the same random text for all ranks");
  if (bytes < Secret::kBytesMin) {
    return Refusal(path, absl::StrCat("holds ", bytes, " bytes, which can be guessed: write at least ",
                                      Secret::kBytesMin, " random ones"));
  }
  if (bytes > Secret::kBytesMax) return Refusal(path, absl::StrCat("holds more than ", Secret::kBytesMax, " bytes"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Secret>> Secret::Load(const std::string& path, std::string* warning) {
  // Non-blocking: a pipe without a writer would hold init up.
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return Refusal(path, absl::StrCat("can't be opened: ", ErrnoText(errno)));
  struct stat file;
  if (fstat(fd.get(), &file) != 0 || !S_ISREG(file.st_mode)) return Refusal(path, "is not a file");
  if ((file.st_mode & S_IROTH) != 0) {
    *warning = absl::StrCat("TCPX_SECRET_FILE ", path,
                            " can be read by every user of this host: take that right away (chmod o-r; in a Kubernetes "
                            "secret volume: defaultMode 0400)");
  }
  Place place;
  absl::Status read = Read(path, fd.get(), &place);
  if (!read.ok()) return read;
  const absl::string_view bytes = WithoutNewline(absl::string_view(place.data, place.bytes));
  absl::Status length = CheckLength(path, bytes.size());
  if (!length.ok()) return length;
  return std::make_unique<Secret>(bytes);
}

Secret::Secret(absl::string_view bytes) : bytes_(bytes.size()), key_(new unsigned char[bytes.size()]) {
  std::memcpy(key_.get(), bytes.data(), bytes_);
}

Secret::~Secret() { sodium_memzero(key_.get(), bytes_); }

Mac Secret::Sign(std::initializer_list<absl::string_view> parts) const {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key_.get(), bytes_);
  for (absl::string_view part : parts) {
    crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
  }
  Mac mac;
  crypto_auth_hmacsha256_final(&state, mac.data());
  sodium_memzero(&state, sizeof(state));
  return mac;
}

Key32 Secret::Early() const {
  return Extract(Key32().view(), absl::string_view(reinterpret_cast<const char*>(key_.get()), bytes_));
}

bool Secret::Same(const Mac& expected, const char* mac) {
  return sodium_memcmp(expected.data(), mac, expected.size()) == 0;
}

}  // namespace tcpx
