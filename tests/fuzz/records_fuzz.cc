// What a sender hears from its receiver: the first two bytes say where reads end, the rest is the stream. The result
// may not depend on where a read ends, and an error stays. The same stream is heard on a health socket.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "net_socket/comm/peer_watch.h"
#include "net_socket/health/health_exchanges.h"
#include "net_socket/health/verdict.h"
#include "net_socket/message/health_records.h"
#include "net_socket/message/wire.h"
#include "tests/fuzz/fuzz.h"

namespace tcpx {
namespace {

void CheckText(const absl::Status& status) {
  Require(status.message().size() < 2 * kCauseBytesMax, "no peer writes long lines into the log");
  for (const char c : status.message()) Require(c >= ' ' && c <= '~', "no peer writes control characters into the log");
}

// Reads of `first` bytes and then of `step` bytes each.
absl::Status TakeInSteps(const std::string& stream, size_t first, size_t step) {
  RecordReader reader;
  absl::Status status;
  size_t at = 0;
  for (size_t length = first; at < stream.size() && status.ok(); at += length, length = step) {
    length = std::min(length, stream.size() - at);
    status = reader.Take(stream.data() + at, length);
  }
  if (!status.ok()) Require(reader.Take(stream.data(), 0) == status, "an error stays");
  return status;
}

void CheckNews(const std::string& text) {
  WaitNews news;
  if (!DecodeNews(text, &news)) return;
  Require(news.root.chain.size() <= kChainMax, "no peer names more links than fit a line");
  for (const char c : DescribeRoot(news.who, news.root)) {
    Require(c >= ' ' && c <= '~', "no peer writes control characters into the log");
  }
  const std::string again = EncodeNews(news);
  WaitNews heard;
  Require(again.size() <= kNewsBytesMax && DecodeNews(again, &heard), "what was heard can be passed on");
  Require(EncodeNews(heard) == again, "and comes as it was");
}

// A question is answered, and an answer believed, by the arithmetic of a peer that means harm.
void CheckClock(const std::string& text) {
  ClockRecord record;
  if (text.empty() || !DecodeClock(text, &record)) return;
  for (const char c : record.who) Require(c > ' ' && c <= '~', "no peer writes what is no name into the timeline");
  ClockRecord again;
  Require(DecodeClock(EncodeClock(record), &again) && EncodeClock(again) == EncodeClock(record), "it comes as it was");
  for (const int64_t now_ns : {record.asked_ns, record.answered_ns, std::numeric_limits<int64_t>::max()}) {
    ClockExchange exchange;
    std::optional<ClockRecord> question = exchange.Begin(record.asked_ns);
    for (int i = 0; i < ClockExchange::kQuestions; ++i) {
      record.asked_ns = question->asked_ns;
      const auto found = exchange.Hear(record, std::max(now_ns, record.asked_ns), &question);
      Require(!found.has_value() || found->round_trip_ns > 0, "no answer comes before its question");
    }
  }
}

void HearAsHealth(const std::string& stream) {
  HealthReader reader;
  std::vector<HealthNotice> notices;
  (void)reader.Take(stream.data(), stream.size(), &notices);
  for (const HealthNotice& notice : notices) {
    CheckNews(notice.waits);
    CheckClock(notice.clock);
  }
}

}  // namespace
}  // namespace tcpx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tcpx;
  Input input(data, size);
  const size_t first = size_t{input.Take<uint8_t>()} + 1;
  const size_t step = size_t{input.Take<uint8_t>()} + 1;
  const std::string stream = input.TakeBytes(size);
  const absl::Status whole = TakeInSteps(stream, stream.size(), 1);
  CheckText(whole);
  HearAsHealth(stream);
  Require(TakeInSteps(stream, first, step) == whole, "the result does not depend on where a read ends");
  return 0;
}
