// plan.h: what a job of so many hosts costs each of them, and which limit it meets first, by arithmetic.
//
// Purpose: sockets, ports, memory and packets follow from the plugin's own functions and constants, and from what a
//          socket and a connection were measured to cost (docs/scale.md).
// Threads: pure.
// Units:   bytes, seconds, packets per second; per host, where nothing else is said.
// Errors:  none: the caller has checked the job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/params.h"
#include "net_socket/nic/device.h"
#include "tools/doctor/command.h"
#include "tools/doctor/finding.h"

namespace tcpx {
namespace doctor {

// The host that all are like. A limit below 0 is unknown, or there is none.
struct PlanHost {
  Options options;
  std::vector<Nic> nics{Nic()};  // of a rank's device
  int rtt_us = 500;
  int64_t descriptors = -1;  // the hard limit of a process
  int64_t somaxconn = -1;
  int64_t ports = -1;      // of ip_local_port_range
  int64_t tcp_bytes = -1;  // the last of tcp_mem
  int64_t flows = -1;      // of conntrack
};

struct PlanLimit {
  std::string name;  // "nofile"
  int64_t needed = 0;
  int64_t allowed = -1;
  std::string of;   // whose: "of a process"
  std::string fix;  // what to set

  bool known() const { return allowed > 0; }
  double share() const { return known() ? static_cast<double>(needed) / static_cast<double>(allowed) : 0; }
};

struct Plan {
  int64_t connections = 0;        // dialled, and as many accepted
  int64_t lanes = 0;              // dialled, and as many accepted
  int64_t lanes_most = 0;         // of a connection
  int64_t lanes_least = 0;        // fewer, where the process's lanes are shared
  int64_t health = 0;             // sockets, both directions
  int64_t listening = 0;          // ports to listen on
  int64_t sockets = 0;            // all of these
  int64_t descriptors = 0;        // of the process that has most
  int64_t lanes_to_a_peer = 0;    // from one process to another
  int64_t ports_to_a_peer = 0;    // from the host to one process
  int64_t backlog = 0;            // of one listening socket, if all dial at once
  int64_t kernel_bytes = 0;       // of idle sockets
  int64_t buffer_bytes = 0;       // at most, while all lanes carry
  int64_t plugin_bytes = 0;       // of all its processes
  double keepalive_packets = 0;   // sent and received, while idle
  double connect_seconds = 0;     // with a CPU for each process
  std::vector<PlanLimit> limits;  // the one that is reached first in front
};

Plan MakePlan(const PlanJob& job, const PlanHost& host);

void ReportPlan(const PlanJob& job, const Plan& plan, Report* report);
// `"plan": {...}`
std::string PlanJson(const PlanJob& job, const Plan& plan);

}  // namespace doctor
}  // namespace tcpx
