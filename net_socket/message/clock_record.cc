#include "net_socket/message/clock_record.h"

#include <algorithm>
#include <utility>

#include "net_socket/message/fields.h"

namespace tcpx {
namespace {

constexpr char kVersion = 1;

}  // namespace

std::string EncodeClock(const ClockRecord& record) {
  FieldWriter fields;
  fields.Put(kVersion).Put(record.asked_ns).Put(record.heard_ns).Put(record.answered_ns);
  return fields.PutRest(absl::string_view(record.who).substr(0, kClockNameMax)).Put('\0').Take();
}

bool DecodeClock(absl::string_view text, ClockRecord* record) {
  FieldReader fields(text);
  if (fields.Take<char>() < kVersion) return false;
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
