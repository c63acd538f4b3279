#include "bench/fabric/table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tcpx {
namespace fabric {
namespace {

constexpr char kHead[] =
    "| scenario | hosts | ms per collective | p99 | lanes | NCCL | kept | best: 0.95 | one: 0.97 | oracle: 0.90 | "
    "deviation: 0.03 | dials: 0.1 | trials: 0.01 |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

// Without the sign of a zero.
std::string Rounded(double value, int digits) {
  const double whole = std::pow(10, digits);
  return absl::StrFormat("%.*f", digits, std::round(value * whole) / whole + 0.0);
}

// The values of one cell, by seed.
class Cell {
 public:
  void Add(double value, bool holds = true) {
    least_ = empty_ ? value : std::min(least_, value);
    most_ = empty_ ? value : std::max(most_, value);
    empty_ = false;
    holds_ = holds_ && holds;
  }
  std::string Text(int digits) const {
    if (empty_) return "";
    const std::string least = Rounded(least_, digits), most = Rounded(most_, digits);
    const std::string text = least == most ? least : absl::StrCat(least, " to ", most);
    return holds_ ? text : absl::StrCat("**", text, "**");
  }

 private:
  double least_ = 0;
  double most_ = 0;
  bool empty_ = true;
  bool holds_ = true;
};

struct Row {
  Cell collective, p99, lanes, nccl, kept, best, one, oracle, deviation, dials, trials;
};

void AddBar(const Bar& bar, Row* row) {
  const std::pair<const char*, Cell*> cells[] = {{"best", &row->best},           {"one", &row->one},
                                                 {"oracle", &row->oracle},       {"dials", &row->dials},
                                                 {"deviation", &row->deviation}, {"trials", &row->trials}};
  for (const auto& [id, cell] : cells) {
    if (bar.id == id) cell->Add(bar.seen, bar.holds());
  }
}

// Of several jobs the first.
Figures FirstJob(const Run& run, const Outcome& outcome) {
  return FiguresOf(outcome.courses[0], run.scenario.jobs[0].start, LastStart(run.scenario));
}

void AddRun(const Run& run, Row* row) {
  const Figures piloted = FirstJob(run, run.outcomes[0]);
  row->collective.Add(1000 * piloted.collective);
  row->p99.Add(1000 * piloted.p99);
  row->lanes.Add(piloted.lanes);
  if (piloted.kept > 0) row->kept.Add(piloted.kept);
  const std::vector<Decider> deciders = Deciders();
  for (size_t i = 0; i < deciders.size(); ++i) {
    const bool nccl = deciders[i].policy.kind == Policy::Kind::kEqualParts && !run.outcomes[i].courses.empty();
    if (nccl) row->nccl.Add(1000 * FirstJob(run, run.outcomes[i]).collective);
  }
  for (const Bar& bar : BarsOf(run.scenario, run.outcomes)) AddBar(bar, row);
}

}  // namespace

std::string MarkdownTable(const std::vector<Run>& runs) {
  std::vector<std::pair<std::string, Row>> rows;
  for (const Run& run : runs) {
    const std::string name = absl::StrCat(run.scenario.name, " | ", run.scenario.hosts);
    auto at = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.first == name; });
    if (at == rows.end()) at = rows.insert(rows.end(), {name, Row()});
    AddRun(run, &at->second);
  }
  std::string text = kHead;
  for (const auto& [name, row] : rows) {
    absl::StrAppend(&text, "| ", name);
    for (const Cell* cell : {&row.collective, &row.p99}) absl::StrAppend(&text, " | ", cell->Text(0));
    absl::StrAppend(&text, " | ", row.lanes.Text(1), " | ", row.nccl.Text(0));
    for (const Cell* cell : {&row.kept, &row.best, &row.one, &row.oracle, &row.deviation, &row.dials, &row.trials}) {
      absl::StrAppend(&text, " | ", cell->Text(3));
    }
    absl::StrAppend(&text, " |\n");
  }
  return text;
}

}  // namespace fabric
}  // namespace tcpx
