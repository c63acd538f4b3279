#include "net_socket/message/health_records.h"

#include <algorithm>
#include <utility>

#include "net_socket/message/fields.h"

namespace tcpx {
namespace {

constexpr uint8_t kNewsVersion = 1;
constexpr char kClockVersion = 1;
constexpr uint8_t kAsksBit = 1;
constexpr uint8_t kCandidateBit = 2;

void PutRoot(const WaitRoot& root, FieldWriter* fields) {
  fields->Put(static_cast<uint8_t>(root.cause)).Put(root.finder).Put(root.serial).Put(root.lag);
  fields->PutText(root.culprit).PutText(root.evidence);
  const size_t links = std::min(root.chain.size(), kChainMax);
  fields->Put(static_cast<uint8_t>(links));
  for (size_t i = 0; i < links; ++i) fields->PutText(root.chain[i]);
}

// A cause that only a newer build knows is none.
void TakeRoot(FieldReader* fields, WaitRoot* root) {
  const auto cause = fields->Take<uint8_t>();
  root->cause = cause < kCauses ? static_cast<Cause>(cause) : Cause::kNone;
  root->finder = fields->Take<uint64_t>();
  root->serial = fields->Take<uint32_t>();
  root->lag = fields->Take<int64_t>();
  root->culprit = fields->TakeText();
  root->evidence = fields->TakeText();
  // Whether tcpx has a bug is not for a peer to say.
  if (root->cause == Cause::kInternal) root->evidence = "so the peer says";
  const size_t links = std::min<size_t>(fields->Take<uint8_t>(), kChainMax);
  for (size_t i = 0; i < links && fields->ok(); ++i) root->chain.push_back(fields->TakeText());
}

std::string Notice(FrameKind kind, const ConnectionId& id, absl::string_view rest) {
  return EncodeRecord(kind, FieldWriter().PutBytes(id.data(), id.size()).PutRest(rest).Take());
}

// False: nothing of interest, or nonsense.
bool DecodeNotice(FrameKind kind, absl::string_view body, HealthNotice* notice) {
  FieldReader fields(body);
  fields.TakeBytes(notice->connection.data(), notice->connection.size());
  if (!fields.ok()) return false;
  const absl::string_view rest = fields.rest();
  switch (kind) {
    case FrameKind::kError:
    case FrameKind::kParting:
      notice->parting = kind == FrameKind::kParting;
      notice->cause = CauseText(rest);
      return true;
    case FrameKind::kLeft:
      notice->left = true;
      for (size_t i = rest.size() / sizeof(uint64_t); i > 0; --i) notice->taken.push_back(fields.Take<uint64_t>());
      return true;
    case FrameKind::kSilent:
      notice->silent = fields.Take<uint16_t>();
      return fields.ok() && fields.rest().empty();
    case FrameKind::kWaits:
      notice->waits = std::string(rest);
      return !rest.empty();
    case FrameKind::kClock:
      notice->clock = std::string(rest);
      return !rest.empty();
    default:
      return false;
  }
}

}  // namespace

std::string FailureNotice(const ConnectionId& id, absl::string_view cause, bool parting) {
  return Notice(parting ? FrameKind::kParting : FrameKind::kError, id, cause.substr(0, kCauseBytesMax));
}

std::string LeftNotice(const ConnectionId& id, const std::vector<uint64_t>& taken) {
  return Notice(FrameKind::kLeft, id, FieldWriter().PutBytes(taken.data(), taken.size() * sizeof(uint64_t)).Take());
}

std::string SilentNotice(const ConnectionId& id, int lane) {
  return Notice(FrameKind::kSilent, id, FieldWriter().Put(static_cast<uint16_t>(lane)).Take());
}

std::string WaitsNotice(const ConnectionId& id, absl::string_view waits) {
  return Notice(FrameKind::kWaits, id, waits);
}

std::string ClockNotice(absl::string_view clock) { return Notice(FrameKind::kClock, ConnectionId{}, clock); }

absl::Status HealthReader::Take(const char* data, size_t bytes, std::vector<HealthNotice>* notices) {
  return frames_.Take(data, bytes, [this, notices](const FrameHeader& header, absl::string_view body) {
    if (header.kind == FrameKind::kBye) bye_ = true;
    HealthNotice notice;
    if (DecodeNotice(header.kind, body, &notice)) notices->push_back(std::move(notice));
    return absl::OkStatus();
  });
}

std::string EncodeNews(const WaitNews& news) {
  FieldWriter fields;
  fields.Put(kNewsVersion)
      .Put(static_cast<uint8_t>((news.asks ? kAsksBit : 0) | (news.root.candidate ? kCandidateBit : 0)));
  fields.PutText(news.who).Put(news.posted).Put(news.sequence).Put(news.stalled_ms).Put(news.no_cpu_percent);
  PutRoot(news.root, &fields);
  if (news.process != 0) fields.Put(news.process);
  return fields.Take();
}

bool DecodeNews(absl::string_view text, WaitNews* news) {
  if (text.size() > kNewsBytesMax) return false;
  FieldReader fields(text);
  if (fields.Take<uint8_t>() < kNewsVersion) return false;
  const auto bits = fields.Take<uint8_t>();
  news->asks = (bits & kAsksBit) != 0;
  news->root.candidate = (bits & kCandidateBit) != 0;
  news->who = fields.TakeText();
  news->posted = fields.Take<uint32_t>();
  news->sequence = fields.Take<uint64_t>();
  news->stalled_ms = fields.Take<uint32_t>();
  news->no_cpu_percent = std::min<uint8_t>(fields.Take<uint8_t>(), 100);
  TakeRoot(&fields, &news->root);
  if (!fields.ok()) return false;
  news->process = fields.Take<uint64_t>();  // Peers of earlier builds end before it.
  return true;
}

std::string EncodeClock(const ClockRecord& record) {
  FieldWriter fields;
  fields.Put(kClockVersion).Put(record.asked_ns).Put(record.heard_ns).Put(record.answered_ns);
  return fields.PutRest(absl::string_view(record.who).substr(0, kClockNameMax)).Put('\0').Take();
}

bool DecodeClock(absl::string_view text, ClockRecord* record) {
  FieldReader fields(text);
  if (fields.Take<char>() < kClockVersion) return false;
  ClockRecord read;
  read.asked_ns = fields.Take<int64_t>();
  read.heard_ns = fields.Take<int64_t>();
  read.answered_ns = fields.Take<int64_t>();
  const absl::string_view who = fields.rest().substr(0, fields.rest().find('\0'));
  const bool plain = std::all_of(who.begin(), who.end(), [](char c) { return c > ' ' && c <= '~'; });
  const bool in_order = read.asked_ns > 0 && read.heard_ns >= 0 && read.heard_ns <= read.answered_ns &&
                        (read.heard_ns > 0) == (read.answered_ns > 0);
  if (!fields.ok() || !plain || !in_order || who.size() > kClockNameMax) return false;
  read.who = std::string(who);
  *record = std::move(read);
  return true;
}

}  // namespace tcpx
