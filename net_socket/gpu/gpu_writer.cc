#include "net_socket/gpu/gpu_writer.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/log.h"

namespace tcpx {

// Words that are read at a time.
constexpr size_t kWords = 64;
// Additions that are not written: a receiver takes no more of its peer's meanwhile.
constexpr size_t kAdditionsMax = 1024;
constexpr size_t kWordsBytes = kWords * sizeof(uint64_t);

absl::StatusOr<std::unique_ptr<GpuWriter>> GpuWriter::Open(GpuPool* pool, std::unique_ptr<GdrCopy> gdr) {
  const GpuDriver& driver = pool->driver();
  if (!driver.writes_words()) return absl::FailedPreconditionError("the CUDA driver can't write signals");
  auto slot = pool->TakeExtra();
  if (!slot.ok()) return slot.status();
  std::unique_ptr<GpuWriter> writer(new GpuWriter(pool, *slot, std::move(gdr)));
  GpuScope scope(driver, writer->context());
  absl::Status status = scope.status();
  if (status.ok()) {
    status = driver.Check(driver.api().stream_create(&writer->stream_, kCuStreamNonBlocking), "cuStreamCreate");
  }
  if (!status.ok()) return status;
  return writer;
}

// The context may be gone, and the driver too: what fails here, fails. Groups have waited for what they gave.
GpuWriter::~GpuWriter() {
  if (stream_ != nullptr && !Await().ok()) {
    pool_->LoseExtra();
    return;
  }
  GpuScope scope(pool_->driver(), context());
  if (stream_ != nullptr && scope.status().ok()) (void)api().stream_destroy(stream_);
  pool_->GiveExtra(slot_);
}

absl::Status GpuWriter::Enter(const GpuScope& scope) {
  if (status_.ok()) status_ = scope.status();
  return status_;
}

absl::Status GpuWriter::Step(int result, const char* call) {
  ++steps_;
  if (status_.ok()) status_ = pool_->driver().Check(result, call);
  return status_;
}

char* GpuWriter::Reserve(size_t bytes) {
  const size_t size = pool_->slot_bytes() - kWordsBytes;
  uint64_t at = ring_head_;
  if (at % size + bytes > size) at += size - at % size;
  if (at + bytes - done_.ring > size) return nullptr;
  ring_head_ = at + bytes;
  return slot_->data + kWordsBytes + at % size;
}

absl::Status GpuWriter::Put(char* to, absl::string_view bytes, bool* room) {
  MutexLock lock(mutex_);
  const GdrCopy::Place direct = DirectPlace(to, bytes.size());
  if (direct.view != nullptr) {
    *room = true;
    gdr_->Write(direct, bytes);
    done_.number = ++last_;
    return absl::OkStatus();
  }
  char* const place = Reserve(bytes.size());
  *room = place != nullptr;
  if (place == nullptr) return status_;
  GpuScope scope(pool_->driver(), context());
  if (!Enter(scope).ok()) return status_;
  std::memcpy(place, bytes.data(), bytes.size());
  ++last_;
  return Step(api().copy_to_device(CuAddressOf(to), place, bytes.size(), stream_), "cuMemcpyHtoDAsync");
}

absl::Status GpuWriter::Copy(char* to, const char* from, size_t bytes) {
  MutexLock lock(mutex_);
  GpuScope scope(pool_->driver(), context());
  if (!Enter(scope).ok()) return status_;
  ++last_;
  return Step(api().copy(CuAddressOf(to), CuAddressOf(from), bytes, stream_), "cuMemcpyAsync");
}

absl::Status GpuWriter::Add(char* at, uint64_t add, bool ours) {
  MutexLock lock(mutex_);
  const GdrCopy::Place direct = DirectPlace(at, sizeof(uint64_t));
  if (direct.view != nullptr) {
    const auto known = known_.find(at);
    const uint64_t value = add + (ours && known != known_.end() ? known->second : GdrCopy::ReadWord(direct));
    GdrCopy::WriteWord(direct, value);
    if (ours || known != known_.end()) known_[at] = value;
    done_.number = ++last_;
    return absl::OkStatus();
  }
  GpuScope scope(pool_->driver(), context());
  if (!Enter(scope).ok()) return status_;
  additions_.push_back({at, add, ours, ++last_});
  return reading_ == 0 ? BeginAdditions() : status_;
}

GdrCopy::Place GpuWriter::DirectPlace(const char* at, size_t bytes) const {
  const bool idle = gdr_ != nullptr && status_.ok() && done_.number == last_;
  return idle ? gdr_->Find(at, bytes) : GdrCopy::Place();
}

// Those that came later wait, whatever is known of their words: a signal may say that an earlier one was given.
absl::Status GpuWriter::BeginAdditions() {
  reading_ = std::min(additions_.size(), kWords);
  auto* const places = reinterpret_cast<uint64_t*>(slot_->data);
  bool reads = false;
  for (size_t i = 0; i < reading_; ++i) {
    const Addition& addition = additions_[i];
    if (!words_.try_emplace(addition.at, places + i).second) continue;
    const auto known = known_.find(addition.at);
    if (addition.ours && known != known_.end()) {
      places[i] = known->second;
      continue;
    }
    reads = true;
    const absl::Status status = Step(
        api().copy_from_device(places + i, CuAddressOf(addition.at), sizeof(uint64_t), stream_), "cuMemcpyDtoHAsync");
    if (!status.ok()) return status;
  }
  read_at_ = steps_;
  return reads ? absl::OkStatus() : EndAdditions();
}

absl::Status GpuWriter::EndAdditions() {
  for (; reading_ > 0; --reading_) {
    const Addition addition = additions_.front();
    additions_.pop_front();
    const uint64_t value = *words_.at(addition.at) += addition.add;
    if (addition.ours || known_.contains(addition.at)) known_[addition.at] = value;
    const absl::Status status =
        Step(api().write_word(stream_, CuAddressOf(addition.at), value, 0), "cuStreamWriteValue64");
    if (!status.ok()) return status;
  }
  words_.clear();
  return absl::OkStatus();
}

bool GpuWriter::MayAdd() const {
  MutexLock lock(mutex_);
  return additions_.size() < kAdditionsMax;
}

absl::Status GpuWriter::Poll(uint64_t* steps) {
  MutexLock lock(mutex_);
  *steps = done_.steps;
  if (!status_.ok() || done_.number == last_) return status_;
  GpuScope scope(pool_->driver(), context());
  const absl::Status status = Enter(scope).ok() ? Move() : status_;
  *steps = done_.steps;
  return status;
}

absl::Status GpuWriter::Move() {
  if (marked_) {
    const int result = api().event_query(slot_->event);
    if (result == kCuNotReady) return absl::OkStatus();
    status_ = pool_->driver().Check(result, "stream of one-sided transfers");
    if (!status_.ok()) return status_;
    marked_ = false;
    done_ = mark_;
  }
  absl::Status status;
  if (reading_ > 0 && done_.steps >= read_at_) status = EndAdditions();
  if (status.ok() && reading_ == 0 && !additions_.empty()) status = BeginAdditions();
  if (!status.ok() || steps_ == done_.steps) return status;
  status_ = pool_->driver().Check(api().event_record(slot_->event, stream_), "cuEventRecord");
  mark_ = {steps_, additions_.empty() ? last_ : additions_.front().number - 1, ring_head_};
  marked_ = status_.ok();
  return status_;
}

// Where the context is gone, its copies are, too. After an error nothing more is given to the stream.
bool GpuWriter::Over(uint64_t until) {
  MutexLock lock(mutex_);
  GpuScope scope(pool_->driver(), context());
  if (!scope.status().ok()) return true;
  if (status_.ok()) Move().IgnoreError();
  return status_.ok() ? done_.number >= until : api().stream_query(stream_) != kCuNotReady;
}

absl::Status GpuWriter::Await() {
  const uint64_t until = last();
  if (pool_->patience().Await(&stuck_, [this, until] { return Over(until); })) return absl::OkStatus();
  const absl::Status stuck = absl::AbortedError(
      absl::StrFormat("the GPU has not carried out copies of one-sided transfers for %.1f s (TCPX_PEER_TIMEOUT): "
                      "does a kernel keep them back?",
                      pool_->patience().seconds()));
  MutexLock lock(mutex_);
  if (status_.ok()) status_ = stuck;
  return stuck;
}

void GpuWriter::BeginRegion(const char* data, size_t bytes) {
  MutexLock lock(mutex_);
  Forget(data, bytes);
  if (gdr_ == nullptr) return;
  GpuScope scope(pool_->driver(), context());
  const absl::Status status = scope.status().ok() ? gdr_->Map(data, bytes) : scope.status();
  if (!status.ok()) {
    TCPX_INFO("GDRCopy can't map %d bytes of GPU memory, and copy engines write there: %s", bytes, status.message());
  }
}

void GpuWriter::EndRegion(const char* data, size_t bytes) {
  MutexLock lock(mutex_);
  Forget(data, bytes);
  if (gdr_ != nullptr) gdr_->Unmap(data, bytes);
}

void GpuWriter::Forget(const char* data, size_t bytes) {
  absl::erase_if(known_, [=](const auto& word) { return word.first >= data && word.first < data + bytes; });
}

}  // namespace tcpx
