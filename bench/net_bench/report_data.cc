#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "bench/net_bench/report.h"
#include "common/escape.h"

namespace tcpx {
namespace bench {
namespace {

constexpr Phase kKeptPhases[] = {Phase::kNear, Phase::kBetween, Phase::kFar, Phase::kUnchecked};

// Calls `line` for each (mode, cell, phase) with samples.
template <class F>
void ForEachResult(const RunReport& report, F line) {
  for (const ModeReport& mode : report.modes) {
    for (const Cell& cell : mode.cells) {
      for (Phase phase : kKeptPhases) {
        if (!cell.In(phase).value.empty()) line(mode, cell, phase);
      }
    }
  }
}

std::string CsvComment(const RunReport& report) {
  std::string text;
  for (const auto& line : report.configuration) {
    absl::StrAppend(&text, "# ", line.first, ": ", absl::StrReplaceAll(line.second, {{"\n", " "}}), "\n");
  }
  return text;
}

std::string CsvCell(const ModeReport& mode, const Cell& cell, Phase phase) {
  const CellSamples& samples = cell.In(phase);
  const Summary summary = Summarize(samples.value);
  const std::string p99 =
      mode.mode == Mode::kLatency ? absl::StrFormat("%.6g", Quantile(samples.p99, 0.5)) : std::string();
  return absl::StrFormat("%s,%d,%d,%d,%s,%s,%d,%s,%.6g,%.6g,%.6g,%s,%.6g\n", ModeName(mode.mode), cell.bytes,
                         cell.connections, mode.window, ImplementationName(cell.implementation), PhaseName(phase),
                         summary.count, UnitOf(mode.mode), summary.median, summary.lower_quartile,
                         summary.upper_quartile, p99, Quantile(samples.nanoseconds_per_message, 0.5));
}

std::string CsvModes(const RunReport& report) {
  if (report.modes.empty()) return "";
  std::string text =
      "mode,bytes,connections,window,implementation,phase,kept,unit,median,lower_quartile,upper_quartile,p99,"
      "ns_per_message\n";
  ForEachResult(report, [&](const ModeReport& mode, const Cell& cell, Phase phase) {
    absl::StrAppend(&text, CsvCell(mode, cell, phase));
  });
  return text;
}

std::string CsvCosts(const RunReport& report) {
  if (report.costs.empty()) return "";
  std::string text =
      "mode,connections,rank,setup_s,close_s,threads,listening,descriptors,resident_bytes_before,resident_bytes,"
      "idle_s,idle_cpu_s\n";
  for (const CostReport& cost : report.costs) {
    for (int rank = 0; rank < 2; ++rank) {
      const CostResult& r = cost.ranks[rank];
      absl::StrAppend(
          &text, absl::StrFormat("%s,%d,%d,%.6g,%.6g,%d,%d,%d,%d,%d,%.6g,%.6g\n", ModeName(cost.mode), cost.connections,
                                 rank, r.setup_seconds, r.close_seconds, r.after.threads, r.after.listening_sockets,
                                 r.after.descriptors - r.before.descriptors, r.before.resident_bytes,
                                 r.after.resident_bytes, r.idle_seconds, r.idle_cpu_seconds));
    }
  }
  return text;
}

std::string CsvAllreduce(const RunReport& report) {
  if (report.allreduce.empty()) return "";
  std::string text = "mode,bytes,ranks,repeats,median_us,lower_us,upper_us,algbw_gbps,busbw_gbps,wrong\n";
  for (const AllreduceRow& row : report.allreduce) {
    absl::StrAppend(&text, absl::StrFormat("allreduce,%d,%d,%d,%.6g,%.6g,%.6g,%.6g,%.6g,%d\n", row.bytes, row.ranks,
                                           row.repeats, row.microseconds, row.lower_us, row.upper_us,
                                           row.algorithm_gbps, row.bus_gbps, row.wrong));
  }
  return text;
}

std::string CsvFlags(const RunReport& report) {
  if (report.flags.empty()) return "";
  std::string text =
      "mode,lines,bytes,hint,samples,p50_us,p99_us,tests_per_answered,messages_per_second,tests_per_message\n";
  for (const FlagRow& row : report.flags) {
    for (int hint = 0; hint < 2; ++hint) {
      const FlagSamples& s = row.samples[hint];
      absl::StrAppend(
          &text, absl::StrFormat("optional-recv,%s,%d,%d,%d,%.6g,%.6g,%.6g,%.6g,%.6g\n", LineKindName(row.kind),
                                 row.bytes, hint, s.p50_us.size(), Quantile(s.p50_us, 0.5), Quantile(s.p99_us, 0.5),
                                 Quantile(s.tests_per_answered, 0.5), Quantile(s.messages_per_second, 0.5),
                                 Quantile(s.tests_per_message, 0.5)));
    }
  }
  return text;
}

// A side that was not measured has no line.
constexpr const char* kMixedSideNames[kMixedSides] = {"plugin", "raw"};

std::string CsvMixed(const RunReport& report) {
  if (report.mixed.empty()) return "";
  std::string text = "mode,bytes,implementation,samples,round_trips,p50_us,p99_us,stream_gbps\n";
  for (const MixedRow& row : report.mixed) {
    for (int side = 0; side < kMixedSides; ++side) {
      const MixedSamples& s = row.samples[side];
      if (s.p50_us.empty()) continue;
      absl::StrAppend(&text, absl::StrFormat("mixed,%d,%s,%d,%d,%.6g,%.6g,%.6g\n", row.bytes, kMixedSideNames[side],
                                             s.p50_us.size(), s.pings, Quantile(s.p50_us, 0.5), Quantile(s.p99_us, 0.5),
                                             Quantile(s.stream_gbps, 0.5)));
    }
  }
  return text;
}

std::vector<std::string> JsonMixed(const RunReport& report) {
  std::vector<std::string> items;
  for (const MixedRow& row : report.mixed) {
    for (int side = 0; side < kMixedSides; ++side) {
      const MixedSamples& s = row.samples[side];
      if (s.p50_us.empty()) continue;
      items.push_back(absl::StrFormat(
          "{\"bytes\": %d, \"implementation\": %s, \"samples\": %d, \"round_trips\": %d, \"p50_us\": %.6g, "
          "\"p99_us\": %.6g, \"stream_gbps\": %.6g}",
          row.bytes, JsonText(kMixedSideNames[side]), s.p50_us.size(), s.pings, Quantile(s.p50_us, 0.5),
          Quantile(s.p99_us, 0.5), Quantile(s.stream_gbps, 0.5)));
    }
  }
  return items;
}

std::string JsonResult(const ModeReport& mode, const Cell& cell, Phase phase) {
  const CellSamples& samples = cell.In(phase);
  const Summary summary = Summarize(samples.value);
  std::string text = absl::StrFormat(
      "{\"mode\": %s, \"bytes\": %d, \"connections\": %d, \"window\": %d, \"implementation\": %s, \"phase\": %s, "
      "\"kept\": %d, \"unit\": %s, \"median\": %.6g, \"lower_quartile\": %.6g, \"upper_quartile\": %.6g, "
      "\"ns_per_message\": %.6g",
      JsonText(ModeName(mode.mode)), cell.bytes, cell.connections, mode.window,
      JsonText(ImplementationName(cell.implementation)), JsonText(PhaseName(phase)), summary.count,
      JsonText(UnitOf(mode.mode)), summary.median, summary.lower_quartile, summary.upper_quartile,
      Quantile(samples.nanoseconds_per_message, 0.5));
  if (mode.mode == Mode::kLatency)
    absl::StrAppend(&text, absl::StrFormat(", \"p99\": %.6g", Quantile(samples.p99, 0.5)));
  return text + "}";
}

std::string JsonRatio(const ModeReport& mode, Phase phase, const Row& row, const Cell& floor, double ratio,
                      bool enough) {
  return absl::StrFormat(
      "{\"mode\": %s, \"bytes\": %d, \"connections\": %d, \"phase\": %s, \"floor\": %s, \"ratio\": %.6g, "
      "\"enough_samples\": %s}",
      JsonText(ModeName(mode.mode)), row.bytes, row.connections, JsonText(PhaseName(phase)),
      JsonText(ImplementationName(floor.implementation)), ratio, enough ? "true" : "false");
}

std::string JsonCost(const CostReport& cost, int rank) {
  const CostResult& r = cost.ranks[rank];
  return absl::StrFormat(
      "{\"mode\": %s, \"connections\": %d, \"rank\": %d, \"setup_seconds\": %.6g, \"close_seconds\": %.6g, "
      "\"threads_before\": %d, \"threads\": %d, \"listening_sockets\": %d, \"descriptors_before\": %d, "
      "\"descriptors\": %d, \"resident_bytes_before\": %d, \"resident_bytes\": %d, \"idle_seconds\": %.6g, "
      "\"idle_cpu_seconds\": %.6g}",
      JsonText(ModeName(cost.mode)), cost.connections, rank, r.setup_seconds, r.close_seconds, r.before.threads,
      r.after.threads, r.after.listening_sockets, r.before.descriptors, r.after.descriptors, r.before.resident_bytes,
      r.after.resident_bytes, r.idle_seconds, r.idle_cpu_seconds);
}

std::string JsonAllreduce(const AllreduceRow& row) {
  return absl::StrFormat(
      "{\"bytes\": %d, \"ranks\": %d, \"repeats\": %d, \"median_us\": %.6g, \"lower_quartile_us\": %.6g, "
      "\"upper_quartile_us\": %.6g, \"algbw_gbps\": %.6g, \"busbw_gbps\": %.6g, \"wrong\": %d}",
      row.bytes, row.ranks, row.repeats, row.microseconds, row.lower_us, row.upper_us, row.algorithm_gbps, row.bus_gbps,
      row.wrong);
}

std::string JsonFlags(const FlagRow& row, int hint) {
  const FlagSamples& s = row.samples[hint];
  return absl::StrFormat(
      "{\"lines\": %s, \"bytes\": %d, \"hint\": %s, \"samples\": %d, \"p50_us\": %.6g, \"p99_us\": %.6g, "
      "\"tests_per_answered\": %.6g, \"messages_per_second\": %.6g, \"tests_per_message\": %.6g}",
      JsonText(LineKindName(row.kind)), row.bytes, hint != 0 ? "true" : "false", s.p50_us.size(),
      Quantile(s.p50_us, 0.5), Quantile(s.p99_us, 0.5), Quantile(s.tests_per_answered, 0.5),
      Quantile(s.messages_per_second, 0.5), Quantile(s.tests_per_message, 0.5));
}

std::string JsonList(absl::string_view name, const std::vector<std::string>& items) {
  if (items.empty()) return absl::StrCat(JsonText(name), ": []");
  return absl::StrCat(JsonText(name), ": [\n    ", absl::StrJoin(items, ",\n    "), "\n  ]");
}

std::vector<std::string> JsonRatios(const RunReport& report) {
  std::vector<std::string> ratios;
  for (const ModeReport& mode : report.modes) {
    for (Phase phase : kKeptPhases) {
      for (const Row& row : RowsFor(mode, phase)) {
        if (row.ratio > 0) ratios.push_back(JsonRatio(mode, phase, row, *row.floor, row.ratio, row.enough));
        if (row.vs_ratio > 0) ratios.push_back(JsonRatio(mode, phase, row, *row.vs, row.vs_ratio, row.vs_enough));
      }
    }
  }
  return ratios;
}

// The phase that the main table shows.
std::vector<std::string> JsonModes(const RunReport& report) {
  std::vector<std::string> modes;
  for (const ModeReport& mode : report.modes) {
    modes.push_back(absl::StrFormat("{\"mode\": %s, \"phase\": %s, \"seconds\": %.6g}", JsonText(ModeName(mode.mode)),
                                    JsonText(PhaseName(MainPhase(mode.cells, report.phase))), mode.seconds));
  }
  return modes;
}

}  // namespace

std::string CsvReport(const RunReport& report) {
  return absl::StrCat(CsvComment(report), CsvModes(report), CsvCosts(report), CsvAllreduce(report), CsvFlags(report),
                      CsvMixed(report));
}

std::string JsonReport(const RunReport& report) {
  std::vector<std::string> results;
  ForEachResult(report, [&](const ModeReport& mode, const Cell& cell, Phase phase) {
    results.push_back(JsonResult(mode, cell, phase));
  });
  std::vector<std::string> costs;
  for (const CostReport& cost : report.costs) {
    for (int rank = 0; rank < 2; ++rank) costs.push_back(JsonCost(cost, rank));
  }
  std::vector<std::string> allreduce;
  for (const AllreduceRow& row : report.allreduce) allreduce.push_back(JsonAllreduce(row));
  std::vector<std::string> flags;
  for (const FlagRow& row : report.flags) {
    for (int hint = 0; hint < 2; ++hint) flags.push_back(JsonFlags(row, hint));
  }
  std::vector<std::string> configuration;
  for (const auto& line : report.configuration) {
    configuration.push_back(absl::StrCat("[", JsonText(line.first), ", ", JsonText(line.second), "]"));
  }
  return absl::StrCat("{\n  ", JsonList("configuration", configuration), ",\n  ", JsonList("modes", JsonModes(report)),
                      ",\n  ", JsonList("results", results), ",\n  ", JsonList("ratios", JsonRatios(report)), ",\n  ",
                      JsonList("costs", costs), ",\n  ", JsonList("allreduce", allreduce), ",\n  ",
                      JsonList("optional_recv", flags), ",\n  ", JsonList("mixed", JsonMixed(report)), "\n}\n");
}

}  // namespace bench
}  // namespace tcpx
