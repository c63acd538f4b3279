// runtime.h: what all connections of the process share while there are any: threads, staging buffers, settings.
//
// Purpose: handed down instead of globals. Created with the first listen or connect, gone after the last.
// Threads: the members serialize themselves; the pointers are constant while a comm lives.
#pragma once

#include <memory>

#include "common/params.h"
#include "net_socket/engine/linger.h"
#include "net_socket/engine/progress_pool.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/gpu/gpu_hub.h"
#include "net_socket/health/health_hub.h"
#include "net_socket/health/watchdog.h"
#include "net_socket/receive/lane_stage.h"

namespace tcpx {

class BusyLanes;
class CpuShortage;
class HostKnocks;
class InterfaceStates;
class LaneBudget;
class LaneNotes;
class LineLimit;
class LostPaths;
class StatsHub;

struct Runtime {
  explicit Runtime(const Options& given);
  ~Runtime();

  const Options& options;  // the process's, which outlives us
  // The plugin's, which outlives us.
  LaneNotes* lane_notes = nullptr;
  StatsHub* stats = nullptr;  // null: nobody asks for statistics
  const std::unique_ptr<LaneBudget> lane_budget;
  const std::unique_ptr<BusyLanes> busy_lanes;
  Reactor reactor;
  LingeringSockets lingering{&reactor};
  HealthHub health{&reactor};
  Watchdog watchdog{&reactor};
  Watchdog silences{&reactor};                      // of lanes that heal
  const std::unique_ptr<CpuShortage> cpu_shortage;  // the reactor's
  const std::unique_ptr<HostKnocks> knocks;         // the same
  const std::unique_ptr<InterfaceStates> interfaces;
  const std::unique_ptr<LostPaths> lost_paths;
  const std::unique_ptr<LineLimit> foreign_lines;   // of peers whose bytes are not tcpx, or not theirs
  const std::unique_ptr<LineLimit> stranger_lines;  // of lanes of peers whom nobody knows yet
  StagePool stages;
  std::unique_ptr<GpuHub> gpu;         // null: host memory only
  std::unique_ptr<ProgressPool> pool;  // null: the caller drives everything
};

}  // namespace tcpx
