#include "tests/fuzz/lane_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/support/pattern.h"

namespace tcpx {
namespace {

// The limits of the format, as numbers: wire.h is what is being checked.
constexpr size_t kHeader = 64;
constexpr uint64_t kTebibyte = uint64_t{1} << 40;
constexpr uint64_t kGibibyte = uint64_t{1} << 30;
constexpr uint32_t kRecordMax = 64 * 1024;
constexpr uint8_t kChunkKind = 1;
constexpr uint8_t kFirstRecordKind = 64;
constexpr uint8_t kErrorKind = 67;

template <typename T>
T Read(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

uint64_t OneAtLeast(uint64_t bytes) { return std::max<uint64_t>(bytes, 1); }

}  // namespace

void ReceivesModel::Post(size_t capacity) {
  Receive receive;
  receive.buffer.assign(capacity, static_cast<char>(kGuardByte));
  receives_.push_back(std::move(receive));
}

void LaneModel::Arrive(const char* data, size_t bytes) {
  unread_.append(data, bytes);
  Resume();
}

void LaneModel::Resume() {
  parked_ = false;
  while (verdict_ == Verdict::kFine && Step()) {
  }
}

void LaneModel::End() {
  ended_ = true;
  if (verdict_ == Verdict::kFine && !parked_ && (in_frame_ || !unread_.empty())) verdict_ = Verdict::kPeerFault;
}

// False when more bytes, or a receive, are needed.
bool LaneModel::Step() {
  if (!in_frame_) return StepHeader();
  if (payload_left_ > 0) {
    const size_t step = std::min(payload_left_, unread_.size());
    if (step == 0) return false;
    Land(step);
    return true;
  }
  const size_t skip = std::min(skip_left_, unread_.size());
  unread_.erase(0, skip);
  skip_left_ -= skip;
  if (skip_left_ > 0) return false;
  in_frame_ = false;
  if (!chunk_ && header_.kind == kErrorKind) verdict_ = Verdict::kPeerFault;
  return true;
}

bool LaneModel::StepHeader() {
  if (unread_.size() < kHeader) return false;
  header_ = {Read<uint8_t>(unread_, 0),  Read<uint16_t>(unread_, 2),  Read<uint32_t>(unread_, 4),
             Read<uint64_t>(unread_, 8), Read<uint64_t>(unread_, 16), Read<uint64_t>(unread_, 24)};
  if (!Valid()) {
    verdict_ = Verdict::kPeerFault;
    return false;
  }
  chunk_ = header_.kind == kChunkKind;
  if (chunk_ && !Claim()) {
    parked_ = true;
    return false;
  }
  if (verdict_ != Verdict::kFine) return false;
  unread_.erase(0, kHeader);
  in_frame_ = true;
  payload_left_ = chunk_ ? header_.length : 0;
  skip_left_ = size_t{header_.padding} + (chunk_ ? 0 : header_.length);
  if (chunk_ && header_.length == 0) Land(0);
  return true;
}

bool LaneModel::Valid() const {
  if (header_.kind >= kFirstRecordKind) return header_.length <= kRecordMax;
  if (header_.kind != kChunkKind || header_.message_bytes > kTebibyte || header_.length > kGibibyte) return false;
  if (header_.length == 0) return header_.message_bytes == 0 && header_.offset == 0;
  return header_.length <= header_.message_bytes && header_.offset <= header_.message_bytes - header_.length;
}

bool LaneModel::Claim() {
  auto& all = receives_->receives_;
  if (header_.sequence >= all.size()) return false;
  if (all.size() - header_.sequence > receives_->slots_) {
    verdict_ = Verdict::kPeerFault;
  } else {
    verdict_ = Judge(&all[header_.sequence]);
  }
  return true;
}

Verdict LaneModel::Judge(ReceivesModel::Receive* receive) {
  if (header_.sequence == last_sequence_ && header_.offset < last_end_) return Verdict::kPeerFault;
  const uint64_t units = OneAtLeast(header_.length);
  if (receive->all_claimed) return Verdict::kPeerFault;
  if (receive->claimed + units > OneAtLeast(header_.message_bytes)) return Verdict::kPeerFault;
  receive->claimed += units;
  receive->all_claimed = receive->claimed == OneAtLeast(header_.message_bytes);
  if (receive->sized && receive->message_bytes != header_.message_bytes) return Verdict::kPeerFault;
  receive->sized = true;
  receive->message_bytes = header_.message_bytes;
  if (header_.message_bytes > receive->buffer.size()) return Verdict::kTooLarge;
  last_sequence_ = header_.sequence;
  last_end_ = header_.offset + header_.length;
  return Verdict::kFine;
}

void LaneModel::Land(size_t bytes) {
  ReceivesModel::Receive& receive = receives_->at(header_.sequence);
  receive.buffer.replace(header_.offset + header_.length - payload_left_, bytes, unread_, 0, bytes);
  unread_.erase(0, bytes);
  payload_left_ -= bytes;
  if (payload_left_ > 0) return;
  receive.landed += OneAtLeast(header_.length);
  if (receive.landed != OneAtLeast(header_.message_bytes)) return;
  receive.done = true;
  ++receives_->completed_;
}

}  // namespace tcpx
