// network.h: the network itself, without devices and without a clock: what arrives when, and when what leaves.
//
// Purpose: what happens to a frame, in order: the hash of its flow chooses the path; chance decides for each segment
//          whether it is lost or late; the flow's rate; the path's rate with its queue; the delay. The segments
//          of a GSO frame that fare differently part (frame.h), so a loss of 0.1 % hits single segments.
// Threads: one.
// Units:   nanoseconds of the caller's clock; bytes with IP headers; counters in segments where they don't say bytes.
// Errors:  none: what is lost is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "bench/netns/wire/chance.h"
#include "bench/netns/wire/frame.h"
#include "bench/netns/wire/packet.h"
#include "bench/netns/wire/rate_gate.h"
#include "bench/netns/wire/settings.h"

namespace tcpx {
namespace wire {

struct Counters {
  uint64_t flows = 0;     // that chose the path
  uint64_t segments = 0;  // that came out
  uint64_t bytes = 0;
  uint64_t lost = 0;
  uint64_t late = 0;  // overtaken
  uint64_t full = 0;  // found a queue full
  uint64_t cut = 0;
};

struct Departure {
  int to = 0;
  int64_t due = 0;
  Piece piece;
};

class Network {
 public:
  Network(int ends, const Settings& settings, uint64_t seed);

  const Settings& settings() const { return settings_; }
  // Holds from the next packet on. What is under way keeps its times, but not across a cut.
  void Change(const Settings& settings);

  // A frame for end `to`. It came at `now`, or, because the caller looked late, at any time since `since`.
  void Arrive(int to, const Frame& frame, const PacketInfo& info, int64_t since, int64_t now);
  // When the next piece has to go on; INT64_MAX: nothing is under way.
  int64_t NextDue() const;
  // Takes the next piece that has arrived at its end by `now`; false: none has.
  bool Depart(int64_t now, Departure* departure);

  size_t paths() const { return settings_.paths.size(); }
  const Counters& counters(int to, size_t path) const { return ways_[static_cast<size_t>(to)].paths[path].counters; }

 private:
  struct Path {
    RateGate gate;
    LossModel loss;
    int64_t last_arrival = 0;  // jitter lets nobody overtake
    Counters counters;
  };
  struct Way {
    std::vector<Path> paths;
  };
  struct Flow {
    RateGate gate;
    size_t path = 0;
  };
  struct KeyHash {
    size_t operator()(const FlowKey& key) const { return FlowHash(key, 0); }
  };
  enum class Stage { kToPath, kOut };
  struct Transit {
    Piece piece;
    int to = 0;
    size_t path = 0;
    bool late = false;
    Stage stage = Stage::kToPath;
  };
  struct Event {
    int64_t at;
    uint64_t number;  // ties: first in, first out
    Transit* transit;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };
  enum class Fate { kPass, kLost, kLate };
  // The frame that arrives.
  struct Arrival {
    int to;
    const Frame& frame;
    const PacketInfo& info;
    int64_t since;
    int64_t now;
    Flow* flow;
  };

  Flow* FlowOf(const FlowKey& key, int to);
  Path& PathOf(const Transit& transit) { return ways_[static_cast<size_t>(transit.to)].paths[transit.path]; }
  const PathSettings& SettingsOf(const Transit& transit) const { return settings_.paths[transit.path]; }
  Fate Draw(const PathSettings& settings, Path* path);
  int SegmentsInAPiece(const Arrival& arrival, const PathSettings& settings) const;
  void Forward(const Arrival& arrival, int first, int count, bool late);
  void PassPath(int64_t since, int64_t now, Transit* transit);
  void Schedule(int64_t at, Stage stage, Transit* transit);
  // Takes the heap's first event; gives it back finished, or null where it went on to its next stage or was lost.
  Transit* Advance(const Event& event);
  Transit* NewTransit();
  void Drop(Transit* transit, uint64_t* counter);

  Settings settings_;
  const uint64_t seed_;
  Random random_;
  std::vector<Way> ways_;
  std::unordered_map<FlowKey, Flow, KeyHash> flows_;
  std::priority_queue<Event> events_;
  uint64_t events_made_ = 0;
  std::vector<std::unique_ptr<Transit>> transits_;
  std::vector<Transit*> free_transits_;
};

}  // namespace wire
}  // namespace tcpx
