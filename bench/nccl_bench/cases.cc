#include "bench/nccl_bench/cases.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/nccl_bench/launch.h"
#include "bench/nccl_bench/one_sided.h"
#include "common/clock.h"

namespace tcpx {
namespace nccl_bench {
namespace {

using CommunicatorPtr = std::unique_ptr<Communicator>;

// One that takes NCCL's small protocols, one that takes several chunks.
constexpr uint64_t kCheckedSizes[] = {1 << 10, 1 << 20};
// Enough that a flood of them is not over before it is disturbed.
constexpr int kFloodTimes = 16;
// What a collective that can't end is left alone for.
constexpr int64_t kStuckNs = 500 * kMillisecond;
// DSCP 10 (AF11) and 46 (EF) as octets: two classes that a network tells apart.
constexpr int kLowClass = 10 << 2;
constexpr int kHighClass = 46 << 2;

absl::Status CheckAll(const CaseContext& context, Communicator* comm) {
  for (uint64_t bytes : kCheckedSizes) {
    for (Collective collective : kCollectives) {
      context.watchdog->Enter(absl::StrCat(ModeName(context.options.mode), ": ", CollectiveName(collective)));
      absl::Status status = context.measure->RunChecked(comm, collective, DataType::kFloat, bytes);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CommunicatorPtr> Create(const CaseContext& context, int traffic_class = -1) {
  context.watchdog->Enter(absl::StrCat(ModeName(context.options.mode), ": making a communicator"));
  return Communicator::Create(context.job, context.rendezvous, traffic_class);
}

absl::Status CheckAndClose(const CaseContext& context, absl::StatusOr<CommunicatorPtr> comm) {
  if (!comm.ok()) return comm.status();
  if (*comm == nullptr) return absl::OkStatus();
  absl::Status status = CheckAll(context, comm->get());
  context.watchdog->Enter(absl::StrCat(ModeName(context.options.mode), ": closing a communicator"));
  return status.ok() ? (*comm)->Close() : status;
}

// All in reverse order; every second rank; and all but the last.
absl::Status SplitAll(const CaseContext& context, Communicator* parent, bool share) {
  const int rank = context.job.rank;
  const int size = context.job.size;
  absl::Status status = CheckAndClose(context, parent->Split(0, size - rank, share));
  if (status.ok()) status = CheckAndClose(context, parent->Split(rank % 2, rank, share));
  if (status.ok()) status = CheckAndClose(context, parent->Split(rank == size - 1 ? -1 : 0, rank, share));
  return status.ok() ? CheckAll(context, parent) : status;
}

absl::Status RunSplit(const CaseContext& context) {
  absl::StatusOr<CommunicatorPtr> parent = Create(context);
  if (!parent.ok()) return parent.status();
  absl::Status status = SplitAll(context, parent->get(), /*share=*/false);
  if (status.ok()) status = SplitAll(context, parent->get(), /*share=*/true);
  return status.ok() ? (*parent)->Close() : status;
}

absl::Status RunClasses(const CaseContext& context) {
  absl::StatusOr<CommunicatorPtr> low = Create(context, kLowClass);
  if (!low.ok()) return low.status();
  absl::StatusOr<CommunicatorPtr> high = Create(context, kHighClass);
  if (!high.ok()) return high.status();
  absl::Status status = CheckAll(context, low->get());
  if (status.ok()) status = CheckAll(context, high->get());
  if (status.ok()) status = CheckAll(context, low->get());
  if (status.ok()) status = (*low)->Close();
  if (status.ok()) status = CheckAll(context, high->get());
  return status.ok() ? (*high)->Close() : status;
}

// Returns with the first of a flood over and the others under way.
absl::Status FloodAndWaitForFirst(const CaseContext& context, Communicator* comm) {
  context.watchdog->Enter(absl::StrCat(ModeName(context.options.mode), ": a flood of all-reduces"));
  absl::Status status = context.measure->Flood(comm, CaseBytes(context.options), 1);
  if (status.ok()) status = comm->Wait(context.measure->stream());
  return status.ok() ? context.measure->Flood(comm, CaseBytes(context.options), kFloodTimes) : status;
}

// A rank whose peer has aborted already may get an error or none: both are right.
absl::Status AbortInTheMiddle(const CaseContext& context) {
  absl::StatusOr<CommunicatorPtr> comm = Create(context);
  if (!comm.ok()) return comm.status();
  absl::Status status = CheckAll(context, comm->get());
  if (!status.ok()) return status;
  status = FloodAndWaitForFirst(context, comm->get());
  const bool in_the_middle = status.ok() && !context.measure->stream().Idle();
  context.watchdog->Enter("abort: ncclCommAbort in the middle of an all-reduce");
  (*comm)->Abort();
  printf("# abort: rank %d aborted %s\n", context.job.rank,
         in_the_middle ? "in the middle of an all-reduce" : "after a peer had aborted");
  return context.rendezvous->Barrier();
}

// The last rank stays away, so that the others' collective can't end by itself.
absl::Status AbortAlone(const CaseContext& context) {
  absl::StatusOr<CommunicatorPtr> comm = Create(context);
  if (!comm.ok()) return comm.status();
  absl::Status status = CheckAll(context, comm->get());
  const bool stays_away = context.job.rank == context.job.size - 1;
  if (status.ok() && !stays_away) status = context.measure->Flood(comm->get(), CaseBytes(context.options), 1);
  if (!status.ok()) return status;
  const timespec pause = {0, kStuckNs};
  nanosleep(&pause, nullptr);
  if (!stays_away && context.job.size > 1 && context.measure->stream().Idle()) {
    return absl::InternalError("an all-reduce ended although a rank took no part in it");
  }
  context.watchdog->Enter("abort: ncclCommAbort of an all-reduce that can't end");
  (*comm)->Abort();
  return context.rendezvous->Barrier();
}

absl::Status RunAbort(const CaseContext& context) {
  absl::Status status = AbortInTheMiddle(context);
  if (status.ok()) status = AbortAlone(context);
  return status.ok() ? CheckAndClose(context, Create(context)) : status;
}

absl::Status RunKilled(const CaseContext& context) {
  if (context.job.size < 2) return absl::InvalidArgumentError("--mode killed needs two ranks");
  absl::StatusOr<CommunicatorPtr> comm = Create(context);
  if (!comm.ok()) return comm.status();
  absl::Status status = CheckAll(context, comm->get());
  if (!status.ok()) return status;
  const int64_t start_ns = MonotonicNanos();
  // The flood may fail at any of the others, at any point: that is the point.
  status = FloodAndWaitForFirst(context, comm->get());
  if (context.job.rank == context.job.size - 1) raise(SIGKILL);
  context.watchdog->Enter("killed: waiting for the error that a dead rank must cause");
  if (status.ok()) status = (*comm)->Wait(context.measure->stream());
  while (status.ok()) {
    status = context.measure->Flood(comm->get(), CaseBytes(context.options), 1);
    if (status.ok()) status = (*comm)->Wait(context.measure->stream());
  }
  printf("# killed: rank %d has its error after %.1f s: %s\n", context.job.rank,
         static_cast<double>(MonotonicNanos() - start_ns) / kSecond, std::string(status.message()).c_str());
  context.watchdog->Enter("killed: ncclCommAbort");
  (*comm)->Abort();
  return absl::OkStatus();
}

// True exactly when a library of the plugin's name lies in this process.
bool PluginIsMapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, "libnccl-net")) return true;
  }
  return false;
}

bool MustUnload() {
  int version = 0;
  ncclGetVersion(&version);
  const std::string count = ProcessEnvironment("NCCL_NET_PLUGIN_REF_COUNT");
  return version >= NCCL_VERSION(2, 28, 3) && (count.empty() || count == "0");
}

absl::Status RunReload(const CaseContext& context) {
  const std::string net = ProcessEnvironment(kNetVariable);
  const bool external = !net.empty() && !IsInternalNet(net);
  int unloaded = 0;
  for (int round = 0; round < context.options.rounds; ++round) {
    absl::StatusOr<CommunicatorPtr> comm = Create(context);
    if (!comm.ok()) return comm.status();
    if (external && !PluginIsMapped()) {
      return absl::FailedPreconditionError(absl::StrCat("round ", round, ": no libnccl-net*.so in the process"));
    }
    context.watchdog->Enter(absl::StrCat("reload: round ", round));
    absl::Status status = context.measure->RunChecked(comm->get(), Collective::kAllReduce, DataType::kFloat, 1 << 20);
    if (status.ok()) status = (*comm)->Close();
    if (!status.ok()) return status;
    unloaded += PluginIsMapped() ? 0 : 1;
  }
  if (context.job.rank == 0) {
    printf("# reload: %d communicators, one after the other; after %d of them no plugin was left in the process\n",
           context.options.rounds, unloaded);
  }
  if (external && MustUnload() && unloaded < context.options.rounds) {
    return absl::FailedPreconditionError("NCCL should have unloaded the plugin each time, but it is still mapped");
  }
  return absl::OkStatus();
}

// Ordinary collectives come first: their channels prove the network.
absl::Status RunOneSided(const CaseContext& context) {
  absl::StatusOr<CommunicatorPtr> comm = Create(context);
  if (!comm.ok()) return comm.status();
  absl::Status status = CheckAll(context, comm->get());
  context.watchdog->Enter("one-sided: puts, signals and windows");
  if (status.ok()) status = CheckOneSided(context.job, context.rendezvous, comm->get(), context.measure->stream());
  return status.ok() ? (*comm)->Close() : status;
}

}  // namespace

uint64_t CaseBytes(const Options& options) { return std::max(options.sizes.back(), kCheckedSizes[1]); }

absl::Status RunCase(const CaseContext& context) {
  switch (context.options.mode) {
    case Mode::kBench:
      break;
    case Mode::kSplit:
      return RunSplit(context);
    case Mode::kClasses:
      return RunClasses(context);
    case Mode::kAbort:
      return RunAbort(context);
    case Mode::kKilled:
      return RunKilled(context);
    case Mode::kReload:
      return RunReload(context);
    case Mode::kOneSided:
      return RunOneSided(context);
  }
  return absl::InternalError("the bench is no case");
}

}  // namespace nccl_bench
}  // namespace tcpx
