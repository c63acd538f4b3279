#include "net_socket/comm/lane_table.h"

#include <algorithm>

#include "common/dcheck.h"

namespace tcpx {

LaneTable::LaneTable(Direction direction, const std::vector<bool>& have_sockets)
    : direction_(direction), entries_(have_sockets.size()) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!have_sockets[i]) continue;
    entries_[i].state = LaneState::kUp;
    ++up_count_;
  }
}

int LaneTable::CountMade() const {
  MutexLock lock(mutex_);
  const auto made = [](const Entry& entry) { return entry.state != LaneState::kNone; };
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), made));
}

bool LaneTable::AnyLost() const {
  MutexLock lock(mutex_);
  return AnyLostLocked();
}

bool LaneTable::AnyLostLocked() const {
  const auto lost = [](const Entry& entry) { return entry.state == LaneState::kLost; };
  return std::any_of(entries_.begin(), entries_.end(), lost);
}

int64_t LaneTable::lost_since_ns(int lane) const {
  MutexLock lock(mutex_);
  return at(lane).state == LaneState::kLost ? at(lane).lost_ns : 0;
}

bool LaneTable::Move(int lane, LaneState from, LaneState to) {
  TCPX_DCHECK(MayMove(from, to));
  MutexLock lock(mutex_);
  if (at(lane).state != from) return false;
  at(lane).state = to;
  return true;
}

void LaneTable::Leave(Entry* entry, LaneState to, int64_t now_ns) {
  TCPX_DCHECK(MayMove(entry->state, to));
  entry->state = to;
  if (--up_count_ == 0) none_since_ns_ = now_ns;
}

LaneTable::Loss LaneTable::Lose(int lane, Why why, int64_t now_ns) {
  MutexLock lock(mutex_);
  if (!heals()) return Loss::kRefused;
  Entry& entry = at(lane);
  if (!IsUp(entry.state)) return Loss::kKnown;
  entry.lost_ns = now_ns;
  Leave(&entry, LaneState::kLost, now_ns);
  ++(why == Why::kDied ? tally_.lost : tally_.moved);
  return Loss::kNoted;
}

void LaneTable::Back(int lane) {
  MutexLock lock(mutex_);
  Entry& entry = at(lane);
  if (IsUp(entry.state)) return;
  TCPX_DCHECK(MayMove(entry.state, LaneState::kUp));
  entry.opened = entry.state != LaneState::kLost;
  if (entry.opened) ++tally_.added;
  entry.state = LaneState::kUp;
  ++up_count_;
  none_since_ns_ = 0;
}

bool LaneTable::TakeOpened(int lane) {
  MutexLock lock(mutex_);
  const bool opened = at(lane).opened;
  at(lane).opened = false;
  if (!opened) ++tally_.resumed;
  return opened;
}

bool LaneTable::Close(int lane, int64_t now_ns) {
  MutexLock lock(mutex_);
  Entry& entry = at(lane);
  if (!heals() || !IsUp(entry.state)) return false;
  // The others may be lost at the receiver only.
  if (direction_ == Direction::kSend && up_count_ == 1) return false;
  Leave(&entry, LaneState::kClosed, now_ns);
  ++tally_.dropped;
  return true;
}

bool LaneTable::OrderMove(int lane) {
  return Move(lane, LaneState::kUp, LaneState::kMoving) || Move(lane, LaneState::kUnheard, LaneState::kMoving);
}

bool LaneTable::NoteUnheard(int lane) {
  return Move(lane, LaneState::kUp, LaneState::kUnheard) || Move(lane, LaneState::kMoving, LaneState::kUnheard) ||
         state(lane) == LaneState::kUnheard;
}

bool LaneTable::PeerLeft(const std::vector<uint64_t>& taken) {
  MutexLock lock(mutex_);
  if (taken.size() == entries_.size()) taken_at_end_ = taken;
  peer_left_.store(true, std::memory_order_release);
  return AnyLostLocked();
}

}  // namespace tcpx
