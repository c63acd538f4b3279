#include "net_socket/comm/peer_news.h"

#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/tuning.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
void PeerNews::PeerLost(const absl::Status& how) {
  if (!how.ok()) return failure_->FailFound(how, kNoLane);
  progress_->PeerEnded();
  (void)NoteLeft({});
  end_->PeerLeft();
}

// The lanes' ends tell it too; one that is lost has none.
void PeerNews::PeerLeft(const std::vector<uint64_t>& taken) {
  if (NoteLeft(taken)) end_->PeerLeft();
}

// Called before the connection gives up, or has waited for another socket without success. The lanes look themselves.
bool PeerNews::NoteLeft(const std::vector<uint64_t>& taken) {
  if (!setup_->heals) return false;
  const bool waits = failure_->healing().lanes().PeerLeft(taken);
  sockets_->KickAll();
  return waits;
}

void PeerNews::PeerSaysWaits(const std::string& news) {
  setup_->runtime->reactor.Post([self = self_, news] {
    self.With([&news](PeerNews* one) { one->progress_->probe().HearInLoop(news, MonotonicNanos()); });
  });
}

// Nothing else may be heard of a peer on idle lanes: its kernel answers, also for a process that is stopped.
bool PeerNews::HealthLost() {
  progress_->probe().HealthChangedInLoop();
  (void)SetIdleProbes(setup_->lane_fd(0), tuning::kProbesWithoutHealthNs);
  return !setup_->fails_alone();
}

bool PeerNews::HealthBack(bool counts) {
  progress_->probe().HealthChangedInLoop();
  (void)SetIdleProbes(setup_->lane_fd(0));
  if (counts && setup_->heals) failure_->healing().CountHealth();
  return !setup_->fails_alone();
}

int64_t PeerNews::LanesGoneNs(bool* in_order) {
  if (!setup_->heals || failure_->peer_left()) return 0;
  *in_order = *in_order || failure_->healing().zero_ended();
  const int64_t since_ns = failure_->healing().lanes().none_since_ns();
  return since_ns == 0 ? 0 : MonotonicNanos() - since_ns;
}

// Looks at the kernel's state: to peek at the stream would take the socket's error from the thread that moves the lane.
bool PeerNews::AnyLaneUp(bool read_out) {
  for (int lane = 0; setup_->heals && lane < setup_->lane_count(); ++lane) {
    TcpInfo info;
    const int fd = setup_->lane_fd(lane);
    if (!failure_->healing().lanes().up(lane) || !ReadTcpInfo(fd, &info) || !info.established) continue;
    if (!read_out || UnreadBytes(fd) <= 0) return true;
  }
  return false;
}

bool PeerNews::HeardWithin(int64_t ns) {
  for (int lane = 0; lane < setup_->lane_count(); ++lane) {
    LaneTcpInfo info;
    if (!failure_->healing().lanes().up(lane)) continue;
    if (ReadLaneTcpInfo(setup_->lane_fd(lane), &info) && info.heard_ms() * kMillisecond < ns) return true;
  }
  return false;
}

}  // namespace tcpx
