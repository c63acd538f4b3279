#include "bench/nccl_bench/table.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace tcpx {
namespace nccl_bench {
namespace {

std::string OpText(const Row& row) { return Reduces(row.collective) ? RedOpName(row.op) : "none"; }

std::string TimingText(const Row& row, const Timing& timing) {
  if (!timing.ran) return absl::StrFormat("%9s %7s %7s %6s", "-", "-", "-", "-");
  const std::string wrong = timing.checked ? absl::StrCat(timing.wrong) : "N/A";
  return absl::StrFormat("%9.2f %7.3f %7.3f %6s", timing.time_us, AlgorithmBandwidth(row.bytes, timing),
                         BusBandwidth(row, timing), wrong);
}

bool SameCell(const Row& a, const Row& b) {
  return a.collective == b.collective && a.type == b.type && a.op == b.op && a.bytes == b.bytes && a.ranks == b.ranks;
}

const Row* Find(const NetRows& net, const Row& wanted) {
  for (const Row& row : net.rows) {
    if (SameCell(row, wanted)) return &row;
  }
  return nullptr;
}

std::string RatioText(double mine, double other) {
  return mine > 0 && other > 0 ? absl::StrFormat("%.2f", mine / other) : "-";
}

// "1.234 1.25" in the columns of one net.
std::string ComparisonCells(const Row& row, const Timing& mine, const Row* base, const Timing* other) {
  const double own = mine.ran ? BusBandwidth(row, mine) : 0;
  const double theirs = other != nullptr && other->ran ? BusBandwidth(*base, *other) : 0;
  const std::string text = mine.ran ? absl::StrFormat("%.3f", own) : "-";
  return absl::StrFormat(" %15s %6s", text, RatioText(own, theirs));
}

std::string ComparisonHeader(const std::vector<NetRows>& nets) {
  const std::string& base = nets.back().net;
  std::string text = absl::StrFormat("# side by side: busbw in GB/s, and its ratio to %s's\n#%13s %15s %9s %5s", base,
                                     "size", "collective", "type", "redop");
  for (const char* place : {"", "/in-place"}) {
    for (const NetRows& net : nets) {
      absl::StrAppendFormat(&text, " %15s %6s", absl::StrCat(net.net, place), "ratio");
    }
  }
  return text + "\n";
}

template <class T, size_t kCount>
bool ParseName(absl::string_view word, const T (&all)[kCount], const char* (*name)(T), T* value) {
  for (const T& known : all) {
    if (word != name(known)) continue;
    *value = known;
    return true;
  }
  return false;
}

std::string FormatTiming(const Timing& timing) {
  return absl::StrFormat("%d %.6f %d %d", timing.ran, timing.time_us, timing.checked, timing.wrong);
}

bool ParseTiming(const std::vector<absl::string_view>& words, size_t at, Timing* timing) {
  int ran = 0;
  int checked = 0;
  const bool parsed = absl::SimpleAtoi(words[at], &ran) && absl::SimpleAtod(words[at + 1], &timing->time_us) &&
                      absl::SimpleAtoi(words[at + 2], &checked) && absl::SimpleAtoi(words[at + 3], &timing->wrong);
  timing->ran = ran != 0;
  timing->checked = checked != 0;
  return parsed;
}

constexpr size_t kRowWords = 15;

}  // namespace

double AlgorithmBandwidth(uint64_t bytes, const Timing& timing) {
  return timing.time_us > 0 ? static_cast<double>(bytes) / timing.time_us / 1000 : 0;
}

double BusBandwidth(const Row& row, const Timing& timing) {
  return AlgorithmBandwidth(row.bytes, timing) * BusFactor(row.collective, row.ranks);
}

std::string TableHeader() {
  return absl::StrFormat(
      "#%12s %12s %9s %6s %5s %32s %33s\n#%12s %12s %9s %6s %5s %9s %7s %7s %6s %10s %7s %7s %6s\n"
      "#%12s %12s %9s %6s %5s %9s %7s %7s %6s %10s %7s %7s %6s\n",
      "", "", "", "", "", "out-of-place", "in-place", "size", "count", "type", "redop", "root", "time", "algbw",
      "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)",
      "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

std::string TableLine(const Row& row) {
  return absl::StrFormat(" %12d %12d %9s %6s %5d %s  %s\n", row.bytes, row.count, DataTypeName(row.type), OpText(row),
                         row.root, TimingText(row, row.out_of_place), TimingText(row, row.in_place));
}

std::string FormatRow(const Row& row) {
  return absl::StrFormat("%s %s %s %d %d %d %d %s %s", CollectiveName(row.collective), DataTypeName(row.type),
                         RedOpName(row.op), row.root, row.ranks, row.bytes, row.count, FormatTiming(row.out_of_place),
                         FormatTiming(row.in_place));
}

absl::StatusOr<Row> ParseRow(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  Row row;
  const bool parsed = words.size() == kRowWords && ParseName(words[0], kCollectives, CollectiveName, &row.collective) &&
                      ParseName(words[1], kDataTypes, DataTypeName, &row.type) &&
                      ParseName(words[2], kRedOps, RedOpName, &row.op) && absl::SimpleAtoi(words[3], &row.root) &&
                      absl::SimpleAtoi(words[4], &row.ranks) && absl::SimpleAtoi(words[5], &row.bytes) &&
                      absl::SimpleAtoi(words[6], &row.count) && ParseTiming(words, 7, &row.out_of_place) &&
                      ParseTiming(words, 11, &row.in_place);
  if (!parsed) return absl::InvalidArgumentError(absl::StrCat("not a row: '", line, "'"));
  return row;
}

std::string ComparisonTable(const std::vector<NetRows>& nets) {
  if (nets.size() < 2) return "";
  std::string text = ComparisonHeader(nets);
  for (const Row& row : nets.front().rows) {
    const Row* base = Find(nets.back(), row);
    absl::StrAppendFormat(&text, " %13d %15s %9s %5s", row.bytes, CollectiveName(row.collective),
                          DataTypeName(row.type), OpText(row));
    for (Timing Row::*place : {&Row::out_of_place, &Row::in_place}) {
      for (const NetRows& net : nets) {
        const Row* mine = Find(net, row);
        const Timing none;
        absl::StrAppend(&text, ComparisonCells(row, mine == nullptr ? none : mine->*place, base,
                                               base == nullptr ? nullptr : &(base->*place)));
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace nccl_bench
}  // namespace tcpx
