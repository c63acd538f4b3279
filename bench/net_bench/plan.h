// plan.h: which cells a mode has, and what becomes of their samples.
//
// Purpose: a cell is one (size, connections, implementation). Samples are kept by phase; a report compares cells within
//          one phase only.
// Threads: any; pure.
// Units:   bytes, microseconds, GB/s (1e9 bytes). Errors: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bench/net_bench/options.h"
#include "bench/net_bench/phase.h"
#include "bench/net_bench/shared_page.h"
#include "bench/net_bench/stats.h"

namespace tcpx {
namespace bench {

// Fewer kept samples than this carry no verdict: the report marks such a figure.
inline constexpr size_t kVerdictSamples = 5;
// From this size on one bare socket is not the best that bare sockets can do.
inline constexpr uint64_t kSeveralSocketsFrom = 512 << 10;

// The message size of the stream that runs during the ping-pong of kMixed.
inline constexpr uint64_t kMixedStreamBytes = 4 << 20;

struct CellSamples {
  std::vector<double> value;  // in UnitOf(mode)
  std::vector<double> p99;    // latency only, us
  std::vector<double> nanoseconds_per_message;
};

struct Cell {
  uint64_t bytes = 0;
  int connections = 1;
  Implementation implementation = Implementation::kPlugin;

  std::array<CellSamples, kKeptPhaseCount> kept;
  int tries = 0;
  int disturbed = 0;  // samples dropped because of other processes; each also makes the next ones shorter
  double nanoseconds_per_message = 0;  // of the latest sample; 0: none yet

  CellSamples& In(Phase phase) { return kept[static_cast<size_t>(phase)]; }
  const CellSamples& In(Phase phase) const { return kept[static_cast<size_t>(phase)]; }
};

struct ModeReport {
  Mode mode = Mode::kLatency;
  int window = 8;
  std::vector<Cell> cells;
  double seconds = 0;
  int phase_changed = 0;   // samples dropped
  int disturbed = 0;       // the same, because other processes had a driver's CPU
  int kept_disturbed = 0;  // kept in spite of it: the machine was not quiet enough
};

std::vector<uint64_t> SizesFor(const Options& options, Mode mode);
std::vector<int> ConnectionsFor(const Options& options, Mode mode);
// Requests in flight per connection.
int WindowFor(const Options& options, Mode mode);
// What a bare socket sends in addition to a message's bytes, so that both put as much on the wire: one-sided small
// messages are compared with the bytes of their record and their signal.
inline constexpr uint64_t kRecordBytes = 64;
// Bare variants that the floor of this cell is taken from; the first is the one users think of.
std::vector<Implementation> FloorFor(Mode mode, uint64_t bytes, int connections);
// All cells with this many connections.
std::vector<Cell> CellsFor(const Options& options, Mode mode, int connections);

// Messages of one sample, per connection, and before it.
uint64_t MessagesFor(const Options& options, const Cell& cell);
uint64_t WarmupFor(const Options& options, const Cell& cell);

// The phase that the main table shows: the chosen one if any cell has samples of it, else the best there is.
Phase MainPhase(const std::vector<Cell>& cells, PhaseChoice choice);

// What Cell's values are.
const char* UnitOf(Mode mode);
// True exactly when a larger value is better.
inline bool LargerIsBetter(Mode mode) { return mode != Mode::kLatency; }

// One line of a report: everything known about one size in one phase.
struct Row {
  uint64_t bytes = 0;
  int connections = 1;
  const Cell* plugin = nullptr;    // null: not measured
  const Cell* floor = nullptr;     // the best bare variant of FloorFor
  const Cell* each_way = nullptr;  // latency: one bare socket each way
  const Cell* vs = nullptr;        // the second plugin
  double ratio = 0;                // plugin / floor; 0: unknown
  double vs_ratio = 0;             // plugin / vs; 0: unknown
  bool enough = false;             // both have kVerdictSamples
  bool vs_enough = false;
};
std::vector<Row> RowsFor(const ModeReport& report, Phase phase);

}  // namespace bench
}  // namespace tcpx
