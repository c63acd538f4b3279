#include "tools/doctor/finding.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/escape.h"

namespace tcpx {
namespace doctor {
void Report::Add(Grade grade, absl::string_view check, std::string text, std::string fix) {
  Finding finding = {grade, std::string(check), OneLine(text), OneLine(fix)};
  for (const Finding& each : findings_) {
    if (each.grade == grade && each.check == finding.check && each.text == finding.text) return;
  }
  findings_.push_back(std::move(finding));
}

int Report::Count(Grade grade) const {
  return static_cast<int>(std::count_if(findings_.begin(), findings_.end(),
                                        [grade](const Finding& finding) { return finding.grade == grade; }));
}

bool Report::HasProblem(absl::string_view check) const {
  return std::any_of(findings_.begin(), findings_.end(), [check](const Finding& finding) {
    return finding.grade == Grade::kProblem && finding.check == check;
  });
}

bool Report::Says(absl::string_view text) const {
  return std::any_of(findings_.begin(), findings_.end(),
                     [text](const Finding& finding) { return absl::StrContains(finding.text, text); });
}

const char* GradeName(Grade grade) {
  switch (grade) {
    case Grade::kOk:
      return "ok";
    case Grade::kNote:
      return "note";
    case Grade::kProblem:
      return "problem";
  }
  return "?";
}

std::string FindingText(const Finding& finding) {
  std::string text = absl::StrFormat("%-8s %-11s %s\n", GradeName(finding.grade), finding.check, finding.text);
  if (!finding.fix.empty()) absl::StrAppendFormat(&text, "%21s fix: %s\n", "", finding.fix);
  return text;
}

std::string ReportText(const Report& report, bool quiet) {
  std::string text;
  for (const Finding& finding : report.findings()) {
    if (!quiet || finding.grade != Grade::kOk) absl::StrAppend(&text, FindingText(finding));
  }
  absl::StrAppendFormat(&text, "%d ok, %d to note, %d %s\n", report.Count(Grade::kOk), report.Count(Grade::kNote),
                        report.Count(Grade::kProblem), report.Count(Grade::kProblem) == 1 ? "problem" : "problems");
  return text;
}

std::string ReportJson(const Report& report, const std::string& more) {
  std::vector<std::string> lines;
  for (const Finding& finding : report.findings()) {
    lines.push_back(absl::StrCat("  {\"grade\": \"", GradeName(finding.grade),
                                 "\", \"check\": ", JsonText(finding.check), ", \"text\": ", JsonText(finding.text),
                                 finding.fix.empty() ? "" : absl::StrCat(", \"fix\": ", JsonText(finding.fix)), "}"));
  }
  return absl::StrCat("{", more, more.empty() ? "" : ", ", "\"problems\": ", report.Count(Grade::kProblem),
                      ", \"notes\": ", report.Count(Grade::kNote), ", \"findings\": [\n", absl::StrJoin(lines, ",\n"),
                      "\n]}\n");
}

}  // namespace doctor
}  // namespace tcpx
