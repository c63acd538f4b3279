#include "net_socket/comm/lane_healing.h"

#include <sys/socket.h>

#include <utility>

#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

// An end that does not dial waits longer: the end that dials knows more, and says it.
int64_t AloneNs(const ConnectionSetup& setup) {
  return setup.runtime->options.reconnect_timeout_ns + (setup.sends() ? 0 : tuning::kDiallerGivesUpNs);
}

std::vector<bool> HaveSockets(const ConnectionSetup& setup) {
  std::vector<bool> have;
  for (const LaneSocket& lane : setup.lanes) have.push_back(lane.fd.valid());
  return have;
}

}  // namespace

LaneHealing::LaneHealing(const ConnectionSetup* setup, Link<ConnectionEnd> end)
    : setup_(setup),
      end_(std::move(end)),
      lanes_(setup->direction, HaveSockets(*setup)),
      arbiter_(setup->lane_count(), setup->runtime->options.peer_timeout_ns, AloneNs(*setup)) {
  if (!setup->heals) lanes_.End();
}

LaneTable::Loss LaneHealing::Note(const absl::Status& why, int lane, Arbiter::Loss how) {
  const LaneTable::Why by = how == Arbiter::Loss::kDied ? LaneTable::Why::kDied : LaneTable::Why::kLetGo;
  const LaneTable::Loss loss = lanes_.Lose(lane, by, MonotonicNanos());
  setup_->activity->Note();
  if (loss != LaneTable::Loss::kNoted) return loss;
  LaneTcpInfo info;  // A dead socket tells too what the peer has acknowledged on it.
  const bool read = ReadLaneTcpInfo(setup_->lane_fd(lane), &info);
  Judge([&](Arbiter* arbiter) {
    if (read) arbiter->Acked(lane, info, MonotonicNanos());
    arbiter->Lost(lane, how);
  });
  std::string more;
  if (MayLog(lane, &more)) {
    TCPX_INFO_TO(setup_->communicator->log, "comm %x %s device %d: lane %d to %s %s and will be resumed: %s%s",
                 setup_->communicator->id, DirectionName(setup_->direction), setup_->device, lane,
                 setup_->lanes[static_cast<size_t>(lane)].peer.ToString(),
                 by == LaneTable::Why::kDied ? "is lost" : "is let go", std::string(why.message()), more);
  }
  return loss;
}

void LaneHealing::NoteSocket(int lane, uint64_t position, bool owes) {
  Arbiter::Stream stream{position, owes};
  LaneTcpInfo info;
  if (ReadLaneTcpInfo(setup_->lane_fd(lane), &info)) stream.acked = info.bytes_acked;
  Judge([&](Arbiter* arbiter) { arbiter->Back(lane, stream, MonotonicNanos()); });
  setup_->activity->Note();  // A look may have found it idle before it is given what is to be sent again.
}

Arbiter::Finding LaneHealing::LookAt(int lane, int64_t now_ns) {
  const int fd = setup_->lane_fd(lane);
  const LaneState state = lanes_.state(lane);
  if (state == LaneState::kLost) {
    const bool alone = lanes_.none_since_ns() != 0;
    return Judge([&](Arbiter* arbiter) { return arbiter->LookAtLost(lane, alone, now_ns); });
  }
  LaneTcpInfo info;
  const bool holds = IsUp(state) && QueuedBytes(fd) > 0 && ReadLaneTcpInfo(fd, &info);
  int64_t probe_ns = 0;
  const auto finding = Judge([&](Arbiter* arbiter) {
    if (holds) probe_ns = arbiter->ProbeNs(lane, info);
    if (holds) return arbiter->Look(lane, info, now_ns);
    arbiter->LookAtIdle(lane, now_ns);
    return Arbiter::Finding::kFine;
  });
  // An older kernel pauses for up to two minutes.
  if (probe_ns != 0) (void)SetRtoMax(fd, probe_ns);
  return finding;
}

bool LaneHealing::MayLog(int lane, std::string* more) {
  // Somebody may come again and again, as another connection.
  if (setup_->fails_alone()) return setup_->runtime->stranger_lines->May(MonotonicNanos(), more);
  return Judge([&](Arbiter* arbiter) {
    const bool may = arbiter->MayLog(lane, MonotonicNanos());
    if (may) *more = UnsaidLines(static_cast<uint64_t>(arbiter->TakeUnlogged()));
    return may;
  });
}

bool LaneHealing::Lose(const absl::Status& why, int lane) {
  if (!heals() || !absl::IsUnavailable(why)) return false;
  // A peer that closes, or that has failed, says so before its lanes end.
  setup_->health->Ask();
  if (setup_->health->socket().PeerVanished()) return false;
  const LaneTable::Loss loss = Note(why, lane, Arbiter::Loss::kDied);
  if (loss != LaneTable::Loss::kNoted) return loss == LaneTable::Loss::kKnown;
  // Perhaps only this end knows: the sender, which dials, then learns it. A sender's own end would count as
  // unacknowledged.
  if (!setup_->sends()) shutdown(setup_->lane_fd(lane), SHUT_RDWR);
  setup_->runtime->reactor.Post([end = end_, lane] { end.With([lane](ConnectionEnd* one) { one->LaneLost(lane); }); });
  return true;
}

ConnectionCounts LaneHealing::tally() const {
  ConnectionCounts tally = lanes_.tally();
  tally.health = health_.load(std::memory_order_relaxed);
  return tally;
}

bool LaneHealing::Overdue() {
  const int64_t since_ns = lanes_.none_since_ns();
  return Judge([&](Arbiter* arbiter) { return arbiter->Overdue(since_ns, MonotonicNanos()); });
}

}  // namespace tcpx
