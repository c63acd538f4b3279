// tracks.h: the rows of the timeline.
//
// Purpose: events that overlap can't share a row: each kind of event of a communicator, peer, channel or lane has as
//          many rows as ever were busy at once, and an event takes the first free one.
// Threads: one at a time.
// Lifetime: a communicator's rows end with it, and no later row has their numbers: those are in the trace.
// Errors:  none; what finds no row is in row 0; there are kRowsMax of a kind and kTracksMax in all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profiler/event.h"

namespace tcpx {

struct NewTrack {
  uint32_t track;
  std::string name;
};

class Tracks {
 public:
  static constexpr size_t kTracksMax = 8192;
  static constexpr size_t kRowsMax = 64;

  // A free row of those of `key`, which `name()` names where there is none yet; it is taken until Release.
  template <typename Name>
  uint32_t Take(uint64_t key, Name name) {
    return Place(key, 0, kTaken, name);
  }
  void Release(uint32_t track) {
    if (track != 0) until_ns_[track] = 0;
  }
  // As Take for an event that is over, between two times.
  template <typename Name>
  uint32_t Place(uint64_t key, int64_t begin_ns, int64_t end_ns, Name name) {
    std::vector<uint32_t>* const rows = RowsOf(key);
    if (rows == nullptr) return 0;
    for (const uint32_t row : *rows) {
      int64_t& until_ns = until_ns_[row];
      if (until_ns > begin_ns) continue;
      until_ns = end_ns;
      return row;
    }
    return IsFull() || rows->size() >= kRowsMax ? 0 : Add(name(), end_ns, rows);
  }
  // Those made since the last call.
  std::vector<NewTrack> TakeNew();
  // Returns the rows of a communicator's keys (TrackKey), and frees them.
  std::vector<uint32_t> Forget(uint32_t communicator);
  // Kinds of events that it remembers.
  size_t kinds() const { return rows_.size(); }

 private:
  static constexpr int64_t kTaken = INT64_MAX;

  // Null: a new kind, and no room.
  std::vector<uint32_t>* RowsOf(uint64_t key);
  bool IsFull() const { return until_ns_.size() + 1 >= kTracksMax; }  // with row 0
  uint32_t Add(const std::string& name, int64_t until_ns, std::vector<uint32_t>* rows);

  absl::flat_hash_map<uint64_t, std::vector<uint32_t>> rows_;
  absl::flat_hash_map<uint32_t, int64_t> until_ns_;  // by track: the end of what lies there last; 0 is nobody's
  uint32_t latest_ = 0;
  std::vector<NewTrack> new_;
};

// Tells the rows of one communicator's events from all others. `lane`: a number of the network event's socket.
uint64_t TrackKey(const EventFacts& facts, const EventFacts* parent, uint32_t communicator, uint32_t lane);
// What the row is called. `parent`: of a step or a network event, else null. `lane`: the addresses of a network event's
// socket.
std::string TrackName(const EventFacts& facts, const EventFacts* parent, const std::string& communicator,
                      const std::string& lane);

}  // namespace tcpx
