#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/command_line/sizes.h"
#include "bench/net_bench/report.h"

namespace tcpx {
namespace bench {
namespace {

// "    4.10 [   4.05    4.20]", or a dash in as much room.
std::string Figure(const Cell* cell, Phase phase) {
  if (cell == nullptr) return absl::StrFormat("%24s", "-");
  const Summary summary = Summarize(cell->In(phase).value);
  return absl::StrFormat("%7.2f [%6.2f %7.2f]", summary.median, summary.lower_quartile, summary.upper_quartile);
}

std::string P99(const Cell* cell, Phase phase) {
  if (cell == nullptr) return absl::StrFormat("%8s", "-");
  return absl::StrFormat("%8.2f", Quantile(cell->In(phase).p99, 0.5));
}

// A "?" marks a figure with too few samples for a verdict.
std::string Ratio(double ratio, bool enough) {
  if (ratio <= 0) return absl::StrFormat("%7s", "-");
  return absl::StrFormat("%6.2f%s", ratio, enough ? " " : "?");
}

std::string Kept(const Cell* cell, Phase phase) {
  return cell == nullptr ? "-" : absl::StrCat(cell->In(phase).value.size());
}

std::string KeptColumn(const Row& row, Phase phase) {
  return absl::StrFormat("%8s", absl::StrCat(Kept(row.plugin, phase), "/", Kept(row.floor, phase)));
}

// The median of one bare socket each way, and the plugin's ratio to it.
std::string EachWay(const Row& row, Phase phase) {
  if (row.each_way == nullptr) return absl::StrFormat("%8s %7s", "-", "-");
  const CellSamples& bare = row.each_way->In(phase);
  const double median = Quantile(bare.value, 0.5);
  double ratio = 0;
  bool enough = bare.value.size() >= kVerdictSamples;
  if (row.plugin != nullptr && median > 0) {
    const CellSamples& plugin = row.plugin->In(phase);
    ratio = Quantile(plugin.value, 0.5) / median;
    enough = enough && plugin.value.size() >= kVerdictSamples;
  }
  return absl::StrFormat("%8.2f ", median) + Ratio(ratio, enough);
}

std::string LatencyLines(const ModeReport& mode, Phase phase) {
  std::string text =
      "#        half round trip, us: median of p50 [quartiles], p99\n"
      "#        plugin                           raw: one socket, both ways               raw: one each way\n"
      "#   size     p50 [    q1      q3]     p99     p50 [    q1      q3]     p99   ratio     p50   ratio    kept\n";
  for (const Row& row : RowsFor(mode, phase)) {
    absl::StrAppend(&text, absl::StrFormat("%8s ", FormatSize(row.bytes)), Figure(row.plugin, phase),
                    P99(row.plugin, phase), " ", Figure(row.floor, phase), P99(row.floor, phase), " ",
                    Ratio(row.ratio, row.enough), EachWay(row, phase), KeptColumn(row, phase), "\n");
  }
  return text;
}

// Time per message and messages per second of the plugin if it is measured, else of bare sockets.
std::string PerMessage(const Row& row, Phase phase) {
  const Cell* cell = row.plugin != nullptr ? row.plugin : row.floor;
  const double ns = cell == nullptr ? 0 : Quantile(cell->In(phase).nanoseconds_per_message, 0.5);
  if (ns <= 0) return absl::StrFormat("%9s %8s", "-", "-");
  return absl::StrFormat("%9.3f %8.4f", ns / 1000, 1000 / ns);
}

std::string BandwidthLines(const ModeReport& mode, Phase phase) {
  std::string text = absl::StrCat(
      "#              ", UnitOf(mode.mode),
      mode.mode == Mode::kBidirectional ? " (both ways together), " : " (one way), ", mode.window,
      " in flight: median [quartiles]\n",
      "#              plugin                   raw, the best of its variants\n"
      "#   size conns  median [    q1      q3]  median [    q1      q3] variant        us/msg   Mmsg/s  ratio"
      "    kept\n");
  for (const Row& row : RowsFor(mode, phase)) {
    const char* variant = row.floor == nullptr ? "-" : ImplementationName(row.floor->implementation);
    absl::StrAppend(&text, absl::StrFormat("%8s %5d ", FormatSize(row.bytes), row.connections),
                    Figure(row.plugin, phase), " ", Figure(row.floor, phase), absl::StrFormat(" %-12s", variant),
                    PerMessage(row, phase), Ratio(row.ratio, row.enough), KeptColumn(row, phase), "\n");
  }
  return text;
}

// What a message costs with many connections against the fewest that were measured at its size.
std::string GrowthLines(const ModeReport& mode, Phase phase) {
  std::string text;
  std::vector<Row> first;
  for (const Row& row : RowsFor(mode, phase)) {
    if (row.plugin == nullptr) continue;
    auto fewest = std::find_if(first.begin(), first.end(), [&](const Row& r) { return r.bytes == row.bytes; });
    if (fewest == first.end()) {
      first.push_back(row);
      continue;
    }
    const double few = Quantile(fewest->plugin->In(phase).nanoseconds_per_message, 0.5);
    const double many = Quantile(row.plugin->In(phase).nanoseconds_per_message, 0.5);
    absl::StrAppend(&text, absl::StrFormat("# %s: time per message with %d connections is %.2f x that with %d\n",
                                           FormatSize(row.bytes), row.connections, many / few, fewest->connections));
  }
  return text;
}

// The second plugin's figures, and the ratio to it.
std::string VsLines(const ModeReport& mode, Phase phase) {
  std::string text;
  for (const Row& row : RowsFor(mode, phase)) {
    if (row.vs == nullptr) continue;
    absl::StrAppend(&text, absl::StrFormat("%8s %5d ", FormatSize(row.bytes), row.connections), Figure(row.vs, phase),
                    P99(mode.mode == Mode::kLatency ? row.vs : nullptr, phase), " ", Ratio(row.vs_ratio, row.vs_enough),
                    Kept(row.vs, phase), "\n");
  }
  if (text.empty()) return text;
  return absl::StrCat("# ", ModeName(mode.mode), ", vs: the second plugin, ", UnitOf(mode.mode),
                      "; ratio: the first one's median over it\n",
                      "#   size conns  median [    q1      q3]     p99   ratio kept\n", text);
}

std::string Dropped(const ModeReport& mode) {
  return absl::StrCat(
      mode.phase_changed, " samples dropped because the phase changed, ", mode.disturbed,
      " because other processes had a CPU",
      mode.kept_disturbed > 0 ? absl::StrCat(" (", mode.kept_disturbed, " more kept: never quiet)") : "");
}

std::string PhaseTable(const ModeReport& mode, Phase phase) {
  return absl::StrCat(mode.mode == Mode::kLatency ? LatencyLines(mode, phase) : BandwidthLines(mode, phase),
                      VsLines(mode, phase));
}

std::string PhaseSentence(Phase phase, PhaseChoice choice) {
  switch (phase) {
    case Phase::kNear:
      return "CPUs near each other";
    case Phase::kFar:
      return choice == PhaseChoice::kFar ? "CPUs far from each other"
                                         : "CPUs far from each other: the near phase did not show itself";
    case Phase::kBetween:
      return "one phase only on this machine: all bounces between near and far, all samples used";
    default:
      return "phase not checked";
  }
}

}  // namespace

std::string TableHeader(const RunReport& report) {
  std::string text;
  for (const auto& line : report.configuration) {
    absl::StrAppend(&text, absl::StrFormat("# %-12s %s\n", line.first, line.second));
  }
  return text;
}

std::string ModeTable(const RunReport& report, const ModeReport& mode) {
  const Phase main = MainPhase(mode.cells, report.phase);
  std::string text =
      absl::StrCat("#\n# ", ModeName(mode.mode), ": ", PhaseSentence(main, report.phase), "; ",
                   absl::StrFormat("%.1f", mode.seconds), " s, ", Dropped(mode), "\n", PhaseTable(mode, main));
  if (mode.mode == Mode::kMany) absl::StrAppend(&text, GrowthLines(mode, main));
  for (Phase other : {Phase::kNear, Phase::kBetween, Phase::kFar}) {
    if (other == main || RowsFor(mode, other).empty()) continue;
    absl::StrAppend(&text, "# ", ModeName(mode.mode), ", apart: samples with the CPUs ", PhaseName(other), "\n",
                    PhaseTable(mode, other));
  }
  return text;
}

std::string CostTable(const CostReport& cost) {
  std::string text = absl::StrCat(
      "#\n# ", ModeName(cost.mode), ": ", cost.connections, " connections, rank 0 sends, rank 1 receives\n",
      "#  rank    setup s    close s  threads  listening  descriptors  KiB/conn   idle s  CPU %\n");
  for (int rank = 0; rank < 2; ++rank) {
    const CostResult& r = cost.ranks[rank];
    const double growth = static_cast<double>(r.after.resident_bytes - r.before.resident_bytes);
    const std::string idle =
        r.idle_seconds > 0 ? absl::StrFormat("%8.1f %6.2f", r.idle_seconds, 100 * r.idle_cpu_seconds / r.idle_seconds)
                           : absl::StrFormat("%8s %6s", "-", "-");
    absl::StrAppend(&text,
                    absl::StrFormat("%7d %10.3f %10.3f %8d %10d %12d %9.1f ", rank, r.setup_seconds, r.close_seconds,
                                    r.after.threads, r.after.listening_sockets,
                                    r.after.descriptors - r.before.descriptors, growth / 1024 / cost.connections),
                    idle, "\n");
  }
  return text;
}

std::string AllreduceTable(const std::vector<AllreduceRow>& rows) {
  std::string text =
      "#\n# allreduce: ring, float sum, in place\n"
      "#   size ranks   count   time us [quartiles]            algbw GB/s  busbw GB/s   wrong  repeats\n";
  for (const AllreduceRow& row : rows) {
    absl::StrAppend(&text,
                    absl::StrFormat("%8s %5d %8d %9.1f [%9.1f %9.1f] %11.3f %11.3f %7d %8d\n", FormatSize(row.bytes),
                                    row.ranks, row.bytes / sizeof(float), row.microseconds, row.lower_us, row.upper_us,
                                    row.algorithm_gbps, row.bus_gbps, row.wrong, row.repeats));
  }
  return text;
}

std::string FlagTable(const std::vector<FlagRow>& rows) {
  std::string text =
      "#\n# optional-recv: flags in the data, polled by a second thread; receives without NCCL's hint and with it\n"
      "#                half round trip, us: median of p50, p99                  one way, Mmsg/s           calls to "
      "test per "
      "receive\n"
      "#   size lines  without      p99     with      p99   ratio  without     with   ratio  answered: without   with  "
      "one way: without   with  samples\n";
  for (const FlagRow& row : rows) {
    const FlagSamples& without = row.samples[0];
    const FlagSamples& with = row.samples[1];
    const auto median = [](const std::vector<double>& values) { return Quantile(values, 0.5); };
    absl::StrAppend(
        &text,
        absl::StrFormat("%8s %-5s %8.2f %8.2f %8.2f %8.2f %7.2f %8.4f %8.4f %7.2f %18.2f %6.2f %17.2f %6.2f %8d\n",
                        FormatSize(row.bytes), LineKindName(row.kind), median(without.p50_us), median(without.p99_us),
                        median(with.p50_us), median(with.p99_us), median(with.p50_us) / median(without.p50_us),
                        median(without.messages_per_second) / 1e6, median(with.messages_per_second) / 1e6,
                        median(with.messages_per_second) / median(without.messages_per_second),
                        median(without.tests_per_answered), median(with.tests_per_answered),
                        median(without.tests_per_message), median(with.tests_per_message), with.p50_us.size()));
  }
  return text;
}

std::string MixedTable(const std::vector<MixedRow>& rows) {
  std::string text = absl::StrCat(
      "#\n# mixed: a ping-pong next to a stream of ", FormatSize(kMixedStreamBytes), " messages\n",
      "#        half round trip, us: median of p50, p99             stream, GB/s      round trips\n"
      "#   size   plugin      p99      raw      p99 p99 ratio   plugin      raw   plugin      raw  samples\n");
  const auto median = [](const std::vector<double>& values) { return Quantile(values, 0.5); };
  for (const MixedRow& row : rows) {
    const MixedSamples& plugin = row.samples[0];
    const MixedSamples& raw = row.samples[1];
    const double floor = median(raw.p99_us);
    const double ratio = floor > 0 ? median(plugin.p99_us) / floor : 0;
    absl::StrAppend(&text,
                    absl::StrFormat("%8s %8.2f %8.2f %8.2f %8.2f %s   %8.3f %8.3f %8d %8d %8d\n", FormatSize(row.bytes),
                                    median(plugin.p50_us), median(plugin.p99_us), median(raw.p50_us), floor,
                                    Ratio(ratio, raw.p99_us.size() >= kVerdictSamples), median(plugin.stream_gbps),
                                    median(raw.stream_gbps), plugin.pings, raw.pings,
                                    std::max(plugin.p50_us.size(), raw.p50_us.size())));
  }
  return text;
}

}  // namespace bench
}  // namespace tcpx
