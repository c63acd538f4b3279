#include "net_socket/connect/rejected_peers.h"

#include "common/log.h"

namespace tcpx {

void RejectedPeers::NoteInLoop(HelloStatus why, const SocketAddress& from) {
  Count& count = counts_[why];
  if (count.counting) {
    ++count.counted;
    count.latest = from;
    return;
  }
  TCPX_INFO("%s %s %s; more of this kind are counted for %d s", RejectedText(why), from.ToString(), RejectionText(why),
            period_ns_ / kSecond);
  StartCountingInLoop(why);
}

void RejectedPeers::StartCountingInLoop(HelloStatus why) {
  Count& count = counts_[why];
  count.counting = true;
  count.timer = reactor_->RepeatInLoop(period_ns_, [this, why] {
    counts_[why].counting = counts_[why].counted > 0;
    if (!counts_[why].counting) return Reactor::kOver;
    SayCounted(why);
    return period_ns_;
  });
}

void RejectedPeers::SayCounted(HelloStatus why) {
  Count& count = counts_[why];
  TCPX_INFO("%s: %d more, the latest %s: %s", AllRejectedText(why), count.counted, count.latest.ToString(),
            RejectionText(why));
  count.counted = 0;
}

void RejectedPeers::CloseInLoop() {
  for (auto& [why, count] : counts_) {
    if (!count.counting) continue;
    reactor_->CancelTimerInLoop(count.timer);
    count.counting = false;
    if (count.counted > 0) SayCounted(why);
  }
}

}  // namespace tcpx
