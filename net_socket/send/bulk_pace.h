// bulk_pace.h: how much a bulk send lane takes, and when: what it sees of how its socket drains.
//
// Purpose: a lane between hosts holds what drains within milliseconds at its own pace; one on the same host, a little
//          unsent data. Each look goes to the connection's LaneRates, by which the lanes share what is left.
// Threads: the lane's. Lifetime: owned by its lane; borrows all that it is given.
// Units:   bytes, nanoseconds of MonotonicNanos. Errors: none.
#pragma once

#include <cstdint>

#include "net_socket/pilot/lane_policy.h"
#include "net_socket/send/lane_rates.h"
#include "net_socket/send/send_stream.h"
#include "net_socket/send/stripe.h"

namespace tcpx {

class BusyLanes;

class BulkPace {
 public:
  struct Settings {
    bool by_rate = true;  // PathProfile::paced_by_rate
    int64_t chunk_bytes = 0;
    int64_t chunk_bytes_min = 0;
  };

  // `busy` is the process's; `rates` has one entry per bulk lane of the connection: this one writes its own.
  BulkPace(const SendStream* stream, const Settings& settings, Striper* striper, LaneRates* rates, BusyLanes* busy)
      : stream_(stream),
        settings_(settings),
        striper_(striper),
        rates_(rates),
        busy_(busy),
        rate_(settings.chunk_bytes_min) {}

  // True when the lane may take another chunk; else *retry_ns says when to ask again (0: when the socket is writable).
  bool HasRoom(int64_t* retry_ns);
  // Takes the next chunk for the lane. False: there is none.
  bool Pull(Chunk* chunk);
  // With nothing to pull: looks on while the lane holds data, so that a slow flow is found out although the others wait
  // for it to drain. Returns when to look again, 0 for not at all.
  int64_t LookWhileHeld();
  // The lane has a new socket, and nothing is known about its path.
  void Restart();

 private:
  int index() const { return stream_->lane() - 1; }  // among the connection's bulk lanes
  int64_t HeldMax() const;
  int64_t ChunkMin() const;
  // Takes a look at how the lane drains; returns what it holds.
  int64_t Look(int64_t now);
  void RefreshRate(int64_t now);

  const SendStream* const stream_;
  const Settings settings_;
  Striper* const striper_;
  LaneRates* const rates_;
  BusyLanes* const busy_;
  LaneRate rate_;
  uint32_t busy_span_ = 0;   // busy_'s
  int64_t unsent_max_ = -1;  // as of the latest look; -1: no bound
  int64_t rtt_asked_ns_ = 0;
  int64_t peer_limited_us_ = 0;         // as of then
  LanePolicy::RoundTrips round_trips_;  // the same
  int64_t looked_ns_ = 0;               // the latest look
  bool continuous_ = false;             // a chunk was being sent ever since the look before
  bool watching_ = false;               // the lane may hold data that no look has seen drain
};

}  // namespace tcpx
