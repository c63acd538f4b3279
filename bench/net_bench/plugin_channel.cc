#include "bench/net_bench/plugin_channel.h"

#include "bench/net_bench/buffers.h"

namespace tcpx {
namespace bench {
namespace {

// The tag of a message is the sender's rank in NCCL; with one buffer per receive nothing is matched by it.
constexpr int kTag = 0;

}  // namespace

Step PluginChannel::Post(uint8_t* data, size_t bytes) {
  if (posted_ - done_ == kPlaces) return Step::kAgain;
  void** request = &requests_[posted_ % kPlaces];
  ncclResult_t result;
  if (sends_) {
    result = client_->Isend(comm_, data, bytes, kTag, mhandle_, parent_, request);
  } else {
    void* buffer = data;
    size_t capacity = bytes + kSpareCapacity;
    int tag = kTag;
    void* mhandle = mhandle_;
    void* phandle = parent_;
    if (optional_) *request = reinterpret_cast<void*>(static_cast<intptr_t>(NCCL_NET_OPTIONAL_RECV_COMPLETION));
    result = client_->Irecv(comm_, 1, &buffer, &capacity, &tag, &mhandle, &phandle, request);
  }
  if (result != ncclSuccess) return Failed(sends_ ? "isend" : "irecv", result);
  if (*request == nullptr) return Step::kAgain;
  ++posted_;
  return Step::kDone;
}

Step PluginChannel::Test(size_t* bytes) {
  int done = 0;
  int size = 0;
  const ncclResult_t result = client_->Test(requests_[done_ % kPlaces], &done, &size);
  if (result != ncclSuccess) return Failed("test", result);
  if (done == 0) return Step::kAgain;
  *bytes = static_cast<size_t>(size);
  ++done_;
  return Step::kDone;
}

Step PluginChannel::Failed(const char* function, ncclResult_t result) {
  failure_ = ResultText(function, result);
  return Step::kFailed;
}

}  // namespace bench
}  // namespace tcpx
