// A sealed socket, as somebody who has no key may make it: the first bytes say where reads end and what is done to
// records that the peer has sealed; the rest is bytes of his own, put in somewhere. Only a beginning of what was sealed
// ever comes out, whatever he does, and a fault stays.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "net_socket/seal/opener.h"
#include "net_socket/seal/sealer.h"
#include "tests/fuzz/fuzz.h"

namespace tcpx {
namespace {

TrafficKeys Keys() {
  TrafficKeys keys;
  keys.suite = CipherSuite::kChaCha20Poly1305;  // In every process.
  std::memset(keys.secret.data(), 3, Key32::size());
  keys.records_per_key = 3;
  return keys;
}

const std::vector<std::string>& Texts() {
  static const std::vector<std::string> texts = {"one", std::string(64, 'h'), std::string(700, 'p'), "four", "five"};
  return texts;
}

// The records of the texts.
const std::vector<std::string>& Records() {
  static const std::vector<std::string> records = [] {
    Sealer sealer(Keys(), std::make_shared<SealBuffers>());
    std::vector<std::string> made;
    for (const std::string& text : Texts()) {
      const iovec piece{const_cast<char*>(text.data()), text.size()};
      Require(sealer.Seal(&piece, 1), "it is sealed");
      made.emplace_back(static_cast<char*>(sealer.rest().iov_base), sealer.rest().iov_len);
      (void)sealer.Took(made.back().size());
    }
    return made;
  }();
  return records;
}

// What comes out, in reads of `step` bytes.
std::string Open(const std::string& stream, size_t step, bool in_place) {
  Opener opener(Keys(), std::make_shared<SealBuffers>());
  std::string out;
  size_t at = 0;
  while (at < stream.size() && !opener.broken()) {
    const iovec room = opener.Room(at % 2 == 0);
    const size_t part = std::min({step, room.iov_len, stream.size() - at});
    Require(part > 0, "there is room for more");
    std::memcpy(room.iov_base, stream.data() + at, part);
    opener.Took(part);
    at += part;
    while (const size_t plain = opener.next()) {
      Require(plain <= kSealedBytesMax, "a record is bounded");
      std::string text(plain, '\0');
      const char* place = in_place ? opener.OpenInPlace() : opener.Open(&text[0]) ? text.data() : nullptr;
      if (place != nullptr) out.append(place, plain);
    }
    if (step % 3 == 0) opener.GiveBack();
  }
  if (opener.broken()) Require(opener.next() == 0 && !opener.Open(&out[0]), "a fault stays");
  return out;
}

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tcpx;
  Input input(data, size);
  const size_t step = size_t{input.Take<uint8_t>()} + 1;
  const size_t order = input.Take<uint8_t>();
  const size_t where = input.Take<uint16_t>();
  const size_t changed = input.Take<uint8_t>() % 5;
  const std::string own = input.TakeBytes(size);
  std::string all;
  for (const std::string& text : Texts()) all += text;
  std::string stream;
  for (size_t i = 0; i < Records().size(); ++i) stream += Records()[(order + i * (1 + order / 32)) % Records().size()];
  const size_t at = std::min(where, stream.size());
  if (changed == 1) stream.insert(at, own);
  if (changed == 2) stream = own;
  if (changed == 3) stream.replace(at, own.size(), own);
  if (changed == 4) stream.resize(at);
  const std::string out = Open(stream, step, false);
  Require(all.compare(0, out.size(), out) == 0, "what comes out is what was sealed, in order");
  Require(Open(stream, stream.size() + 1, true) == out, "the result does not depend on where a read ends");
  return 0;
}
