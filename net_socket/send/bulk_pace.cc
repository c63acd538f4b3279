#include "net_socket/send/bulk_pace.h"

#include <algorithm>

#include "common/socket.h"
#include "common/tcp_info.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/send/busy_lanes.h"
#include "net_socket/send/tuning.h"

namespace tcpx {

bool BulkPace::HasRoom(int64_t* retry_ns) {
  *retry_ns = 0;
  if (stream_->held() != nullptr && stream_->held()->room() == 0) {
    *retry_ns = MonotonicNanos() + tuning::kAckLookNs;
    return false;
  }
  if (!settings_.by_rate && !rates_->piloted()) return UnsentBytes(stream_->fd()) < kBulkUnsentBytes;
  const int64_t now = MonotonicNanos();
  const int64_t held = Look(now);
  if (!rates_->Carries(index())) {
    *retry_ns = now + LaneRates::kAskAgainNs;
    return false;
  }
  if (!settings_.by_rate) return UnsentBytes(stream_->fd()) < kBulkUnsentBytes;
  unsent_max_ = BusyLanes::UnsentMax(busy_->Count(now));
  const bool full = unsent_max_ >= 0 && UnsentBytes(stream_->fd()) >= unsent_max_;
  const int64_t held_max = HeldMax();
  if (!full && held < held_max) return true;
  *retry_ns = now + rate_.RetryAfterNs(held, held_max);
  return false;
}

bool BulkPace::Pull(Chunk* chunk) {
  int64_t want = settings_.chunk_bytes;
  if (settings_.by_rate) {
    want = std::min(want, rate_.chunk_max());
    if (unsent_max_ >= 0) want = std::min(want, unsent_max_);
    busy_->Note(looked_ns_, &busy_span_);
  }
  const size_t least = static_cast<size_t>(ChunkMin());
  if (!striper_->Pull(static_cast<size_t>(want), rates_->Share(index()), least, chunk)) return false;
  continuous_ = true;
  watching_ = settings_.by_rate;
  return true;
}

void BulkPace::Restart() {
  if (!rates_->piloted()) return;
  rate_.Restart();
  rtt_asked_ns_ = 0;
  round_trips_ = {};
  rates_->Set(index(), 0);
}

int64_t BulkPace::ChunkMin() const {
  return settings_.by_rate && rates_->piloted() ? rate_.chunk_least() : settings_.chunk_bytes_min;
}

// If few messages are under way, no lane takes what another lane could send sooner.
int64_t BulkPace::HeldMax() const {
  if (!rates_->piloted()) return rate_.held_max();
  const double under_way = static_cast<double>(striper_->left_bytes()) + static_cast<double>(rates_->Held());
  const int64_t part = std::max<int64_t>(static_cast<int64_t>(under_way * rates_->Share(index())), 1);
  if (rate_.bytes_per_second() == 0) return std::min(rate_.held_max(), std::min(part, 2 * ChunkMin()));
  return std::max(rate_.held_max(part), std::min(rate_.held_max(), ChunkMin()));
}

int64_t BulkPace::Look(int64_t now) {
  const int64_t queued = QueuedBytes(stream_->fd());
  const int64_t held = stream_->sealer() == nullptr ? queued : stream_->sealer()->UnackedAbout(queued);
  const HeldFrames* const frames = stream_->held();
  const uint64_t sent = frames == nullptr ? stream_->counts().bytes.get() : frames->cursor();
  rate_.Sample(now, sent, held, continuous_);
  looked_ns_ = now;
  continuous_ = false;
  RefreshRate(now);
  const uint64_t acked = sent - static_cast<uint64_t>(std::max<int64_t>(held, 0));
  const bool full = held > 0 && (striper_->drained() || 2 * held >= HeldMax());
  rates_->Looked(index(), now, {acked, held, full, peer_limited_us_, round_trips_});
  return held;
}

int64_t BulkPace::LookWhileHeld() {
  continuous_ = false;
  if (!watching_) return 0;
  const int64_t now = MonotonicNanos();
  if (now - looked_ns_ >= tuning::kPaceLookNs) {
    // Nothing was sent since: what is held now was held all the time.
    continuous_ = QueuedBytes(stream_->fd()) > 0;
    watching_ = Look(now) > 0;
  }
  return watching_ ? now + tuning::kPaceLookNs : 0;
}

void BulkPace::RefreshRate(int64_t now) {
  rates_->Set(index(), rate_.bytes_per_second());
  if (now - rtt_asked_ns_ < tuning::kRttEveryNs) return;
  rtt_asked_ns_ = now;
  TcpInfo info;
  if (!ReadTcpInfo(stream_->fd(), &info)) return;
  if (info.rtt_min_us != 0) rate_.set_min_rtt_ns(int64_t{info.rtt_min_us} * kMicrosecond);
  round_trips_ = {info.rtt_us, info.rtt_min_us};
  peer_limited_us_ = static_cast<int64_t>(info.window_limited_us);
}

}  // namespace tcpx
