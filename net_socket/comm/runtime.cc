#include "net_socket/comm/runtime.h"

#include "common/interfaces.h"
#include "common/log.h"
#include "net_socket/comm/host_knock.h"
#include "net_socket/health/cpu_shortage.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/lost_paths.h"
#include "net_socket/send/busy_lanes.h"

namespace tcpx {

Runtime::Runtime(const Options& given)
    : options(given),
      lane_budget(std::make_unique<LaneBudget>()),
      busy_lanes(std::make_unique<BusyLanes>()),
      cpu_shortage(std::make_unique<CpuShortage>()),
      knocks(std::make_unique<HostKnocks>()),
      interfaces(std::make_unique<InterfaceStates>()),
      lost_paths(std::make_unique<LostPaths>(&reactor)),
      foreign_lines(std::make_unique<LineLimit>()),
      stranger_lines(std::make_unique<LineLimit>()) {
  if (!options.trace_dir.empty()) health.MeasureClocks();
}

Runtime::~Runtime() = default;

}  // namespace tcpx
