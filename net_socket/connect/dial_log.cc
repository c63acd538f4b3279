#include "net_socket/connect/dial_log.h"

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
  absl::erase_if(said_ns_, [now](const auto& said) { return now - said.second >= kNoNewsNs; });
  return said_ns_.insert_or_assign(subject, now).second;
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
