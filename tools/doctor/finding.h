// finding.h: what the doctor found, and how it is said.
//
// Purpose: each finding is one line: a grade, the topic (check) and the text; a note or problem has a fix, mostly a
//          command or a setting.
// Threads: one. Units: none. Errors: none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tcpx {
namespace doctor {

enum class Grade {
  kOk,
  kNote,     // works, and might be better, or is worth knowing
  kProblem,  // keeps the plugin from working, or from working well
};

struct Finding {
  Grade grade = Grade::kOk;
  std::string check;  // one word, the same in every release: "buffers"
  std::string text;
  std::string fix;  // a command or a setting; empty where nothing is to be done
};

class Report {
 public:
  void Ok(absl::string_view check, std::string text) { Add(Grade::kOk, check, std::move(text), ""); }
  void Note(absl::string_view check, std::string text, std::string fix = "") {
    Add(Grade::kNote, check, std::move(text), std::move(fix));
  }
  void Problem(absl::string_view check, std::string text, std::string fix) {
    Add(Grade::kProblem, check, std::move(text), std::move(fix));
  }
  // The same finding twice is one.
  void Add(Grade grade, absl::string_view check, std::string text, std::string fix);

  const std::vector<Finding>& findings() const { return findings_; }
  int Count(Grade grade) const;
  bool HasProblem(absl::string_view check) const;
  // True exactly when some finding's text holds `text`.
  bool Says(absl::string_view text) const;
  // 1 with a problem, else 0.
  int ExitCode() const { return Count(Grade::kProblem) > 0 ? 1 : 0; }

 private:
  std::vector<Finding> findings_;
};

// "problem  buffers     ..." and, on the next line, "fix: ...". `quiet` leaves out what is ok.
std::string FindingText(const Finding& finding);
std::string ReportText(const Report& report, bool quiet);
// One object. `more` is put in front of the findings: `"host": "a"`, or empty.
std::string ReportJson(const Report& report, const std::string& more);

const char* GradeName(Grade grade);

}  // namespace doctor
}  // namespace tcpx
