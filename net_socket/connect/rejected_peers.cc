#include "net_socket/connect/rejected_peers.h"

#include "common/log.h"

namespace tcpx {

void RejectedPeers::NoteInLoop(HelloStatus why, const SocketAddress& from) {
  const auto [known, first] = counts_.try_emplace(why);
  Count& count = known->second;
  if (!first) {
    ++count.counted;
    count.latest = from;
    return;
  }
  TCPX_INFO("%s %s %s; more of this kind are counted for %d s", RejectedText(why), from.ToString(), RejectionText(why),
            period_ns_ / kSecond);
  count.timer = reactor_->RepeatInLoop(period_ns_, [this, why] {
    if (SayCounted(why)) return period_ns_;
    counts_.erase(why);
    return Reactor::kOver;
  });
}

bool RejectedPeers::SayCounted(HelloStatus why) {
  Count& count = counts_[why];
  if (count.counted == 0) return false;
  TCPX_INFO("%s: %d more, the latest %s: %s", AllRejectedText(why), count.counted, count.latest.ToString(),
            RejectionText(why));
  count.counted = 0;
  return true;
}

void RejectedPeers::CloseInLoop() {
  for (auto& [why, count] : counts_) {
    reactor_->CancelTimerInLoop(count.timer);
    (void)SayCounted(why);
  }
  counts_.clear();
}

}  // namespace tcpx
