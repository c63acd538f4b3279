// recorder_fixture.h: a folder for a recorder's trace, and what is in it.
#pragma once

#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/clock.h"
#include "gtest/gtest.h"
#include "profiler/recorder.h"

namespace tcpx {

inline std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The lines that are events, without commas.
inline std::vector<std::string> LinesWith(const std::string& text, const std::string& part) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, part)) lines.emplace_back(absl::StripSuffix(line, ","));
  }
  return lines;
}

inline double NumberOf(const std::string& line, const std::string& key) {
  const size_t at = line.find(absl::StrCat("\"", key, "\":"));
  return at == std::string::npos ? -1 : strtod(line.c_str() + at + key.size() + 3, nullptr);
}

inline EventFacts Facts(uint32_t type, void* parent = nullptr) {
  EventFacts facts;
  facts.type = type;
  facts.parent = parent;
  return facts;
}

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    std::string name = testing::TempDir() + "/recorder.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  Recorder::Settings Settings() const {
    Recorder::Settings settings;
    settings.path = folder_ + "/trace.json";
    settings.bytes_max = 1 << 30;
    settings.process = "rank 3, \"host\"";
    return settings;
  }
  std::string Trace() const { return Read(folder_ + "/trace.json"); }

  std::string folder_;
  const int64_t now_ = MonotonicNanos();
};

}  // namespace tcpx
