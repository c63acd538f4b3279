#include "bench/net_bench/worker.h"

#include <stdio.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "bench/net_bench/configuration.h"
#include "bench/net_bench/flag_sweep.h"
#include "bench/net_bench/mixed_sweep.h"
#include "bench/net_bench/plugin_log.h"
#include "bench/net_bench/report.h"
#include "bench/net_bench/report_page.h"
#include "bench/net_bench/sampler.h"

namespace tcpx {
namespace bench {
namespace {

bool IsCostMode(Mode mode) { return mode == Mode::kIdle || mode == Mode::kSetup; }

absl::Status Greet(const Options& options, Control* control) {
  Hello ours;
  ours.command_bytes = sizeof(Command);
  ours.has_plugin = !options.plugin.empty();
  ours.has_vs = !options.vs.empty();
  if (absl::Status status = control->Send(ours); !status.ok()) return status;
  Hello theirs;
  if (absl::Status status = control->Receive(&theirs); !status.ok()) return status;
  if (theirs.magic != ours.magic || theirs.command_bytes != ours.command_bytes) {
    return absl::FailedPreconditionError("the other side is not the same build of net_bench");
  }
  if (options.role == Role::kConnect && ours.has_plugin != 0 && theirs.has_plugin == 0) {
    return absl::FailedPreconditionError("the listening side was started without --plugin");
  }
  if (options.role == Role::kConnect && ours.has_vs != 0 && theirs.has_vs == 0) {
    return absl::FailedPreconditionError("the listening side was started without --vs");
  }
  return absl::OkStatus();
}

absl::Status Start(const Options& options, Pair* pair) {
  ConfigurePluginLog(absl::StrCat("rank ", pair->place().rank), options.verbose);
  pair->position()->Enter(Stage::kPeer);
  if (absl::Status status = Greet(options, pair->control()); !status.ok()) return status;
  if (options.plugin.empty()) return absl::OkStatus();
  return options.one_sided ? pair->OpenOneSided(options) : pair->OpenPlugin(options);
}

class Planner {
 public:
  Planner(const Options& options, Pair* pair)
      : options_(options),
        pair_(pair),
        sampler_(options, pair,
                 /*yield=*/options.yield || (pair->place().same_machine && pair->place().usable_cpus < 2)) {}

  absl::Status Run();

 private:
  absl::Status RunAny(Mode mode);
  absl::Status RunMode(Mode mode);
  absl::Status RunCost(Mode mode);
  absl::Status RunFlags();
  absl::Status RunMixed();
  void PrintHeaderOnce();
  void Print(const std::string& table);

  const Options& options_;
  Pair* const pair_;
  Sampler sampler_;
  RunReport report_;
  bool header_printed_ = false;
};

absl::Status Planner::Run() {
  report_.phase = options_.phase;
  report_.samples = options_.samples;
  for (Mode mode : options_.modes) {
    if (absl::Status status = RunAny(mode); !status.ok()) return status;
  }
  Command quit;
  if (absl::Status status = pair_->control()->Send(quit); !status.ok()) return status;
  if (options_.csv) fputs(CsvReport(report_).c_str(), stdout);
  if (options_.json) fputs(JsonReport(report_).c_str(), stdout);
  if (absl::Status status = WriteReport(options_, report_); !status.ok()) return status;
  Outcome ignored;
  return pair_->Execute(quit, &ignored);
}

absl::Status Planner::RunAny(Mode mode) {
  if (mode == Mode::kOptionalRecv) return RunFlags();
  if (mode == Mode::kMixed) return RunMixed();
  return IsCostMode(mode) ? RunCost(mode) : RunMode(mode);
}

absl::Status Planner::RunMode(Mode mode) {
  absl::StatusOr<ModeReport> result = sampler_.Run(mode);
  if (!result.ok()) return result.status();
  report_.modes.push_back(std::move(*result));
  Print(ModeTable(report_, report_.modes.back()));
  return absl::OkStatus();
}

absl::Status Planner::RunFlags() {
  absl::StatusOr<std::vector<FlagRow>> rows = RunFlagSweep(options_, pair_);
  if (!rows.ok()) return rows.status();
  report_.flags = std::move(*rows);
  Print(FlagTable(report_.flags));
  return absl::OkStatus();
}

absl::Status Planner::RunMixed() {
  absl::StatusOr<std::vector<MixedRow>> rows = RunMixedSweep(options_, pair_);
  if (!rows.ok()) return rows.status();
  report_.mixed = std::move(*rows);
  Print(MixedTable(report_.mixed));
  return absl::OkStatus();
}

absl::Status Planner::RunCost(Mode mode) {
  for (int connections : ConnectionsFor(options_, mode)) {
    Command command;
    command.kind = mode == Mode::kIdle ? CommandKind::kIdle : CommandKind::kSetup;
    command.connections = connections;
    command.seconds = options_.seconds;
    command.seed = options_.seed;
    Outcome outcome;
    if (absl::Status status = pair_->Do(command, &outcome); !status.ok()) return status;
    CostReport cost;
    cost.mode = mode;
    cost.connections = connections;
    for (int rank = 0; rank < 2; ++rank) cost.ranks[rank] = outcome.cost[rank];
    report_.costs.push_back(cost);
    Print(CostTable(cost));
  }
  return absl::OkStatus();
}

void Planner::PrintHeaderOnce() {
  if (header_printed_) return;
  header_printed_ = true;
  report_.configuration =
      Configuration(options_, pair_->place(), pair_->Description(), pair_->VsDescription(), pair_->raw_congestion());
  if (!options_.csv && !options_.json) fputs(TableHeader(report_).c_str(), stdout);
}

void Planner::Print(const std::string& table) {
  PrintHeaderOnce();
  if (!options_.csv && !options_.json) fputs(table.c_str(), stdout);
  fflush(stdout);
}

absl::Status Obey(Pair* pair) {
  for (;;) {
    pair->position()->Enter(Stage::kPeer);
    Command command;
    if (absl::Status status = pair->control()->Receive(&command); !status.ok()) return status;
    Outcome ignored;
    absl::Status status = pair->Execute(command, &ignored);
    if (!status.ok() || command.kind == CommandKind::kQuit) return status;
  }
}

// Writes a failure down before the connections close: then the other side fails too, and the page shows that it did so
// later.
absl::Status Recorded(const WorkerPlace& place, const absl::Status& status) {
  if (!status.ok()) place.page->SetError(place.rank, status.message());
  return status;
}

}  // namespace

absl::Status RunPlanner(const Options& options, const WorkerPlace& place, Control* control) {
  Pair pair(place, control);
  absl::Status status = Start(options, &pair);
  if (status.ok()) status = Planner(options, &pair).Run();
  return Recorded(place, status);
}

absl::Status RunFollower(const Options& options, const WorkerPlace& place, Control* control) {
  Pair pair(place, control);
  absl::Status status = Start(options, &pair);
  if (status.ok()) status = Obey(&pair);
  return Recorded(place, status);
}

}  // namespace bench
}  // namespace tcpx
