#include "net_socket/message/flight.h"

#include "absl/strings/str_cat.h"

namespace tcpx {

std::string DescribeFlight(const Flight& flight) {
  if (flight.messages == 0) return "";
  std::string text = absl::StrCat("message ", flight.sequence, ", ", flight.bytes_done, " of ",
                                  flight.total_known ? "" : "at most ", flight.bytes_total, " bytes");
  if (flight.messages > 1) absl::StrAppend(&text, ", and ", flight.messages - 1, " more");
  return text;
}

bool StallWatch::Stalled(const Flight& flight, int64_t now_ns, int64_t limit_ns) {
  const bool same = flight.messages > 0 && flight.sequence == last_.sequence && flight.bytes_done == last_.bytes_done;
  if (since_ns_ == 0 || !same) {
    last_ = flight;
    since_ns_ = flight.messages > 0 ? now_ns : 0;
    reported_ = false;
    return false;
  }
  if (limit_ns == 0 || reported_ || now_ns - since_ns_ < limit_ns) return false;
  reported_ = true;
  return true;
}

}  // namespace tcpx
