#include "bench/net_bench/plugin_link.h"

#include <sched.h>
#include <string.h>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace bench {

absl::StatusOr<std::unique_ptr<PluginLink>> PluginLink::Create(const PluginLinkShape& shape, PluginHost* host,
                                                               Control* control, SlotRing* send_slots,
                                                               SlotRing* receive_slots, Position* position) {
  return CreateBetween(shape, host, control, control, send_slots, receive_slots, position);
}

absl::StatusOr<std::unique_ptr<PluginLink>> PluginLink::CreateBetween(const PluginLinkShape& shape, PluginHost* host,
                                                                      Control* from, Control* to, SlotRing* send_slots,
                                                                      SlotRing* receive_slots, Position* position) {
  std::unique_ptr<PluginLink> link(new PluginLink(shape, host, position));
  std::vector<uint8_t> said;
  if (shape.receives) {
    absl::StatusOr<std::vector<uint8_t>> handles = link->ListenAll();
    if (!handles.ok()) return handles.status();
    said = *std::move(handles);
  }
  std::vector<uint8_t> heard;
  absl::Status status = from->Exchange(shape.receives ? &said : nullptr, to, shape.sends ? &heard : nullptr,
                                       sizeof(Handle) * static_cast<size_t>(shape.connections));
  if (status.ok() && shape.sends) status = link->TakeHandles(heard);
  if (status.ok()) status = link->ConnectAll();
  if (status.ok()) status = link->RegisterAll(send_slots, receive_slots);
  if (!status.ok()) return status;
  return link;
}

absl::StatusOr<std::vector<uint8_t>> PluginLink::ListenAll() {
  position_->Enter(Stage::kListen);
  std::vector<uint8_t> handles;
  for (size_t i = 0; i < pending_.size(); ++i) {
    position_->At(static_cast<uint32_t>(i), 0);
    Handle handle = {};
    const absl::Status status = ResultStatus(
        "listen", host_->client()->Listen(host_->context(), host_->device(), handle.data(), &pending_[i].listen));
    if (!status.ok()) return status;
    handles.insert(handles.end(), handle.begin(), handle.end());
  }
  return handles;
}

absl::Status PluginLink::TakeHandles(const std::vector<uint8_t>& blob) {
  if (blob.size() != pending_.size() * sizeof(Handle)) {
    return absl::InternalError(absl::StrCat(blob.size(), " bytes of handles for ", pending_.size(), " connections"));
  }
  for (size_t i = 0; i < pending_.size(); ++i) {
    memcpy(pending_[i].handle.data(), blob.data() + i * sizeof(Handle), sizeof(Handle));
  }
  return absl::OkStatus();
}

absl::Status PluginLink::ConnectAll() {
  position_->Enter(Stage::kConnect);
  std::vector<size_t> waiting(pending_.size());
  for (size_t i = 0; i < waiting.size(); ++i) waiting[i] = i;
  while (!waiting.empty()) {
    std::vector<size_t> still;
    for (size_t index : waiting) {
      absl::StatusOr<bool> ready = Poll(index);
      if (!ready.ok()) {
        return absl::Status(ready.status().code(), absl::StrCat(ready.status().message(), " (connection ", index, ")"));
      }
      if (!*ready) still.push_back(index);
    }
    if (still.size() < waiting.size()) position_->Tick();
    if (!still.empty()) {
      position_->connection.store(static_cast<uint32_t>(still.front()), std::memory_order_relaxed);
      sched_yield();
    }
    waiting.swap(still);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> PluginLink::Poll(size_t index) {
  Pending& p = pending_[index];
  NetClient* client = host_->client();
  if (shape_.sends && p.send == nullptr) {
    const absl::Status status =
        ResultStatus("connect", client->Connect(host_->context(), host_->device(), p.handle.data(), &p.send));
    if (!status.ok()) return status;
  }
  if (shape_.receives && p.receive == nullptr) {
    absl::Status status = ResultStatus("accept", client->Accept(p.listen, &p.receive));
    if (status.ok() && p.receive != nullptr) status = ResultStatus("closeListen", client->CloseListen(p.listen));
    if (!status.ok()) return status;
  }
  return (p.send != nullptr || !shape_.sends) && (p.receive != nullptr || !shape_.receives);
}

absl::Status PluginLink::RegisterAll(SlotRing* send_slots, SlotRing* receive_slots) {
  position_->Enter(Stage::kRegister);
  registered_ = send_slots != nullptr && receive_slots != nullptr;
  for (size_t i = 0; i < pending_.size(); ++i) {
    position_->At(static_cast<uint32_t>(i), 0);
    for (const bool sends : {true, false}) {
      void* comm = sends ? pending_[i].send : pending_[i].receive;
      absl::StatusOr<Channel*> channel =
          AddChannel(comm, sends ? send_slots : receive_slots, static_cast<int>(i), sends);
      if (!channel.ok()) return channel.status();
      (sends ? sends_ : receives_).push_back(*channel);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Channel*> PluginLink::AddChannel(void* comm, SlotRing* slots, int region, bool sends) {
  if (comm == nullptr) return static_cast<Channel*>(nullptr);
  void* mhandle = nullptr;
  if (registered_) {
    const absl::Status status = ResultStatus(
        "regMr", host_->client()->RegMr(comm, slots->Region(region), slots->region_bytes(), NCCL_PTR_HOST, &mhandle));
    if (!status.ok()) return status;
  }
  channels_.push_back(std::make_unique<PluginChannel>(host_, comm, mhandle, sends));
  return channels_.back().get();
}

absl::Status PluginLink::Close() {
  NetClient* client = host_->client();
  position_->Enter(Stage::kDeregister);
  absl::Status status;
  for (const auto& channel : channels_) {
    // A null mhandle is given back too, as NCCL does.
    if (registered_) status.Update(ResultStatus("deregMr", client->DeregMr(channel->comm(), channel->mhandle())));
    position_->Tick();
  }
  position_->Enter(Stage::kCloseComm);
  for (Channel* channel : sends_) {
    if (channel == nullptr) continue;
    status.Update(ResultStatus("closeSend", client->CloseSend(static_cast<PluginChannel*>(channel)->comm())));
    position_->Tick();
  }
  for (Channel* channel : receives_) {
    if (channel == nullptr) continue;
    status.Update(ResultStatus("closeRecv", client->CloseRecv(static_cast<PluginChannel*>(channel)->comm())));
    position_->Tick();
  }
  return status;
}

void PluginLink::SetOptional(bool optional) {
  for (auto& channel : channels_) channel->set_optional(optional);
}

}  // namespace bench
}  // namespace tcpx
