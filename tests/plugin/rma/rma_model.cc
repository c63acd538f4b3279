#include "tests/plugin/rma/rma_model.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/test_plugin.h"

namespace tcpx {
namespace {

// So that no place begins where a page does.
constexpr uint64_t kOdd = 1021;
constexpr uint64_t kWordsOfAStream = 2;

}  // namespace

RmaModel::RmaModel(RmaLab* lab, uint64_t seed, const Shape& shape)
    : lab_(lab), shape_(shape), rng_(seed), pattern_(seed, shape.stream_bytes) {
  const size_t step = shape.stream_bytes + kMost * 64 + kOdd;
  for (int from = 0; from < lab->ranks(); ++from) {
    for (int to = 0; to < lab->ranks(); ++to) {
      for (int context = 0; context < shape.contexts; ++context) {
        const size_t number = streams_.size();
        Stream& stream = streams_.emplace_back();
        stream.from = from;
        stream.to = to;
        stream.context = context;
        stream.place = number * step;
        stream.word = number * kWordsOfAStream * sizeof(uint64_t);
      }
    }
  }
}

absl::Status RmaModel::Prepare() {
  const size_t bytes = streams_.back().place + shape_.stream_bytes + kMost * 64;
  const size_t words = streams_.size() * kWordsOfAStream * sizeof(uint64_t);
  const uint64_t flags = NCCL_NET_MR_FLAG_FORCE_SO | (shape_.never_reset ? NCCL_NET_MR_FLAG_SIGNAL_NEVER_RESET : 0);
  absl::Status status = Make(bytes, 0, kSource, &source_);
  status.Update(Make(bytes, 0, kWindow, &window_));
  status.Update(Make(words, flags, kSignals, &signal_memory_));
  status.Update(Make(shape_.stream_bytes + kMost * 64, 0, kGotten, &gotten_));
  return status;
}

absl::Status RmaModel::Make(size_t bytes, uint64_t flags, unsigned kind, RmaMemory** memory) {
  auto made = lab_->Register(bytes, flags, (shape_.on_gpu & kind) != 0);
  if (made.ok()) *memory = *made;
  return made.status();
}

void RmaModel::Deregister() {
  for (RmaMemory* memory : {source_, window_, signal_memory_, gotten_}) lab_->Deregister(*memory);
}

size_t RmaModel::DrawSize(size_t left) {
  const uint64_t kinds[] = {0, 8, 1024, 16 << 10, 80 << 10, 1 << 20, 4 << 20};
  size_t kind = rng_.Between(0, 4);
  if (rng_.OneIn(12)) kind = rng_.Between(5, 6);
  return std::min<size_t>(rng_.Between(0, kinds[kind]), left);
}

void RmaModel::Plan(Stream* stream) {
  stream->planned = static_cast<int>(rng_.Between(1, kMost));
  stream->wanted_bits = stream->wanted_count = stream->seen_bits = stream->seen_count = 0;
  stream->posted = 0;
  auto* const words = reinterpret_cast<uint64_t*>(signal_memory_->at(stream->to, stream->word));
  for (uint64_t i = 0; i < kWordsOfAStream; ++i) {
    if (!shape_.never_reset) __atomic_store_n(words + i, 0, __ATOMIC_SEQ_CST);
    stream->before[i] = words[i];
  }
  uint64_t offset = rng_.Between(0, 63);
  size_t left = shape_.stream_bytes;
  for (int i = 0; i < stream->planned; ++i) {
    Operation& operation = stream->operations[static_cast<size_t>(i)];
    operation.message = ++operations_;
    operation.bytes = DrawSize(left);
    operation.offset = offset;
    left -= operation.bytes;
    offset += operation.bytes + rng_.Between(0, 16);
    // The last one is strong, so that its signal says that all has come.
    const bool last = i + 1 == stream->planned;
    operation.signals = last || operation.bytes == 0 || !rng_.OneIn(3);
    operation.strong = last || rng_.OneIn(2);
    operation.increments = operation.signals && operation.strong && !last && rng_.OneIn(2);
    if (!operation.signals) continue;
    ++signals_;
    if (operation.increments) ++stream->wanted_count;
    if (!operation.increments) stream->wanted_bits |= uint64_t{1} << i;
  }
  for (int i = 0; i < stream->planned; ++i) {
    const Operation& operation = stream->operations[static_cast<size_t>(i)];
    std::memcpy(source_->at(stream->from, stream->place + operation.offset), pattern_.Bytes(operation.message),
                operation.bytes);
  }
}

absl::Status RmaModel::Post(Stream* stream) {
  const int number = stream->posted.load();
  const Operation& operation = stream->operations[static_cast<size_t>(number)];
  RmaRange range;
  range.rank = static_cast<uint32_t>(stream->to);
  range.bytes = operation.bytes;
  if (operation.bytes > 0) {
    range.local = source_->of(stream->from);
    range.remote = window_->of(stream->from);
    range.local_offset = range.remote_offset = stream->place + operation.offset;
  }
  const uint32_t flags = rng_.OneIn(2) ? ncclRmaOptFlagsAggregateRequests : 0;
  void* const contexts = lab_->rank(stream->from).contexts;
  void* request = nullptr;
  ncclResult_t result = ncclSuccess;
  stream->posted.store(number + 1);
  if (operation.signals) {
    RmaSignal signal;
    signal.region = signal_memory_->of(stream->from);
    signal.offset = stream->word + (operation.increments ? sizeof(uint64_t) : 0);
    signal.op = operation.increments ? NCCL_NET_SIGNAL_OP_INC : NCCL_NET_SIGNAL_OP_ADD;
    signal.value = operation.increments ? 12345 : uint64_t{1} << number;
    signal.strong = operation.strong;
    result = lab_->rma().IputSignal(contexts, stream->context, range, signal, flags, &request);
  } else {
    result = lab_->rma().Iput(contexts, stream->context, range, flags, &request);
  }
  if (result != ncclSuccess) return PluginStatus(result, "iput");
  if (request == nullptr) return absl::InternalError("iput gave no request: NCCL takes that for an error");
  stream->requests.emplace_back(stream->from, request);
  return absl::OkStatus();
}

absl::Status RmaModel::Test(Stream* stream) {
  for (size_t i = 0; i < stream->requests.size();) {
    const auto [rank, request] = stream->requests[i];
    int done = 0;
    absl::Status status = PluginStatus(lab_->rma().Test(lab_->rank(rank).group, request, &done), "test");
    if (!status.ok()) return status;
    if (done != 0) stream->requests.erase(stream->requests.begin() + static_cast<std::ptrdiff_t>(i));
    if (done == 0) ++i;
  }
  return absl::OkStatus();
}

std::string RmaModel::Check(const Stream& stream, int number, const char* when) {
  const Operation& operation = stream.operations[static_cast<size_t>(number)];
  const char* const data = window_->at(stream.to, stream.place + operation.offset);
  const std::string wrong = pattern_.Check(operation.message, data, operation.bytes);
  if (wrong.empty()) return wrong;
  return absl::StrFormat("round %u, rank %d to %d, context %d, operation %d of %u bytes, %s: %s", rounds_, stream.from,
                         stream.to, stream.context, number, operation.bytes, when, wrong);
}

// All that signal number `signal` covers is in place.
std::string RmaModel::LookAt(const Stream& stream, int signal) {
  const Operation& by = stream.operations[static_cast<size_t>(signal)];
  const bool covers_all = by.strong || by.bytes == 0;
  for (int i = covers_all ? 0 : signal; i <= signal; ++i) {
    std::string wrong = Check(stream, i, "when its signal came");
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string RmaModel::Look(Stream* stream) {
  const uint64_t bits = signal_memory_->Word(stream->to, stream->word) - stream->before[0];
  const uint64_t count = signal_memory_->Word(stream->to, stream->word + sizeof(uint64_t)) - stream->before[1];
  const int posted = stream->posted.load();
  if ((bits & ~stream->wanted_bits) != 0 || (stream->seen_bits & ~bits) != 0 || count > stream->wanted_count) {
    return absl::StrFormat("round %u, rank %d to %d, context %d: signals %x of %x, %u of %u were counted", rounds_,
                           stream->from, stream->to, stream->context, bits, stream->wanted_bits, count,
                           stream->wanted_count);
  }
  uint64_t counted = 0;
  for (int i = 0; i < posted; ++i) {
    const Operation& operation = stream->operations[static_cast<size_t>(i)];
    if (operation.increments) ++counted;
    const bool by_count = operation.increments && counted <= count && counted > stream->seen_count;
    const bool by_bit = (bits & ~stream->seen_bits & (uint64_t{1} << i)) != 0;
    if (!by_count && !by_bit) continue;
    std::string wrong = LookAt(*stream, i);
    if (!wrong.empty()) return wrong;
  }
  stream->seen_bits = bits;
  stream->seen_count = count;
  return "";
}

void RmaModel::Watch() {
  const Deadline deadline(120);
  while (!stop_ && !all_seen_) {
    bool all = true;
    for (Stream& stream : streams_) {
      wrong_ = Look(&stream);
      if (!wrong_.empty()) stop_ = true;
      if (!wrong_.empty()) return;
      all = all && stream.seen_bits == stream.wanted_bits && stream.seen_count == stream.wanted_count;
    }
    if (all) all_seen_ = true;
    deadline.Yield();
  }
}

absl::Status RmaModel::Move() {
  const Deadline deadline(120);
  for (;;) {
    bool quiet = true;
    for (Stream& stream : streams_) {
      absl::Status status;
      if (stream.posted.load() < stream.planned && rng_.OneIn(2)) status = Post(&stream);
      if (status.ok()) status = Test(&stream);
      if (!status.ok()) return status;
      quiet = quiet && stream.requests.empty() && stream.posted.load() == stream.planned;
    }
    absl::Status status = lab_->Progress();
    if (!status.ok()) return status;
    if (stop_ || (quiet && all_seen_)) return absl::OkStatus();
    if (!deadline.Yield()) return absl::DeadlineExceededError(absl::StrCat("not all came in time; ", LogText()));
  }
}

absl::Status RmaModel::GetSome() {
  for (Stream& stream : streams_) {
    const int number = static_cast<int>(rng_.Between(0, static_cast<uint64_t>(stream.planned) - 1));
    const Operation& operation = stream.operations[static_cast<size_t>(number)];
    const int by = stream.from;
    RmaRange range;
    range.rank = static_cast<uint32_t>(stream.to);
    range.bytes = operation.bytes;
    range.local = gotten_->of(by);
    range.remote = window_->of(by);
    range.remote_offset = stream.place + operation.offset;
    range.local_offset = rng_.Between(0, 63);
    void* const contexts = lab_->rank(by).contexts;
    void* request = nullptr;
    absl::Status status = PluginStatus(lab_->rma().Iget(contexts, stream.context, range, 0, &request), "iget");
    if (status.ok()) status = lab_->Wait(by, request);
    if (!status.ok()) return status;
    status = PluginStatus(lab_->rma().Iflush(contexts, stream.context, range.local, range.rank, &request), "iflush");
    if (status.ok() && request != nullptr) status = lab_->Wait(by, request);
    if (!status.ok()) return status;
    const std::string wrong = pattern_.Check(operation.message, gotten_->at(by, range.local_offset), operation.bytes);
    if (!wrong.empty()) return absl::DataLossError(absl::StrCat("a get of ", operation.bytes, " bytes: ", wrong));
  }
  return absl::OkStatus();
}

absl::Status RmaModel::Round() {
  ++rounds_;
  for (Stream& stream : streams_) Plan(&stream);
  all_seen_ = false;
  stop_ = false;
  std::thread watcher([this] { Watch(); });
  absl::Status status = Move();
  stop_ = true;
  watcher.join();
  if (!wrong_.empty()) return absl::DataLossError(wrong_);
  if (!status.ok()) return status;
  for (const Stream& stream : streams_) {
    for (int i = 0; i < stream.planned; ++i) {
      std::string wrong = Check(stream, i, "at the end");
      if (!wrong.empty()) return absl::DataLossError(wrong);
    }
  }
  return GetSome();
}

}  // namespace tcpx
