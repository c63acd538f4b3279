#include "bench/net_bench/rma_link.h"

#include "bench/net_bench/plugin_host.h"

namespace tcpx {
namespace bench {

Step RmaSendChannel::Post(uint8_t* data, size_t bytes) {
  if (posted_ - done_ == kPlaces) return Step::kAgain;
  const uint64_t offset = static_cast<uint64_t>(data - parts_->send_base);
  // Both sides have the same layout of slots.
  const RmaRange range = {parts_->send_region, offset, parts_->receive_region, offset, bytes, parts_->peer};
  const RmaSignal signal = {parts_->signal_region};
  Message& message = messages_[posted_ % kPlaces];
  const ncclResult_t result =
      parts_->client->IputSignal(parts_->contexts, 0, range, signal, ncclRmaOptFlagsDefault, &message.request);
  if (result != ncclSuccess || message.request == nullptr) {
    failure_ = ResultText("iputSignal", result);
    return Step::kFailed;
  }
  message.bytes = bytes;
  ++posted_;
  return Step::kDone;
}

Step RmaSendChannel::Test(size_t* bytes) {
  const Message& message = messages_[done_ % kPlaces];
  int done = 0;
  const ncclResult_t result = parts_->client->Test(parts_->group, message.request, &done);
  if (result != ncclSuccess) {
    failure_ = ResultText("test", result);
    return Step::kFailed;
  }
  if (done == 0) return Step::kAgain;
  *bytes = message.bytes;
  ++done_;
  return Step::kDone;
}

Step RmaReceiveChannel::Post(uint8_t*, size_t bytes) {
  bytes_ = bytes;
  return Step::kDone;
}

Step RmaReceiveChannel::Test(size_t* bytes) {
  if (__atomic_load_n(&parts_->word, __ATOMIC_ACQUIRE) == done_) {
    const ncclResult_t result = parts_->client->Progress(parts_->contexts);
    if (result != ncclSuccess) {
      failure_ = ResultText("rmaProgress", result);
      return Step::kFailed;
    }
    if (__atomic_load_n(&parts_->word, __ATOMIC_ACQUIRE) == done_) return Step::kAgain;
  }
  *bytes = bytes_;
  ++done_;
  return Step::kDone;
}

RmaLink::RmaLink(RmaHost* host, Position* position)
    : host_(host), position_(position), sends_{&send_}, receives_{&receive_} {
  parts_.client = host->client();
}

absl::StatusOr<std::unique_ptr<RmaLink>> RmaLink::Create(RmaHost* host, int rank, Control* control,
                                                         SlotRing* send_slots, SlotRing* receive_slots,
                                                         Position* position) {
  std::unique_ptr<RmaLink> link(new RmaLink(host, position));
  absl::Status status = link->Connect(rank, control);
  if (status.ok()) status = link->Register(send_slots, receive_slots);
  // A put may come only once this side has registered too.
  if (status.ok()) status = control->Meet(rank == 0);
  if (!status.ok()) return status;
  return link;
}

absl::Status RmaLink::Connect(int rank, Control* control) {
  std::array<std::array<char, NCCL_NET_HANDLE_MAXSIZE>, 2> handles = {};
  const size_t own = static_cast<size_t>(rank);
  void* listen = nullptr;
  position_->Enter(Stage::kListen);
  absl::Status status =
      ResultStatus("listen", parts_.client->Listen(host_->context(), host_->device(), handles[own].data(), &listen));
  if (status.ok()) status = control->Send(handles[own]);
  if (status.ok()) status = control->Receive(&handles[1 - own]);
  if (!status.ok()) return status;
  position_->Enter(Stage::kConnect);
  void* all[] = {handles[0].data(), handles[1].data()};
  parts_.peer = static_cast<uint32_t>(1 - rank);
  status = ResultStatus("connect", parts_.client->Connect(host_->context(), all, 2, rank, listen, &parts_.group));
  if (status.ok()) status = ResultStatus("closeListen", parts_.client->CloseListen(listen));
  if (!status.ok()) return status;
  const int undefined = NCCL_NET_TRAFFIC_CLASS_UNDEF;
  return ResultStatus("createContext", parts_.client->CreateContext(parts_.group, 1, undefined, &parts_.contexts));
}

absl::Status RmaLink::Register(SlotRing* send_slots, SlotRing* receive_slots) {
  position_->Enter(Stage::kRegister);
  parts_.send_base = send_slots->Region(0);
  const auto reg = [this](void* data, size_t bytes, uint64_t flags, void** mhandle) {
    return ResultStatus("regMrSym", parts_.client->RegMrSym(parts_.group, data, bytes, NCCL_PTR_HOST, flags, mhandle));
  };
  absl::Status status = reg(send_slots->Region(0), send_slots->region_bytes(), 0, &parts_.send_region);
  status.Update(reg(receive_slots->Region(0), receive_slots->region_bytes(), 0, &parts_.receive_region));
  status.Update(reg(&parts_.word, sizeof(parts_.word), NCCL_NET_MR_FLAG_FORCE_SO, &parts_.signal_region));
  return status;
}

// As ncclCommDestroy: windows first, then contexts, then NCCL's own regions.
absl::Status RmaLink::Close() {
  position_->Enter(Stage::kDeregister);
  absl::Status status;
  for (void* region : {parts_.send_region, parts_.receive_region}) {
    status.Update(ResultStatus("deregMrSym", parts_.client->DeregMrSym(parts_.group, region)));
  }
  status.Update(ResultStatus("destroyContext", parts_.client->DestroyContext(parts_.contexts)));
  status.Update(ResultStatus("deregMrSym", parts_.client->DeregMrSym(parts_.group, parts_.signal_region)));
  position_->Enter(Stage::kCloseComm);
  status.Update(ResultStatus("closeColl", parts_.client->CloseColl(parts_.group)));
  return status;
}

}  // namespace bench
}  // namespace tcpx
