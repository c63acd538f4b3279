#include "net_socket/message/wait_record.h"

#include <algorithm>

#include "net_socket/message/fields.h"

namespace tcpx {
namespace {

constexpr uint8_t kVersion = 1;
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
  const size_t links = std::min<size_t>(fields->Take<uint8_t>(), kChainMax);
  for (size_t i = 0; i < links && fields->ok(); ++i) root->chain.push_back(fields->TakeText());
}

}  // namespace

std::string EncodeNews(const WaitNews& news) {
  FieldWriter fields;
  fields.Put(kVersion).Put(
      static_cast<uint8_t>((news.asks ? kAsksBit : 0) | (news.root.candidate ? kCandidateBit : 0)));
  fields.PutText(news.who).Put(news.posted).Put(news.sequence).Put(news.stood_ms).Put(news.no_cpu_percent);
  PutRoot(news.root, &fields);
  return fields.Take();
}

bool DecodeNews(absl::string_view text, WaitNews* news) {
  if (text.size() > kNewsBytesMax) return false;
  FieldReader fields(text);
  if (fields.Take<uint8_t>() < kVersion) return false;
  const auto bits = fields.Take<uint8_t>();
  news->asks = (bits & kAsksBit) != 0;
  news->root.candidate = (bits & kCandidateBit) != 0;
  news->who = fields.TakeText();
  news->posted = fields.Take<uint32_t>();
  news->sequence = fields.Take<uint64_t>();
  news->stood_ms = fields.Take<uint32_t>();
  news->no_cpu_percent = std::min<uint8_t>(fields.Take<uint8_t>(), 100);
  TakeRoot(&fields, &news->root);
  return fields.ok();
}

}  // namespace tcpx
