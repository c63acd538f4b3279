// Two ranks whose clocks are far apart play ping-pong, each with its timeline. Merged, every ball is struck and
// returned in order: the network plugin has measured the clocks over the health socket, and the profiler has written
// that down.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/clock_notes.h"
#include "common/this_host.h"
#include "nccl/profiler_tables.h"
#include "tests/support/json.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {

// How this process's clock is shifted; the libraries that it loads read the clock through us.
struct ClockShift {
  int64_t monotonic_seconds = 0;
  int64_t day_seconds = 0;
};
ClockShift g_shift;

namespace {

constexpr char kProfiler[] = "profiler/libnccl-profiler-tcpx.so";
constexpr char kMerge[] = "tools/trace_merge";
constexpr char kFormat[] = "tests/plugin/profiler/trace_format.py";
constexpr int kRounds = 50;
constexpr size_t kBytes = 1000;

std::string FileText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// One rank's profiler, as NCCL uses it.
class Timeline {
 public:
  explicit Timeline(int rank) : library_(dlopen(kProfiler, RTLD_NOW | RTLD_LOCAL)) {
    TCPX_REQUIRE(library_ != nullptr, dlerror());
    table_ = static_cast<ncclProfiler_v5_t*>(dlsym(library_, "ncclProfiler_v5"));
    TCPX_REQUIRE(table_->init(&context_, 1, &mask_, "ring", 2, 2, rank, &RecordLog) == ncclSuccess);
  }
  void* Begin(const std::string& name) {
    ncclProfilerEventDescr_v5_t event = {};
    void* handle = nullptr;
    event.type = ncclProfileColl;
    event.coll.func = name.c_str();
    TCPX_REQUIRE(table_->startEvent(context_, &handle, &event) == ncclSuccess && handle != nullptr);
    return handle;
  }
  void End(void* event) { TCPX_REQUIRE(table_->stopEvent(event) == ncclSuccess); }
  void Finish() {
    TCPX_REQUIRE(table_->finalize(context_) == ncclSuccess);
    dlclose(library_);
  }

 private:
  void* const library_;
  ncclProfiler_v5_t* table_ = nullptr;
  void* context_ = nullptr;
  int mask_ = 0;
};

void Send(NetClient* net, void* comm) {
  const char data[kBytes] = {};
  Must(WaitFor(net, Must(PostSend(net, comm, data, kBytes))));
}

void Receive(NetClient* net, void* comm) {
  char memory[kBytes];
  Must(WaitFor(net, Must(PostReceive(net, comm, memory, kBytes))));
}

// RunTogether bounds it.
void AwaitMeasure() {
  ClockNotesReader reader;
  for (bool measured = false; !measured; usleep(1000)) {
    for (const ClockNote& note : reader.Read()) measured |= !note.peer.empty();
  }
}

// A rally's one side. `serves`: its strokes last until the ball is back, else they lie within the other's.
void Play(Control& peer, bool serves, const std::string& folder) {
  setenv("TCPX_TRACE_DIR", folder.c_str(), 1);
  setenv("TCPX_TRACE_EVENTS", "all", 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  if (!serves) g_shift = {1000, 3};
  Rank rank;
  Timeline timeline(serves ? 0 : 1);
  const Ends ends = rank.Connect(peer);
  for (int round = 0; round < kRounds; ++round) {
    if (!serves) Receive(&rank.net(), ends.receive);
    void* const event = timeline.Begin(absl::StrCat(serves ? "serve" : "return", round));
    if (serves) {
      Send(&rank.net(), ends.send);
      Receive(&rank.net(), ends.receive);
    }
    timeline.End(event);
    if (!serves) Send(&rank.net(), ends.send);
  }
  AwaitMeasure();
  const std::string path = absl::StrCat(folder, "/", serves ? "serves" : "returns");
  std::ofstream(path) << ProcessMark();
  peer.Tell('p');
  peer.Await('p');
  rank.Close(ends);
  timeline.Finish();
  rank.Finalize();
}

struct Stroke {
  double begin_us = 0;
  double end_us = 0;
};

class ClockOffsetTest : public testing::Test {
 protected:
  ClockOffsetTest() {
    std::string name = testing::TempDir() + "/clocks.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  std::string Trace(const std::string& side) const {
    char host[256] = {};
    gethostname(host, sizeof(host) - 1);
    return absl::StrCat(folder_, "/tcpx-trace.", host, ".", FileText(folder_ + "/" + side), ".json");
  }
  // Merges both; by name, and what the tool said.
  std::map<std::string, Stroke> Merge(std::string* said) {
    const std::string out = folder_ + "/merged.json";
    const std::string command =
        absl::StrCat("python3 ", kMerge, " -o ", out, " ", Trace("serves"), " ", Trace("returns"), " > ", out, ".said");
    EXPECT_EQ(0, system(command.c_str()));
    *said = FileText(out + ".said");
    const std::string check = absl::StrCat("python3 ", kFormat, " ", Trace("serves"), " ", Trace("returns"));
    // What this build wrote has no end of its array where its lines were taken out.
    if (!forgot_) {
      EXPECT_EQ(0, system(absl::StrCat(check, " ", out).c_str())) << "is no trace";
    }
    Json all;
    std::string error;
    EXPECT_TRUE(ParseJson(FileText(out), &all, &error)) << error;
    std::map<std::string, Stroke> strokes;
    for (const Json& event : all.list) {
      if (event["ph"].text != "X") continue;
      strokes[event["name"].text] = {event["ts"].number, event["ts"].number + event["dur"].number};
    }
    return strokes;
  }
  // What a build without measures would have written.
  void ForgetMeasures(const std::string& path) {
    std::string kept;
    for (const absl::string_view line : absl::StrSplit(FileText(path), '\n')) {
      if (!absl::StrContains(line, "tcpx_clock_offset")) absl::StrAppend(&kept, line, "\n");
    }
    std::ofstream(path) << kept;
    forgot_ = true;
  }

  std::string folder_;
  bool forgot_ = false;
};

TEST_F(ClockOffsetTest, RanksAreMergedOntoOneClock) {
  ASSERT_EQ("", RunTogether([this](Control& peer) { Play(peer, true, folder_); },
                            [this](Control& peer) { Play(peer, false, folder_); }));
  std::string said;
  std::map<std::string, Stroke> strokes = Merge(&said);
  ASSERT_TRUE(absl::StrContains(said, "2 ranks are joined by measured clocks")) << said;
  double error_us = 0;
  ASSERT_EQ(1, sscanf(said.substr(said.find("within")).c_str(), "within %lf us", &error_us)) << said;
  error_us += 1;  // It is rounded.
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round, ", known within ", error_us, " us"));
    const std::string served = absl::StrCat("serve", round);
    const std::string returned = absl::StrCat("return", round);
    ASSERT_TRUE(strokes.count(served) == 1 && strokes.count(returned) == 1);
    const Stroke& serve = strokes[served];
    const Stroke& back = strokes[returned];
    EXPECT_LE(serve.begin_us - error_us, back.begin_us);
    EXPECT_LE(back.end_us, serve.end_us + error_us);
  }
  // By the clocks of the day alone it is three seconds wrong, and on a busy machine the ball takes its time, too.
  ForgetMeasures(Trace("serves"));
  ForgetMeasures(Trace("returns"));
  strokes = Merge(&said);
  EXPECT_TRUE(absl::StrContains(said, "laid by the clock of the day")) << said;
  EXPECT_GE(strokes["return0"].begin_us - strokes["serve0"].begin_us, 2.9e6);
}

}  // namespace
}  // namespace tcpx

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t id, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, id, time));
  if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE) time->tv_sec += tcpx::g_shift.monotonic_seconds;
  if (id == CLOCK_REALTIME) time->tv_sec += tcpx::g_shift.day_seconds;
  return result;
}
