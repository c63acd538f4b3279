// ring_rank: one rank of a ring that runs until something happens to it.
//
// usage: ring_rank FOLDER RANK SIZE [DEVICE]
//
// The ranks share FOLDER and nothing else. Each sends to the next and receives from the one before, as fast as it goes.
// Into FOLDER a rank writes handle.RANK.ROUND, running.RANK.ROUND once traffic flows, from then on log.RANK.ROUND, what
// the plugin has said so far, times.RANK.ROUND, when each of these lines was there, within 20 ms, and count.RANK.ROUND,
// how many messages have come, and at the end of a round result.RANK.ROUND: "error SECONDS MESSAGES" or "stopped
// SECONDS MESSAGES". Times are those of CLOCK_MONOTONIC. It stops when FOLDER/stop is there, with every message
// through, and after an error it goes on calling until then with its comms open, as NCCL may do, so that only the
// plugin can tell the others; late.RANK.ROUND has what it says until then, and log.RANK.end is the whole log. Exit code
// 0: every request ended once, all bytes were right, and all descriptors are back.
//
// environment: RING_ROUNDS (1)   connections, one after the other, each in a context of its own; with more than 1 an
//                                error does not wait for FOLDER/stop
//              RING_VERSION      of the interface; unset: the newest
//              RING_VARY=1       messages of all sizes, some empty; with RING_SMALL=1 none above 25000 bytes
//              RING_TOGETHER=1   stops when all ranks have all messages, not only the next one
//              RING_QUIET=1      posts receives, and sends nothing until FOLDER/speak is there
//              RING_MUTE=1       sends, and posts no receive until FOLDER/speak is there
//              RING_CHAIN=1      sends a message only once the one 4 before it has come, as a collective does
//              RING_HUSH=send, or receive: once FOLDER/hush is there it posts no more of these until FOLDER/speak is
//              RING_SHIFT=N      once FOLDER/shift is there its clock has gone N seconds on
//              RING_SHUT=N       ends the sending side of its N-th lane, from 0, once traffic flows
//              RING_FORK=1       forks a child once traffic flows, as a data loader does, which lives until FOLDER/stop
//              RING_ANNOUNCE=N   says of each context, as NCCL does, that it will have N peers at once and 8 flows to
//              each RING_DENY=ERRNO   io_uring's system calls end with that number
//              RING_UNTOLD=1     the kernel does not tell of interfaces
//
// Threads: one, and the plugin's.
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "nccl/net_tables.h"
#include "tests/netns/ring_flow.h"
#include "tests/netns/shifted_clock.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/plugin/lifetime/sandbox.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

struct Ring {
  std::string folder;
  int rank = 0;
  int size = 1;
  int device = 0;

  std::string Path(const std::string& what, int of_rank, int round) const {
    return absl::StrCat(folder, "/", what, ".", of_rank, ".", round);
  }
  bool Has(const std::string& name) const { return access(absl::StrCat(folder, "/", name).c_str(), F_OK) == 0; }
};

// Whole or not at all.
// Nothing where no descriptor is free, as some tests want it.
void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path + ".part", std::ios::binary);
  if (!file.is_open() && errno == EMFILE) return;
  file << text << std::flush;
  TCPX_REQUIRE(rename((path + ".part").c_str(), path.c_str()) == 0);
}

void Announce(void* context) {
  const char* const ranks = getenv("RING_ANNOUNCE");
  if (ranks == nullptr) return;
  void* const library = dlopen(kPluginPath, RTLD_NOW);
  TCPX_REQUIRE(library != nullptr, dlerror());
  const auto* table = static_cast<const ncclNet_v12_t*>(dlsym(library, "ncclNetPlugin_v12"));
  ncclNetAttr_v12_t attributes = {{atoi(ranks), 1, 8, 1}, {atoi(ranks), 1, 8, 1}, ~0u, ~0u, ~0u};
  TCPX_REQUIRE(table->setNetAttr(context, &attributes) == ncclSuccess);
  dlclose(library);
}

Ends Connect(NetClient* net, void* context, const Ring& ring, int round) {
  char handle[kHandleBytesMax] = {};
  void* listen = nullptr;
  TCPX_REQUIRE(net->Listen(context, ring.device, handle, &listen) == ncclSuccess, LogText());
  WriteFile(ring.Path("handle", ring.rank, round), std::string(handle, sizeof(handle)));
  const absl::Time deadline = absl::Now() + kHungAfter;
  const std::string next = ring.Path("handle", (ring.rank + 1) % ring.size, round);
  while (!std::ifstream(next, std::ios::binary).read(handle, kHandleBytesMax)) {
    TCPX_REQUIRE(absl::Now() < deadline, "no ", next);
    absl::SleepFor(absl::Milliseconds(2));
  }
  Ends ends;
  TCPX_REQUIRE(PollEnds(net, {context, ring.device, handle, listen}, &ends) == ncclSuccess, LogText());
  TCPX_REQUIRE(net->CloseListen(listen) == ncclSuccess);
  return ends;
}

bool IsLane(int fd) {
  int timeout_ms = 1;  // a health socket's is not 0
  socklen_t length = sizeof(timeout_ms);
  sockaddr_storage peer;
  socklen_t peer_length = sizeof(peer);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) != 0 || peer.ss_family != AF_INET) return false;
  return getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, &length) == 0 && timeout_ms == 0;
}

// The plugin does not know of it.
void ShutLane(int index) {
  for (int fd = 0; fd < 1024; ++fd) {
    if (IsLane(fd) && index-- == 0) TCPX_REQUIRE(shutdown(fd, SHUT_WR) == 0);
  }
  TCPX_REQUIRE(index < 0, "not that many lanes");
}

// The next rank has receives posted beyond the last message: an end before it has seen that one would be an error.
void AwaitDrained(const Ring& ring, int next, int round, absl::Time deadline) {
  while (access(ring.Path("drained", next, round).c_str(), F_OK) != 0 &&
         access(ring.Path("result", next, round).c_str(), F_OK) != 0) {
    TCPX_REQUIRE(absl::Now() < deadline, "rank ", next, " never drains");
    absl::SleepFor(absl::Milliseconds(2));
  }
}

void AwaitNext(const Ring& ring, int round, absl::Time deadline) {
  WriteFile(ring.Path("drained", ring.rank, round), "");
  const int others = Flag("RING_TOGETHER") ? ring.size - 1 : 1;
  for (int i = 1; i <= others; ++i) AwaitDrained(ring, (ring.rank + i) % ring.size, round, deadline);
}

// All that was sent arrives; receives that were posted beyond it stay.
Flow* Drain(const Ring& ring, int round, Flow* send, Flow* recv) {
  send->SetPosting(false);
  recv->SetPosting(true);
  const std::string theirs = ring.Path("sent", (ring.rank + ring.size - 1) % ring.size, round);
  const absl::Time deadline = absl::Now() + kHungAfter;
  int64_t total = -1;
  bool told = false;
  Calls calls;
  while (!told || total < 0 || recv->finished() < total) {
    if (send->Step() != ncclSuccess) return send;
    if (recv->Step() != ncclSuccess) return recv;
    calls.Made(send->finished() + recv->finished());
    const bool sent = send->finished() == send->posted();
    if (sent && !told) WriteFile(ring.Path("sent", ring.rank, round), absl::StrCat(send->posted()));
    told = told || sent;
    if (total < 0) std::ifstream(theirs) >> total;
    TCPX_REQUIRE(absl::Now() < deadline, recv->finished(), " of ", total, " messages");
  }
  AwaitNext(ring, round, deadline);
  return nullptr;
}

void ForkLoader(const Ring& ring) {
  if (!Flag("RING_FORK") || fork() != 0) return;
  while (!ring.Has("stop") && ring.Has(".")) usleep(20000);
  _exit(0);
}

void ShiftOnce(const Ring& ring, bool* shifted) {
  if (*shifted || getenv("RING_SHIFT") == nullptr || !ring.Has("shift")) return;
  *shifted = true;
  ShiftClock(atoi(getenv("RING_SHIFT")));
}

std::string Seconds() { return absl::StrFormat("%.3f", static_cast<double>(MonotonicNanos()) * 1e-9); }

// Scripts wait for a line of the log, or for messages.
struct Notes {
  void Write(const char* name, const std::string& text) const { WriteFile(ring.Path(name, ring.rank, round), text); }
  void Count(int64_t now) {
    if (std::exchange(messages, now) != now) Write("count", absl::StrCat(now, "\n"));
  }
  void Log(const char* name) {
    const std::string log = LogText().substr(log_begin);
    if (std::exchange(logged, log.size()) == log.size()) return;
    for (; timed < std::count(log.begin(), log.end(), '\n'); ++timed) absl::StrAppend(&times, Seconds(), "\n");
    Write("times", times);
    Write(name, log);
  }

  const Ring& ring;
  int round;
  size_t log_begin;
  size_t logged = 0;
  std::string times;
  std::ptrdiff_t timed = 0;
  int64_t messages = -1;
};

// Whether the rank has fallen silent, and in which direction.
class Hush {
 public:
  explicit Hush(const char* way) : way_(way == nullptr ? "" : way) {}
  void Look(const Ring& ring) { on_ = !way_.empty() && ring.Has("hush") && !ring.Has("speak") && !ring.Has("stop"); }
  bool sends() const { return !on_ || way_ != "send"; }
  bool receives() const { return !on_ || way_ != "receive"; }

 private:
  const std::string way_;
  bool on_ = false;
};

// Runs until an error or the stop. The flow with the error, or null.
Flow* RunTraffic(const Ring& ring, int round, Flow* send, Flow* recv, Notes* notes) {
  bool quiet = Flag("RING_QUIET"), mute = Flag("RING_MUTE");
  bool told = false, shifted = false, chain = Flag("RING_CHAIN");
  Hush hush(getenv("RING_HUSH"));
  Calls calls;
  absl::Time looked = absl::InfinitePast();
  send->SetPosting(!quiet);
  for (;;) {
    const bool may_send = !chain || send->posted() < recv->finished() + kWindow;
    if (chain) send->SetPosting(!quiet && may_send && hush.sends());
    recv->SetPosting(hush.receives());
    if (send->Step() != ncclSuccess) return send;
    if (!mute && recv->Step() != ncclSuccess) return recv;
    calls.Made(send->finished() + recv->finished());
    const bool runs = quiet || mute || recv->finished() >= 8;
    if (runs && !told) notes->Write("running", "");
    if (runs && !told && getenv("RING_SHUT") != nullptr) ShutLane(atoi(getenv("RING_SHUT")));
    if (runs && !told) ForkLoader(ring);
    told = told || runs;
    if (quiet) absl::SleepFor(absl::Milliseconds(2));
    if (absl::Now() - looked < absl::Milliseconds(20)) continue;
    looked = absl::Now();
    ShiftOnce(ring, &shifted);
    hush.Look(ring);
    notes->Log("log");
    notes->Count(recv->finished());
    if ((mute || quiet) && ring.Has("speak")) {
      mute = quiet = false;
      send->SetPosting(true);
    }
    if (ring.Has("stop")) return Drain(ring, round, send, recv);
  }
}

void AwaitStop(const Ring& ring, Flow* failed, Notes* notes) {
  const absl::Time deadline = absl::Now() + kHungAfter;
  failed->SetPosting(true);
  while (!ring.Has("stop")) {
    TCPX_REQUIRE(failed->Step() != ncclSuccess, "an error that does not stick");
    TCPX_REQUIRE(absl::Now() < deadline, "nobody says stop");
    notes->Log("late");
    absl::SleepFor(absl::Milliseconds(5));
  }
}

void RunRound(Rank* rank, const Ring& ring, int round, bool last) {
  NetClient* net = &rank->net();
  Notes notes{ring, round, LogText().size()};
  void* context = rank->NewContext();
  Announce(context);
  const Ends ends = Connect(net, context, ring, round);
  {
    Flow send(net, Flow::Way::kSend, ends.send);
    Flow recv(net, Flow::Way::kReceive, ends.receive);
    Flow* const failed = RunTraffic(ring, round, &send, &recv, &notes);
    notes.Write("running", "");  // It may have been too short to say so.
    notes.Log("log");
    const char* const how = failed != nullptr ? "error " : "stopped ";
    notes.Write("result", absl::StrCat(how, Seconds(), " ", recv.finished(), "\n"));
    if (failed != nullptr) failed->RequireAllEnded();
    if (failed != nullptr && last) AwaitStop(ring, failed, &notes);
    send.Deregister();
    recv.Deregister();
  }
  rank->Close(ends);
  TCPX_REQUIRE(net->Finalize(context) == ncclSuccess);
}

void Run(const Ring& ring) {
  const char* version = getenv("RING_VERSION");
  const int rounds = getenv("RING_ROUNDS") == nullptr ? 1 : atoi(getenv("RING_ROUNDS"));
  if (getenv("RING_DENY") != nullptr) DenyIoUring(atoi(getenv("RING_DENY")));
  if (Flag("RING_UNTOLD")) DenyLinkNews();
  Rank rank(version == nullptr ? 0 : atoi(version));
  const std::vector<std::string> before = OpenDescriptors();
  const int threads = ThreadCountAtRest();
  for (int round = 0; round < rounds; ++round) RunRound(&rank, ring, round, round + 1 == rounds);
  WriteFile(absl::StrCat(ring.folder, "/log.", ring.rank, ".end"), LogText());
  if (!rank.net().has_finalize()) return;
  // An abort waits for nothing that lingers longer than a moment; the end of the next context does.
  if (OpenDescriptors() != before) TCPX_REQUIRE(rank.net().Finalize(rank.NewContext()) == ncclSuccess);
  TCPX_REQUIRE(OpenDescriptors() == before, "descriptors are left: ", absl::StrJoin(OpenDescriptors(), ", "),
               "; before: ", absl::StrJoin(before, ", "));
  TCPX_REQUIRE(SettlesAtThreads(threads), ThreadCount(), " threads, and ", threads, " before");
}

}  // namespace
}  // namespace tcpx

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) {
    fputs("usage: ring_rank FOLDER RANK SIZE [DEVICE]\n", stderr);
    return 2;
  }
  tcpx::Run({argv[1], atoi(argv[2]), atoi(argv[3]), argc == 5 ? atoi(argv[4]) : 0});
  return 0;
}
