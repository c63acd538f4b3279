#include "net_socket/rma/group_gpu.h"

#include <cstring>
#include <utility>

#include "net_socket/gpu/gpu_hub.h"
#include "net_socket/gpu/gpu_pool.h"
#include "net_socket/gpu/gpu_writer.h"

namespace tcpx {

absl::StatusOr<MemoryType> GroupGpu::Prepare(const char* data, size_t bytes, MemoryType type) {
  if (hub_ == nullptr) return MemoryType::kHost;
  if (type == MemoryType::kHost) {
    const absl::Status status = hub_->CheckHost(data);
    if (!status.ok()) return status;
    return type;
  }
  // Windows of a CPU's memory that CUDA has allocated: NCCL calls them GPU memory.
  if (hub_->KnowsAsHost(data)) return MemoryType::kHost;
  auto writer = hub_->WriterFor(data, device_);
  if (!writer.ok()) return writer.status();
  if (writer_ != nullptr && writer_ != *writer) {
    return absl::InvalidArgumentError("regMrSym: a group serves the memory of one GPU");
  }
  if (std::exchange(writer_, *writer) == nullptr) {
    const absl::Status status = Reserve(data);
    if (!status.ok()) return status;
  }
  writer_->BeginRegion(data, bytes);
  return MemoryType::kCuda;
}

absl::Status GroupGpu::Reserve(const char* data) {
  for (const bool sending : {true, false}) {
    auto pool = hub_->PoolFor(data, device_, sending);
    if (!pool.ok()) return pool.status();
    reserved_.push_back(*pool);
    const absl::Status status = (*pool)->ReserveExtra(slots_);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

GroupGpu::~GroupGpu() {
  for (GpuPool* pool : reserved_) pool->ForgoExtra(slots_);
}

absl::Status GroupGpu::Do(const CheckedOperation& operation, RmaRequest* request) {
  absl::Status status = CheckHere(operation);
  if (!status.ok()) {
    RmaRequests::Finish(request);
    return status;
  }
  const RmaRecord& record = operation.record;
  if (record.bytes > 0) {
    char* const remote = operation.remote->data + record.offset;
    const bool gets = record.kind == RmaKind::kGet;
    char* const to = gets ? operation.data : remote;
    const char* const from = gets ? remote : operation.data;
    const bool on_gpu = operation.local->on_gpu() || operation.remote->on_gpu();
    if (on_gpu) status = writer_->Copy(to, from, record.bytes);
    if (!on_gpu) std::memmove(to, from, record.bytes);
  }
  const RmaRegion* const signal = operation.signal;
  char* const word = signal == nullptr ? nullptr : signal->data + record.signal_offset;
  const bool on_host = signal != nullptr && !signal->on_gpu();
  if (status.ok() && signal != nullptr && !on_host) status = writer_->Add(word, record.signal_add, signal->ours());
  own_.push_back({writer_ == nullptr ? 0 : writer_->last(), request, on_host ? word : nullptr, record.signal_add});
  FinishReached();
  return status;
}

// In order: a strong signal covers what came before.
void GroupGpu::FinishReached() {
  while (!own_.empty() && (writer_ == nullptr || writer_->Reached(own_.front().number))) {
    const Own& first = own_.front();
    if (first.host_word != nullptr) AddToHostWord(first.host_word, first.add);
    RmaRequests::Finish(first.request);
    own_.pop_front();
  }
}

absl::Status GroupGpu::Poll(bool* moved) {
  if (writer_ == nullptr) return absl::OkStatus();
  uint64_t steps = 0;
  const absl::Status status = writer_->Poll(&steps);
  FinishReached();
  if (std::exchange(steps_, steps) != steps) *moved = true;
  return status;
}

// What is lost of a writer that has failed is never done: its groups fail, too.
absl::Status GroupGpu::Await(Mutex& mutex) {
  if (writer_ == nullptr) return absl::OkStatus();
  mutex.unlock();
  const absl::Status status = writer_->Await();
  mutex.lock();
  FinishReached();
  if (writer_->failed()) own_.clear();
  return status;
}

void GroupGpu::Forget(const RmaRegion& region) {
  if (writer_ != nullptr && region.on_gpu()) writer_->EndRegion(region.data, region.bytes);
}

}  // namespace tcpx
