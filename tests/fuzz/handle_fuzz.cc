// The handle that NCCL carries from listen to connect, as another rank, or another plugin, may have written it.
#include <cstring>
#include <vector>

#include "net_socket/message/wire.h"
#include "tests/fuzz/fuzz.h"

namespace tcpx {
namespace {

void Read(Input input) {
  std::string padded = input.TakeBytes(kHandleUsedBytes);
  padded.resize(kHandleUsedBytes);
  const std::vector<char> exact(padded.begin(), padded.end());
  Handle handle;
  if (DecodeHandle(exact.data(), &handle) != nullptr) return;
  Require(handle.address.valid() && handle.address.port() != 0, "a handle that decodes can be dialled");
  Require(handle.address.length() <= sizeof(sockaddr_in6), "length of the address");
  Require(!handle.address.ToString().empty(), "text of the address");
  const bool other = handle.other_address.valid();
  Require(other == (handle.other_nics > 0), "an address of the other family and its number of interfaces");
  Require(!other || handle.other_address.family() != handle.address.family(), "of the other family");
  char encoded[kHandleUsedBytes];
  EncodeHandle(handle, encoded);
  Handle again;
  Require(DecodeHandle(encoded, &again) == nullptr, "what was decoded can be decoded again");
  Require(again.address == handle.address && again.ticket == handle.ticket, "address and ticket");
  Require(again.other_address == handle.other_address && again.other_nics == handle.other_nics, "the other address");
}

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tcpx::Read(tcpx::Input(data, size));
  return 0;
}
