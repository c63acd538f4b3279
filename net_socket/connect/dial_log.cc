#include "net_socket/connect/dial_log.h"

#include <iterator>
#include <mutex>

#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "net_socket/message/wire.h"

namespace tcpx {

// A guess: the channels of a communicator, and what is tried again at once, meet the same within it.
constexpr int64_t kNoNewsNs = 60 * kSecond;

bool DialLog::IsNews(const std::string& subject) {
  const int64_t now = MonotonicNanos();
  for (auto it = said_ns_.begin(); it != said_ns_.end();) {
    it = now - it->second >= kNoNewsNs ? said_ns_.erase(it) : std::next(it);
  }
  const bool news = said_ns_.count(subject) == 0;
  said_ns_[subject] = now;
  return news;
}

void DialLog::FailedInLoop(const Communicator& communicator, const std::string& why) {
  FailureGroup* const group = communicator.group.get();
  bool first = false;
  {
    // As a connection that fails: its errors are held back, too, until the line is out.
    std::unique_lock<Mutex> logging;
    if (group != nullptr) logging = group->Logging();
    const bool quiet = group != nullptr && group->Quiet(why);
    if (!quiet && IsNews(why)) {
      TCPX_WARN_TO(communicator.log, "%s", why);
    } else {
      TCPX_TRACE("%s", why);
    }
    // After the line: from here on calls return the error.
    if (group != nullptr) first = group->Claim(why.substr(0, kCauseBytesMax));
  }
  if (first) group->Spread(reactor_);
}

void DialLog::SlowInLoop(const Communicator& communicator, const std::string& subject, const std::string& what) {
  if (IsNews(subject)) TCPX_WARN_TO(communicator.log, "%s", what);
}

}  // namespace tcpx
