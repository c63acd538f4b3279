#include "tools/doctor/plan.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/connect/dial_turns.h"
#include "net_socket/connect/pending_hello.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/nic_socket.h"
#include "net_socket/nic/path_profile.h"

namespace tcpx {
namespace doctor {
namespace {

// Measured (docs/scale.md).
constexpr int64_t kKernelSocketBytes = 4500;     // an idle one
constexpr int64_t kSendConnectionBytes = 74000;  // of the plugin, with one lane
constexpr int64_t kReceiveConnectionBytes = 24000;
constexpr int64_t kSendLaneBytes = 17500;  // for each further lane
constexpr int64_t kReceiveLaneBytes = 1600;
constexpr double kConnectSeconds = 0.0003;  // of a CPU, for each socket
// The ends probe each other, and answer.
constexpr double kPacketsOfAProbe = 4;
// Lane 0: a connect and a hello; then the same of the others.
constexpr int64_t kConnectRoundTrips = 4;
// Other descriptors of a process: standard streams, epoll, io_uring, the application's files.
constexpr int64_t kOtherDescriptors = 64;

// The load of one process, in one direction.
struct Load {
  int64_t connections = 0;
  int64_t peers = 0;  // processes
  int64_t lanes = 0;
  int64_t least = 0;  // of a connection
  int64_t most = 0;
};

int64_t DivideUp(int64_t a, int64_t b) { return b == 0 ? 0 : (a + b - 1) / b; }

int64_t PowerOf2From(int64_t least) {
  int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

// As the process does it: each connection takes of what those before it have left, at both ends.
void AddLanes(const PlanHost& host, Load* load) {
  const PathProfile path = MakePathProfile(host.options, PathFacts());
  LaneBudget budget(host.descriptors);
  std::vector<std::shared_ptr<const void>> taken;
  int64_t left = load->connections;
  while (left > 0) {
    const int nics = static_cast<int>(host.nics.size());
    const int64_t lanes = LanesFor(host.options, path, host.nics, nics, budget.left()).lanes;
    load->most = std::max(load->most, lanes);
    load->least = lanes;
    // With nothing left all the others are alike.
    const int64_t alike = budget.left() <= 0 || lanes == 1 ? left : 1;
    load->lanes += alike * lanes;
    left -= alike;
    for (int end = 0; end < 2; ++end) taken.push_back(budget.Take(static_cast<int>(lanes) - 1));
  }
}

Load LoadOf(const PlanHost& host, int64_t connections, int64_t peers) {
  Load load;
  load.connections = connections;
  load.peers = peers;
  AddLanes(host, &load);
  return load;
}

int64_t SocketsOf(const PlanHost& host, const Load& load) {
  return 2 * (load.lanes + load.peers) + static_cast<int64_t>(host.nics.size());
}

// `count` processes that are alike.
void AddProcesses(const PlanHost& host, int64_t count, const Load& load, Plan* plan) {
  if (count == 0 || load.connections == 0) return;
  const int64_t bulk = load.lanes - load.connections;
  plan->connections += count * load.connections;
  plan->lanes += count * load.lanes;
  plan->health += count * 2 * load.peers;
  plan->listening += count * static_cast<int64_t>(host.nics.size());
  plan->sockets += count * SocketsOf(host, load);
  plan->plugin_bytes += count * (load.connections * (kSendConnectionBytes + kReceiveConnectionBytes) +
                                 bulk * (kSendLaneBytes + kReceiveLaneBytes));
  plan->buffer_bytes += count * bulk * kBulkUnsentBytes;
  plan->lanes_most = std::max(plan->lanes_most, load.most);
  plan->lanes_least = plan->lanes_least == 0 ? load.least : std::min(plan->lanes_least, load.least);
  plan->descriptors = std::max(plan->descriptors, kOtherDescriptors + SocketsOf(host, load));
  plan->lanes_to_a_peer = std::max(plan->lanes_to_a_peer, DivideUp(load.lanes, load.peers));
  plan->connect_seconds = std::max(plan->connect_seconds, kConnectSeconds * static_cast<double>(2 * load.lanes));
}

// A ring enters and leaves a host once for each channel; ranks take channels in turn.
void AddRing(const PlanJob& job, const PlanHost& host, Plan* plan) {
  const int64_t busy = std::min(job.ranks, job.channels);
  const int64_t more = job.channels % busy;
  AddProcesses(host, more, LoadOf(host, job.channels / busy + 1, 1), plan);
  AddProcesses(host, busy - more, LoadOf(host, job.channels / busy, 1), plan);
  plan->ports_to_a_peer = plan->lanes_to_a_peer + 1;
  plan->backlog = std::min<int64_t>(plan->lanes_to_a_peer, DialTurns::kLanesAtOnce);
}

void AddAllToAll(const PlanJob& job, const PlanHost& host, Plan* plan) {
  const int64_t peers = int64_t{job.ranks} * (job.hosts - 1);
  AddProcesses(host, job.ranks, LoadOf(host, peers * job.channels, peers), plan);
  plan->ports_to_a_peer = job.ranks * (plan->lanes_to_a_peer + 1);
  plan->backlog = peers * std::min<int64_t>(plan->lanes_to_a_peer, DialTurns::kLanesAtOnce);
}

void AddTimes(const PlanHost& host, Plan* plan) {
  const double health = static_cast<double>(plan->health);
  const double lanes = static_cast<double>(2 * plan->lanes);
  plan->keepalive_packets = kPacketsOfAProbe * (health / KeepAliveSeconds(host.options.peer_timeout_ns) +
                                                lanes / static_cast<double>(kIdleProbeNs / kSecond));
  const int64_t turns = DivideUp(plan->lanes_to_a_peer, DialTurns::kLanesAtOnce);
  const double on_the_way = static_cast<double>(turns * kConnectRoundTrips * host.rtt_us) / 1e6;
  plan->connect_seconds = std::max(plan->connect_seconds, on_the_way);
}

std::string PortFix(int64_t needed) {
  constexpr int64_t kPortsMost = 65535 - 1024 + 1;
  if (needed > kPortsMost) return "fewer lanes (TCPX_LANES) or channels: a process has one address and port";
  return "sysctl -w net.ipv4.ip_local_port_range='1024 65535'";
}

void AddLimits(const PlanHost& host, Plan* plan) {
  // What is left of the last share is for the process's own files.
  const int64_t files = DivideUp(plan->descriptors * PendingHellos::kSpareShare, PendingHellos::kSpareShare - 1);
  const int64_t file_limit = PowerOf2From(files);
  plan->limits.push_back({"nofile", files, host.descriptors, "descriptors of a process",
                          absl::StrCat("ulimit -Hn ", file_limit, " (LimitNOFILE=", file_limit, ")")});
  const int64_t queue = std::min<int64_t>(plan->backlog, kListenBacklog);
  plan->limits.push_back({"somaxconn", queue, host.somaxconn, "sockets that wait for one process",
                          absl::StrCat("sysctl -w net.core.somaxconn=", PowerOf2From(queue))});
  plan->limits.push_back({"ip_local_port_range", plan->ports_to_a_peer, host.ports,
                          "ports from this host to one process", PortFix(plan->ports_to_a_peer)});
  const int64_t pages = DivideUp(plan->buffer_bytes, 4096);
  plan->limits.push_back({"tcp_mem", plan->buffer_bytes, host.tcp_bytes, "bytes in the kernel's buffers at most",
                          absl::StrCat("sysctl -w net.ipv4.tcp_mem='", pages, " ", pages + pages / 3, " ", 2 * pages,
                                       "' (pages of 4 KiB)")});
  const int64_t flows = plan->sockets - plan->listening;
  plan->limits.push_back({"conntrack", flows, host.flows, "tracked connections",
                          absl::StrCat("sysctl -w net.netfilter.nf_conntrack_max=", PowerOf2From(2 * flows),
                                       "; or exempt the job's ports (nft: notrack)")});
  std::stable_sort(plan->limits.begin(), plan->limits.end(),
                   [](const PlanLimit& a, const PlanLimit& b) { return a.share() > b.share(); });
}

}  // namespace

Plan MakePlan(const PlanJob& job, const PlanHost& host) {
  Plan plan;
  job.pattern == Pattern::kRing ? AddRing(job, host, &plan) : AddAllToAll(job, host, &plan);
  int64_t mbps = 0;
  for (const Nic& nic : host.nics) mbps += nic.hardware.speed_mbps;
  // What is in flight, in both directions, is kept until it is acknowledged or read.
  plan.buffer_bytes += 2 * mbps * host.rtt_us / 8;
  plan.kernel_bytes = plan.sockets * kKernelSocketBytes;
  AddTimes(host, &plan);
  AddLimits(host, &plan);
  return plan;
}

}  // namespace doctor
}  // namespace tcpx
