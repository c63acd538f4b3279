#include "net_socket/rma/rma_sender.h"

#include <utility>

namespace tcpx {
namespace {

// More are freed.
constexpr size_t kSpareBuffers = 4;

}  // namespace

RmaSender::RmaSender(PluginApi* net, Context* context, int device, const void* handle, const RmaRecord& hello)
    : net_(net),
      context_(context),
      device_(device),
      handle_(static_cast<const char*>(handle), kHandleBytes),
      regions_(net) {
  Batch* const batch = OpenBatch(hello.Space());
  WriteRmaRecord(hello, nullptr, batch->bytes.get());
  batch->used = hello.Space();
}

std::unique_ptr<char[]> RmaSender::TakeBuffer() {
  if (buffers_.empty()) return std::unique_ptr<char[]>(new char[kRmaBatchBytes]);
  auto buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

// The last one, unless it has gone or is full.
RmaSender::Batch* RmaSender::OpenBatch(size_t space) {
  if (batches_.empty() || batches_.back().handed_over || batches_.back().used + space > kRmaBatchBytes) {
    batches_.emplace_back();
    batches_.back().bytes = TakeBuffer();
  }
  return &batches_.back();
}

absl::Status RmaSender::Add(const RmaRecord& record, const char* data, const RmaRegion* region, RmaRequest* request) {
  Open();
  Batch* const batch = OpenBatch(record.Space());
  WriteRmaRecord(record, data, batch->bytes.get() + batch->used);
  batch->used += record.Space();
  if (record.follows) {
    batch->following.push_back({data, record.bytes, *region, request});
  } else if (request != nullptr) {
    batch->requests.push_back(request);
  }
  return absl::OkStatus();
}

absl::Status RmaSender::Flush() {
  if (!fresh_ || !up()) return absl::OkStatus();
  fresh_ = false;
  bool moved = false;
  return Send(&moved);
}

absl::Status RmaSender::Progress(bool* moved) {
  if (state_ == State::kUnused || state_ == State::kClosed) return absl::OkStatus();
  fresh_ = true;
  if (state_ == State::kDialling) {
    absl::Status status = Dial(moved);
    if (!status.ok() || !up()) return status;
  }
  absl::Status status = AskSent(moved);
  if (status.ok() && !batches_.empty()) status = Send(moved);
  return status;
}

absl::Status RmaSender::Dial(bool* moved) {
  auto comm = net_->Connect(context_, device_, handle_.data(), ConnectOptions());
  if (!comm.ok()) return comm.status();
  if (*comm == nullptr) return absl::OkStatus();
  comm_ = *comm;
  state_ = State::kUp;
  *moved = true;
  return absl::OkStatus();
}

absl::Status RmaSender::Send(bool* moved) {
  bool room = true;
  while (!batches_.empty()) {
    Batch& batch = batches_.front();
    absl::Status status = batch.handed_over ? absl::OkStatus() : SendBatch(&batch, &room);
    if (status.ok() && room) status = SendFollowing(&batch, &room);
    if (!status.ok() || !room) return status;
    batches_.pop_front();
    *moved = true;
  }
  return absl::OkStatus();
}

absl::Status RmaSender::SendBatch(Batch* batch, bool* room) {
  SendArgs args;
  args.data = batch->bytes.get();
  args.bytes = batch->used;
  args.farewell = batch->farewell;
  Request* request = nullptr;
  absl::Status status = net_->Send(comm_, args, &request);
  *room = request != nullptr || args.farewell;
  if (!status.ok() || !*room) return status;
  for (RmaRequest* one : batch->requests) RmaRequests::Finish(one);
  batch->handed_over = true;
  if (request != nullptr) sent_.push_back({request, std::move(batch->bytes), nullptr});
  return absl::OkStatus();
}

absl::Status RmaSender::SendFollowing(Batch* batch, bool* room) {
  for (; !batch->following.empty(); batch->following.pop_front()) {
    const Following& next = batch->following.front();
    auto region = regions_.For(comm_, next.region);
    if (!region.ok()) return region.status();
    SendArgs args;
    args.data = next.data;
    args.bytes = next.bytes;
    args.region = *region;
    Request* request = nullptr;
    absl::Status status = net_->Send(comm_, args, &request);
    *room = request != nullptr;
    if (!status.ok() || !*room) return status;
    sent_.push_back({request, nullptr, next.request});
  }
  return absl::OkStatus();
}

absl::Status RmaSender::AskSent(bool* moved) {
  for (size_t i = 0; i < sent_.size();) {
    Sent& one = sent_[i];
    bool done = false;
    absl::Status status = net_->Test(one.request, &done, nullptr);
    if (!status.ok()) return status;
    if (!done) {
      ++i;
      continue;
    }
    *moved = true;
    RmaRequests::Finish(one.rma);
    if (one.bytes != nullptr && buffers_.size() < kSpareBuffers) buffers_.push_back(std::move(one.bytes));
    sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return absl::OkStatus();
}

void RmaSender::SayBye() {
  if (!up()) return;
  RmaRecord bye;
  bye.kind = RmaKind::kBye;
  Batch* const batch = OpenBatch(bye.Space());
  WriteRmaRecord(bye, nullptr, batch->bytes.get() + batch->used);
  batch->used += bye.Space();
  batch->farewell = true;
}

void RmaSender::Forget(uint32_t id) {
  for (Batch& batch : batches_) {
    for (const Following& next : batch.following) {
      // The peer waits for it, and would wait for ever.
      if (next.region.id == id && up())
        net_->Fail(comm_, absl::UnavailableError("memory was deregistered while in use"));
    }
  }
  if (up()) regions_.Forget(comm_, id);
}

void RmaSender::Close() {
  if (up()) net_->CloseSend(comm_);
  comm_ = nullptr;
  state_ = State::kClosed;
}

}  // namespace tcpx
