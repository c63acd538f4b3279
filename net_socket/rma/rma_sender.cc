#include "net_socket/rma/rma_sender.h"

#include <unistd.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "common/clock.h"

namespace tcpx {
namespace {

// More buffers or batches are freed.
constexpr size_t kSpares = 4;

}  // namespace

RmaSender::RmaSender(PluginApi* net, Context* context, int device, const void* handle, const RmaRecord& hello)
    : net_(net),
      context_(context),
      device_(device),
      handle_(static_cast<const char*>(handle), kHandleBytes),
      hello_(hello),
      regions_(net) {}

void RmaSender::Open() {
  if (state_ != State::kUnused) return;
  state_ = State::kOpen;
  Write(hello_, nullptr);
}

// Into the last one, unless it has gone or is full.
RmaSender::Batch& RmaSender::Write(const RmaRecord& record, const char* data) {
  const size_t space = record.Space();
  if (batches_.empty() || batches_.back().handed_over || batches_.back().used + space > kRmaBatchBytes) AppendBatch();
  Batch& batch = batches_.back();
  WriteRmaRecord(record, data, batch.bytes.get() + batch.used);
  batch.used += space;
  return batch;
}

void RmaSender::AppendBatch() {
  if (spare_batches_.empty()) spare_batches_.emplace_back();
  if (buffers_.empty()) buffers_.emplace_back(new char[kRmaBatchBytes]);
  batches_.push_back(std::move(spare_batches_.back()));
  batches_.back().bytes = std::move(buffers_.back());
  spare_batches_.pop_back();
  buffers_.pop_back();
}

void RmaSender::PopBatch() {
  Batch& batch = batches_.front();
  batch.used = 0;
  batch.requests.clear();
  batch.following.clear();
  batch.followed = 0;
  batch.handed_over = false;
  if (spare_batches_.size() < kSpares) spare_batches_.push_back(std::move(batch));
  batches_.pop_front();
}

void RmaSender::Add(const RmaRecord& record, const char* data, const RmaRegion* region, RmaRequest* request) {
  Open();
  Batch& batch = Write(record, data);
  if (record.follows) {
    batch.following.push_back({data, record.bytes, *region, request});
  } else if (request != nullptr) {
    batch.requests.push_back(request);
  }
}

absl::Status RmaSender::Flush() {
  if (!fresh_ || !up() || !owes()) return absl::OkStatus();
  const std::vector<Following>& following = batches_.back().following;
  if (!following.empty() && following.back().bytes < kRmaAloneBytes) return absl::OkStatus();
  fresh_ = false;
  bool moved = false;
  return Send(&moved);
}

absl::Status RmaSender::Progress(bool* moved) {
  if (state_ != State::kOpen) return absl::OkStatus();
  fresh_ = true;
  if (!up()) {
    auto comm = net_->Connect(context_, device_, handle_.data(), options_);
    if (!comm.ok() || *comm == nullptr) return comm.status();
    comm_ = *comm;
    *moved = true;
  }
  if (idle()) return AskIdle();
  absl::Status status = AskSent(++looks_ % kLooks == 0, moved);
  if (status.ok() && !batches_.empty()) status = Send(moved);
  if (!said_bye_ || !absl::IsUnavailable(status)) return status;
  Drop();
  return absl::OkStatus();
}

void RmaSender::Drop() {
  for (Batch& batch : batches_) {
    for (RmaRequest* one : batch.requests) RmaRequests::Finish(one);
    for (size_t i = batch.followed; i < batch.following.size(); ++i) RmaRequests::Finish(batch.following[i].request);
  }
  for (const Sent& one : sent_) RmaRequests::Finish(one.rma);
  batches_.clear();
  sent_.clear();
  peer_closed_ = true;
}

absl::Status RmaSender::AskIdle() {
  if (peer_closed_ || ++looks_ % kLooks != 0 || !net_->HasFailed(comm_)) return absl::OkStatus();
  return absl::UnavailableError("a connection of the group has failed");
}

absl::Status RmaSender::Send(bool* moved) {
  const size_t before = sent_.size();
  bool room = true;
  while (!batches_.empty() && room) {
    Batch& batch = batches_.front();
    absl::Status status = batch.handed_over ? absl::OkStatus() : SendBatch(&batch, &room);
    if (status.ok() && room) status = SendFollowing(&batch, &room);
    if (!status.ok()) return status;
    if (!room) break;
    PopBatch();
    *moved = true;
  }
  // A message that is not alone is sent with the next test.
  bool done = false;
  return sent_.size() > before && sent_.size() > 1 ? Ask(sent_.size() - 1, &done) : absl::OkStatus();
}

absl::Status RmaSender::SendBatch(Batch* batch, bool* room) {
  SendArgs args;
  args.data = batch->bytes.get();
  args.bytes = batch->used;
  if (!batch->following.empty()) args.next_bytes = batch->following.front().bytes;
  Request* request = nullptr;
  absl::Status status = Post(args, &request, room);
  if (!status.ok() || !*room) return status;
  for (RmaRequest* one : batch->requests) RmaRequests::Finish(one);
  batch->requests.clear();
  batch->handed_over = true;
  if (request != nullptr) sent_.push_back({request, std::move(batch->bytes)});
  return absl::OkStatus();
}

absl::Status RmaSender::Post(SendArgs args, Request** request, bool* room) {
  bool gone = false;
  if (said_bye_) args.peer_gone = &gone;
  absl::Status status = net_->Send(comm_, args, request);
  *room = *request != nullptr || gone;
  peer_closed_ = peer_closed_ || gone;
  return status;
}

absl::Status RmaSender::SendFollowing(Batch* batch, bool* room) {
  for (; batch->followed < batch->following.size(); ++batch->followed) {
    const Following& next = batch->following[batch->followed];
    auto region = regions_.For(comm_, next.region);
    if (!region.ok()) return region.status();
    SendArgs args;
    args.data = next.data;
    args.bytes = next.bytes;
    args.region = *region;
    Request* request = nullptr;
    absl::Status status = Post(args, &request, room);
    if (!status.ok() || !*room) return status;
    if (request == nullptr) {
      RmaRequests::Finish(next.request);
    } else {
      sent_.push_back({request, nullptr, next.request, next.region.id});
    }
  }
  return absl::OkStatus();
}

absl::Status RmaSender::AskSent(bool all, bool* moved) {
  for (size_t i = 0; i < sent_.size() && (all || i == 0);) {
    bool done = false;
    absl::Status status = Ask(i, &done);
    if (!status.ok()) return status;
    *moved = *moved || done;
    if (!done) ++i;
  }
  return absl::OkStatus();
}

absl::Status RmaSender::Ask(size_t index, bool* done) {
  Sent& one = sent_[index];
  absl::Status status = net_->Test(one.request, done, nullptr);
  if (!status.ok() || !*done) return status;
  RmaRequests::Finish(one.rma);
  if (one.bytes != nullptr && buffers_.size() < kSpares) buffers_.push_back(std::move(one.bytes));
  sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(index));
  return absl::OkStatus();
}

void RmaSender::SayBye(bool orderly) {
  if (!up() || said_bye_) return;
  said_bye_ = true;
  RmaRecord bye;
  bye.kind = RmaKind::kBye;
  bye.bytes = orderly ? 1 : 0;
  AppendBatch();  // The bye has its own.
  Write(bye, nullptr);
}

size_t RmaSender::waiting() const {
  size_t count = 0;
  for (const Batch& batch : batches_) count += batch.requests.size() + batch.following.size() - batch.followed;
  return count;
}

bool RmaSender::AwaitAnswers(uint32_t id, int64_t patience_ns) {
  const auto needs = [id](const Sent& one) { return one.bytes == nullptr && one.rma == nullptr && one.region == id; };
  const int64_t until_ns = MonotonicNanos() + patience_ns;
  bool moved = false;
  for (bool first = true; up() && absl::c_any_of(sent_, needs); first = false) {
    if (MonotonicNanos() >= until_ns) return false;
    if (!first) usleep(kRmaNapUs);
    if (!AskSent(true, &moved).ok()) return true;
  }
  return true;
}

// NCCL deregisters once the peer says that it has what it got, which may be before the connection says so.
absl::Status RmaSender::Forget(uint32_t id, int64_t patience_ns) {
  absl::Status lost;
  if (!AwaitAnswers(id, patience_ns)) lost = absl::UnavailableError("memory was deregistered before a get had it");
  for (const Batch& batch : batches_) {
    for (size_t i = batch.followed; i < batch.following.size(); ++i) {
      // The peer waits for it, and would wait for ever.
      if (batch.following[i].region.id == id) lost = absl::UnavailableError("memory was deregistered while in use");
    }
  }
  if (up()) regions_.Forget(comm_, id);
  return lost;
}

void RmaSender::Close() {
  if (up()) net_->CloseComm(comm_);
  comm_ = nullptr;
  state_ = State::kClosed;
}

}  // namespace tcpx
