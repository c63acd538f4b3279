// pair.h: one of two workers that carry out the same command at the same time.
//
// Purpose: owns what a worker has: the control channel, the plugin, the links of each implementation, the buffers.
// Threads: one driver per process, no other.
// Units:   bytes, nanoseconds.
// Errors:  a Status that ends the worker; the other one then sees the control connection close.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/net_bench/buffers.h"
#include "bench/net_bench/channel.h"
#include "bench/net_bench/command.h"
#include "bench/net_bench/control.h"
#include "bench/net_bench/cost.h"
#include "bench/net_bench/flag_run.h"
#include "bench/net_bench/loop.h"
#include "bench/net_bench/mixed_run.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/place.h"
#include "bench/net_bench/plugin_host.h"
#include "bench/net_bench/plugin_link.h"
#include "bench/net_bench/rma_host.h"
#include "bench/net_bench/rma_link.h"
#include "bench/net_bench/shared_page.h"

namespace tcpx {
namespace bench {

struct Outcome {
  double gigabytes_per_second = 0;  // 1e9 bytes; both directions together
  double nanoseconds_per_message = 0;
  double half_round_trip_p50_us = 0;  // latency only
  double half_round_trip_p99_us = 0;
  double tests_per_message = 0;  // of receives, with kFlags
  double lost_fraction = 0;      // of the sample, at the worse side: other processes had the CPU
  double bounce_after_ns = -1;   // -1: not probed
  uint64_t pings = 0;            // of kMixed: round trips in the figures
  CostResult cost[2];            // per rank
};

class Pair {
 public:
  Pair(const WorkerPlace& place, Control* control) : place_(place), control_(control) {}

  absl::Status OpenPlugin(const Options& options);
  // The same for one-sided transfers, and for isend and irecv of --plugin where options.send_receive says so.
  absl::Status OpenOneSided(const Options& options);
  absl::Status ClosePlugin();
  PluginHost* plugin() { return plugin_.get(); }
  // Describes both plugins; empty: there is none.
  std::string Description() const {
    if (rma_ != nullptr) return rma_->description();
    return plugin_ == nullptr ? "" : plugin_->description();
  }
  std::string VsDescription() const {
    if (rma_vs_ != nullptr) return rma_vs_->description();
    return vs_ == nullptr ? "" : vs_->description();
  }

  // Runs one command; rank 0 has sent it to rank 1 before. `outcome` is filled at rank 0.
  absl::Status Execute(const Command& command, Outcome* outcome);
  // The same at rank 0, which sends it to rank 1 first.
  absl::Status Do(const Command& command, Outcome* outcome);
  // Nanoseconds per bounce at rank 0, 0 at rank 1, -1 where the two do not share a page and have no CPU each.
  double Probe();
  bool CanProbe() const { return place_.same_machine && place_.cpu >= 0; }

  const WorkerPlace& place() const { return place_; }
  Control* control() { return control_; }
  Position* position() { return &place_.page->positions[place_.rank]; }
  // What the first bare sockets use; empty before they are made.
  const std::string& raw_congestion() const { return raw_congestion_; }

 private:
  absl::Status OpenLinks(const Command& command);
  absl::Status OpenRaw(const Command& command, Implementation implementation);
  absl::Status OpenPluginLink(const Command& command, Implementation implementation, PluginHost* host);
  absl::Status OpenRmaLink(const Command& command, Implementation implementation, RmaHost* host);
  absl::Status OpenPluginLinks(const Command& command);
  size_t BytesOf(const Command& command) const;
  absl::Status CloseLinks();
  absl::Status Sample(const Command& command, Outcome* outcome);
  absl::Status RunFlags(const Command& command, Outcome* outcome);
  absl::Status RunMixed(const Command& command, Outcome* outcome);
  absl::Status ConcludeMixed(const Command& command, MixedResult* result, Outcome* outcome);
  FlagOrder FlagOrderFor(const Command& command) const;
  absl::Status RunCost(const Command& command, Outcome* outcome);
  absl::Status CheckOrder(const Command& command) const;
  LoopOrder OrderFor(const Command& command) const;
  absl::Status RunLoop(const Command& command, const LoopOrder& order, Stage stage, LoopResult* result);
  absl::Status Conclude(const Command& command, int64_t lost_ns, LoopResult* result, Outcome* outcome);

  const WorkerPlace place_;
  Control* const control_;
  std::vector<int> home_cpus_;  // the mask before pinning
  std::unique_ptr<PluginHost> plugin_;
  std::unique_ptr<PluginHost> vs_;  // the second one
  std::unique_ptr<RmaHost> rma_;    // the same of one-sided transfers; `plugin_` is then the floor of bandwidth
  std::unique_ptr<RmaHost> rma_vs_;
  std::unique_ptr<SlotRing> send_slots_;
  std::unique_ptr<SlotRing> receive_slots_;
  std::array<std::unique_ptr<Link>, kImplementationCount> links_;
  std::string raw_congestion_;
};

}  // namespace bench
}  // namespace tcpx
