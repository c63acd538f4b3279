#include "bench/net_bench/pair.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/net_bench/cpus.h"
#include "bench/net_bench/interference.h"
#include "bench/net_bench/phase.h"
#include "bench/net_bench/plan.h"
#include "bench/net_bench/raw_link.h"
#include "bench/net_bench/stats.h"

namespace tcpx {
namespace bench {
namespace {

size_t Index(Implementation implementation) { return static_cast<size_t>(implementation); }

bool IsPlugin(Implementation implementation) {
  return implementation == Implementation::kPlugin || implementation == Implementation::kVs ||
         implementation == Implementation::kSendReceive;
}

// What rank 1 has to say after a sample.
struct PeerResult {
  int64_t elapsed_ns = 0;
  int64_t lost_ns = 0;
};

struct PeerFlags {
  int64_t elapsed_ns = 0;
  uint64_t tests = 0;
};

// With fewer CPUs the second thread shares the driver's.
constexpr int kCpusForFourThreads = 4;

RawShape RawShapeFor(const Command& command, Implementation implementation) {
  RawShape shape;
  shape.connections = command.connections;
  shape.both_ways = implementation != Implementation::kRawEachWay;
  if (implementation == Implementation::kRawTwo) shape.sockets = 2;
  if (implementation == Implementation::kRawFour) shape.sockets = 4;
  shape.congestion = command.raw_congestion;
  return shape;
}

}  // namespace

absl::Status Pair::OpenPlugin(const Options& options) {
  absl::StatusOr<std::unique_ptr<PluginHost>> host = PluginHost::Open(options, position());
  if (!host.ok()) return host.status();
  plugin_ = std::move(*host);
  if (options.vs.empty()) return absl::OkStatus();
  Options second = options;
  second.plugin = options.vs;
  host = PluginHost::Open(second, position());
  if (host.ok()) vs_ = std::move(*host);
  return host.status();
}

absl::Status Pair::OpenOneSided(const Options& options) {
  absl::StatusOr<std::unique_ptr<RmaHost>> host = RmaHost::Open(options, position());
  if (!host.ok()) return host.status();
  rma_ = *std::move(host);
  Options second = options;
  if (options.send_receive) {
    second.api_version = 0;  // The number is one of the other table's.
    absl::StatusOr<std::unique_ptr<PluginHost>> net = PluginHost::Open(second, position());
    if (!net.ok()) return net.status();
    plugin_ = *std::move(net);
  }
  if (options.vs.empty()) return absl::OkStatus();
  second = options;
  second.plugin = options.vs;
  host = RmaHost::Open(second, position());
  if (host.ok()) rma_vs_ = *std::move(host);
  return host.status();
}

absl::Status Pair::ClosePlugin() {
  absl::Status status;
  for (std::unique_ptr<RmaHost>* host : {&rma_vs_, &rma_}) {
    if (*host == nullptr) continue;
    status.Update((*host)->Close());
    host->reset();
  }
  for (std::unique_ptr<PluginHost>* host : {&vs_, &plugin_}) {
    if (*host == nullptr) continue;
    status.Update((*host)->Close());
    host->reset();
  }
  return status;
}

absl::Status Pair::Do(const Command& command, Outcome* outcome) {
  if (absl::Status status = control_->Send(command); !status.ok()) return status;
  return Execute(command, outcome);
}

absl::Status Pair::Execute(const Command& command, Outcome* outcome) {
  switch (command.kind) {
    case CommandKind::kOpenLinks:
      return OpenLinks(command);
    case CommandKind::kProbe:
      outcome->bounce_after_ns = Probe();
      return absl::OkStatus();
    case CommandKind::kSample:
      return Sample(command, outcome);
    case CommandKind::kCloseLinks:
      return CloseLinks();
    case CommandKind::kFlags:
      return RunFlags(command, outcome);
    case CommandKind::kMixed:
      return RunMixed(command, outcome);
    case CommandKind::kIdle:
    case CommandKind::kSetup:
      return RunCost(command, outcome);
    case CommandKind::kQuit:
      return ClosePlugin();
  }
  return absl::InternalError("the other process sent an unknown command");
}

// Not pinned: the plugin's own threads are what is looked at.
absl::Status Pair::RunCost(const Command& command, Outcome* outcome) {
  if (plugin_ == nullptr) return absl::FailedPreconditionError("this side was started without --plugin");
  absl::StatusOr<CostResult> own = MeasureCost(command, place_.rank, plugin_.get(), control_, position());
  if (!own.ok()) return own.status();
  if (place_.rank == 1) return control_->Send(*own);
  outcome->cost[0] = *own;
  return control_->Receive(&outcome->cost[1]);
}

double Pair::Probe() {
  if (!CanProbe()) return -1;
  position()->Enter(Stage::kPhaseProbe);
  return ProbeBounceNs(place_.page, place_.rank);
}

// The plugin is set up unpinned: its threads inherit the mask, and its idea of how many CPUs there are comes from it.
absl::Status Pair::OpenLinks(const Command& command) {
  SlotRing::Shape shape;
  shape.regions = command.connections;
  shape.slots = command.window;
  shape.bytes_max = command.bytes + (rma_ != nullptr ? kRecordBytes : 0);
  for (std::unique_ptr<SlotRing>* ring : {&send_slots_, &receive_slots_}) {
    absl::StatusOr<std::unique_ptr<SlotRing>> made = SlotRing::Create(shape);
    if (!made.ok()) return made.status();
    *ring = std::move(*made);
  }
  for (int i = 0; i < kImplementationCount; ++i) {
    const auto implementation = static_cast<Implementation>(i);
    if (!Has(command, implementation) || IsPlugin(implementation)) continue;
    if (absl::Status status = OpenRaw(command, implementation); !status.ok()) return status;
  }
  if (absl::Status status = OpenPluginLinks(command); !status.ok()) return status;
  if (place_.cpu >= 0) {
    home_cpus_ = AllowedCpus();
    RunOn({place_.cpu});
  }
  return absl::OkStatus();
}

absl::Status Pair::OpenPluginLinks(const Command& command) {
  if (rma_ == nullptr) {
    absl::Status status = OpenPluginLink(command, Implementation::kPlugin, plugin_.get());
    return status.ok() ? OpenPluginLink(command, Implementation::kVs, vs_.get()) : status;
  }
  absl::Status status = OpenRmaLink(command, Implementation::kPlugin, rma_.get());
  if (status.ok()) status = OpenRmaLink(command, Implementation::kVs, rma_vs_.get());
  return status.ok() ? OpenPluginLink(command, Implementation::kSendReceive, plugin_.get()) : status;
}

absl::Status Pair::OpenRmaLink(const Command& command, Implementation implementation, RmaHost* host) {
  if (!Has(command, implementation)) return absl::OkStatus();
  if (host == nullptr || command.connections != 1)
    return absl::InternalError("the other process asked for another link");
  absl::StatusOr<std::unique_ptr<RmaLink>> link =
      RmaLink::Create(host, place_.rank, control_, send_slots_.get(), receive_slots_.get(), position());
  if (link.ok()) links_[Index(implementation)] = *std::move(link);
  return link.status();
}

absl::Status Pair::OpenRaw(const Command& command, Implementation implementation) {
  position()->Enter(Stage::kRawSockets);
  absl::StatusOr<std::unique_ptr<RawLink>> link =
      RawLink::Create(RawShapeFor(command, implementation), place_.rank, control_);
  if (!link.ok()) return link.status();
  raw_congestion_ = (*link)->congestion();
  links_[Index(implementation)] = std::move(*link);
  return absl::OkStatus();
}

absl::Status Pair::OpenPluginLink(const Command& command, Implementation implementation, PluginHost* host) {
  if (!Has(command, implementation)) return absl::OkStatus();
  if (host == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("this side was started without --", ImplementationName(implementation)));
  }
  PluginLinkShape links;
  links.connections = command.connections;
  absl::StatusOr<std::unique_ptr<PluginLink>> link =
      PluginLink::Create(links, host, control_, send_slots_.get(), receive_slots_.get(), position());
  if (link.ok()) links_[Index(implementation)] = std::move(*link);
  return link.status();
}

absl::Status Pair::CloseLinks() {
  absl::Status status;
  for (const std::unique_ptr<Link>& link : links_) {
    if (link != nullptr) status.Update(link->Close());
  }
  for (std::unique_ptr<Link>& link : links_) link.reset();
  send_slots_.reset();
  receive_slots_.reset();
  RunOn(home_cpus_);
  return status;
}

absl::Status Pair::CheckOrder(const Command& command) const {
  const bool fits = send_slots_ != nullptr && send_slots_->Holds(command.connections, command.window, command.bytes) &&
                    Index(command.implementation) < links_.size() && links_[Index(command.implementation)] != nullptr;
  return fits ? absl::OkStatus() : absl::InternalError("the other process asked for more than was set up");
}

absl::Status Pair::Sample(const Command& command, Outcome* outcome) {
  if (absl::Status status = CheckOrder(command); !status.ok()) return status;
  send_slots_->Layout(BytesOf(command));
  receive_slots_->Layout(BytesOf(command));
  LoopOrder order = OrderFor(command);
  LoopResult result;
  order.messages = command.warmup;
  absl::Status status = RunLoop(command, order, Stage::kWarmUp, &result);
  if (!status.ok()) return status;
  order.messages = command.messages;
  ++order.seed;  // A message of the warm-up must not pass for one of the sample.
  order.stamp = command.mode == Mode::kLatency && place_.rank == 0;
  const SchedulerReading before = ReadScheduler();
  status = RunLoop(command, order, Stage::kTransfer, &result);
  const int64_t lost_ns = LostToOthersNs(before, ReadScheduler());
  if (status.ok()) status = Conclude(command, lost_ns, &result, outcome);
  if (!status.ok() || command.probe_after == 0) return status;
  outcome->bounce_after_ns = Probe();
  return absl::OkStatus();
}

// How many bytes each message of a sample has.
size_t Pair::BytesOf(const Command& command) const {
  const bool bare = command.implementation == Implementation::kRawOne && command.mode == Mode::kLatency;
  return rma_ != nullptr && bare ? command.bytes + kRecordBytes : command.bytes;
}

LoopOrder Pair::OrderFor(const Command& command) const {
  LoopOrder order;
  order.connections = command.connections;
  order.window = command.window;
  order.bytes = BytesOf(command);
  order.one_isend_per_pass = command.one_isend_per_pass != 0;
  order.check = command.check != 0;
  order.yield = command.yield != 0;
  order.seed = command.seed;
  order.rank = static_cast<uint32_t>(place_.rank);
  order.peer_rank = static_cast<uint32_t>(1 - place_.rank);
  if (command.mode == Mode::kLatency) {
    order.gate = place_.rank == 0 ? Gate::kPing : Gate::kEcho;
  } else if (command.mode != Mode::kBidirectional) {
    order.sends = place_.rank == 0;
    order.receives = place_.rank == 1;
  }
  return order;
}

absl::Status Pair::RunLoop(const Command& command, const LoopOrder& order, Stage stage, LoopResult* result) {
  Position* here = position();
  here->implementation.store(command.implementation, std::memory_order_relaxed);
  here->bytes.store(command.bytes, std::memory_order_relaxed);
  here->At(0, 0);
  Loop loop(order, links_[Index(command.implementation)].get(), send_slots_.get(), receive_slots_.get(), here);
  here->Enter(Stage::kPeer);
  if (absl::Status status = control_->Meet(place_.rank == 0); !status.ok()) return status;
  here->Enter(stage);
  return loop.Run(result);
}

FlagOrder Pair::FlagOrderFor(const Command& command) const {
  FlagOrder order;
  order.kind = command.line_kind;
  order.bytes = command.bytes;
  order.window = command.window;
  order.messages = command.messages;
  order.warmup = command.warmup;
  order.first_flag = command.seed;
  order.ping = command.mode == Mode::kLatency;
  order.yield = place_.usable_cpus < kCpusForFourThreads;
  order.rank = place_.rank;
  if (!order.yield) order.gpu_cpus = home_cpus_;
  return order;
}

absl::Status Pair::RunFlags(const Command& command, Outcome* outcome) {
  if (absl::Status status = CheckOrder(command); !status.ok()) return status;
  PluginLink* link = static_cast<PluginLink*>(links_[0].get());
  link->SetOptional(command.optional_recv != 0);
  send_slots_->Layout(command.bytes);
  receive_slots_->Layout(command.bytes);
  Position* here = position();
  here->bytes.store(command.bytes, std::memory_order_relaxed);
  here->At(0, 0);
  FlagRun run(FlagOrderFor(command), link, send_slots_.get(), receive_slots_.get(), here);
  here->Enter(Stage::kPeer);
  if (absl::Status status = control_->Meet(place_.rank == 0); !status.ok()) return status;
  here->Enter(Stage::kTransfer);
  FlagResult result;
  if (absl::Status status = run.Run(&result); !status.ok()) return status;
  here->Enter(Stage::kPeer);
  const PeerFlags ours = {result.elapsed_ns, result.tests};
  if (place_.rank == 1) return control_->Send(ours);
  PeerFlags theirs;
  if (absl::Status status = control_->Receive(&theirs); !status.ok()) return status;
  const bool ping = command.mode == Mode::kLatency;
  const double counted = static_cast<double>(std::max<uint64_t>(1, command.messages - command.warmup));
  const double received = static_cast<double>(command.messages) * (ping ? 2 : 1);
  outcome->nanoseconds_per_message = static_cast<double>(ping ? ours.elapsed_ns : theirs.elapsed_ns) / counted;
  outcome->tests_per_message = static_cast<double>(ours.tests + theirs.tests) / received;
  outcome->half_round_trip_p50_us = static_cast<double>(NearestRank(&result.gaps_ns, 0.5)) / 2000;
  outcome->half_round_trip_p99_us = static_cast<double>(NearestRank(&result.gaps_ns, 0.99)) / 2000;
  return absl::OkStatus();
}

absl::Status Pair::RunMixed(const Command& command, Outcome* outcome) {
  if (absl::Status status = CheckOrder(command); !status.ok()) return status;
  if (command.connections != 2 || command.ping_bytes < kPingBytesMin || command.ping_bytes > command.bytes) {
    return absl::InternalError("the other process asked for a ping-pong that can't be");
  }
  send_slots_->Layout(command.bytes);
  receive_slots_->Layout(command.bytes);
  MixedOrder order;
  order.ping_bytes = command.ping_bytes;
  order.stream_bytes = command.bytes;
  order.window = command.window;
  order.messages = command.messages;
  order.warmup = command.warmup;
  order.yield = command.yield != 0;
  order.rank = place_.rank;
  Position* here = position();
  here->implementation.store(command.implementation, std::memory_order_relaxed);
  here->bytes.store(command.bytes, std::memory_order_relaxed);
  here->At(0, 0);
  MixedRun run(order, links_[Index(command.implementation)].get(), send_slots_.get(), receive_slots_.get(), here);
  here->Enter(Stage::kPeer);
  if (absl::Status status = control_->Meet(place_.rank == 0); !status.ok()) return status;
  here->Enter(Stage::kTransfer);
  MixedResult result;
  if (absl::Status status = run.Run(&result); !status.ok()) return status;
  return ConcludeMixed(command, &result, outcome);
}

absl::Status Pair::ConcludeMixed(const Command& command, MixedResult* result, Outcome* outcome) {
  position()->Enter(Stage::kPeer);
  if (place_.rank == 1) return control_->Send(result->elapsed_ns);
  // The receiver's time: a sender is done when the kernel has taken its bytes.
  int64_t elapsed_ns = 0;
  if (absl::Status status = control_->Receive(&elapsed_ns); !status.ok()) return status;
  const double messages = static_cast<double>(command.messages - command.warmup);
  outcome->nanoseconds_per_message = static_cast<double>(elapsed_ns) / std::max(1.0, messages);
  outcome->gigabytes_per_second = static_cast<double>(command.bytes) / std::max(1.0, outcome->nanoseconds_per_message);
  outcome->half_round_trip_p50_us = static_cast<double>(NearestRank(&result->gaps_ns, 0.5)) / 2000;
  outcome->half_round_trip_p99_us = static_cast<double>(NearestRank(&result->gaps_ns, 0.99)) / 2000;
  outcome->pings = result->gaps_ns.size();
  return absl::OkStatus();
}

// A sample lasts until the last side has all: a sender is done when the kernel has taken its bytes, not before the
// receiver has them.
absl::Status Pair::Conclude(const Command& command, int64_t lost_ns, LoopResult* result, Outcome* outcome) {
  position()->Enter(Stage::kPeer);
  const PeerResult ours = {result->elapsed_ns, lost_ns};
  if (place_.rank == 1) return control_->Send(ours);
  PeerResult theirs;
  if (absl::Status status = control_->Receive(&theirs); !status.ok()) return status;
  const bool both_ways = command.mode == Mode::kLatency || command.mode == Mode::kBidirectional;
  const double elapsed = static_cast<double>(std::max<int64_t>(1, std::max(ours.elapsed_ns, theirs.elapsed_ns)));
  const double messages = static_cast<double>(command.messages) * command.connections;
  outcome->lost_fraction = static_cast<double>(std::max(ours.lost_ns, theirs.lost_ns)) / elapsed;
  outcome->nanoseconds_per_message = elapsed / messages;
  outcome->gigabytes_per_second = (both_ways ? 2 : 1) * messages * static_cast<double>(command.bytes) / elapsed;
  // NearestRank reorders, it does not change.
  outcome->half_round_trip_p50_us = static_cast<double>(NearestRank(&result->gaps_ns, 0.5)) / 2000;
  outcome->half_round_trip_p99_us = static_cast<double>(NearestRank(&result->gaps_ns, 0.99)) / 2000;
  return absl::OkStatus();
}

}  // namespace bench
}  // namespace tcpx
