// ring_rank: one rank of a ring that runs until something happens to it.
//
// usage: ring_rank FOLDER RANK SIZE [DEVICE]
//
// The ranks share FOLDER and nothing else. Each sends to the next and receives from the one before, as fast as it goes.
// Into FOLDER a rank writes handle.RANK.ROUND, running.RANK.ROUND once traffic flows, and at the end of a round
// log.RANK.ROUND, what the plugin said, and result.RANK.ROUND: "error SECONDS MESSAGES" or "stopped SECONDS MESSAGES",
// with the time of CLOCK_MONOTONIC. It stops when FOLDER/stop is there, with every message through, and after an error
// it goes on calling until then with its comms open, as NCCL may do, so that only the plugin can tell the others;
// log.RANK.end is the whole log. stalled.RANK.ROUND is there once the plugin has described a wait, and
// verdict.RANK.ROUND has what it has said once there is a verdict in it. Exit code 0: every request ended once, all bytes were right, and all descriptors are back.
//
// environment: RING_ROUNDS (1)   connections, one behind the other, each in a context of its own; with more than 1 an
//                                error does not wait for FOLDER/stop
//              RING_VERSION      of the interface; unset: the newest
//              RING_VARY=1       messages of all sizes, some empty
//              RING_TOGETHER=1   stops when all ranks have all messages, not only the next one
//              RING_QUIET=1      posts receives, and sends nothing until FOLDER/speak is there
//              RING_MUTE=1       sends, and posts no receive until FOLDER/speak is there
//              RING_CHAIN=1      sends a message only once the one 4 before it has come, as a collective does; never spins
//              RING_HUSH=send, or receive: once FOLDER/hush is there it posts no more of these until FOLDER/speak is
//              RING_SHIFT=N      once FOLDER/shift is there its clock has gone N seconds on
//              RING_SHUT=N       ends the sending side of its N-th lane, from 0, once traffic flows
//              RING_FORK=1       forks a child once traffic flows, as a data loader does, which lives until FOLDER/stop
//              RING_ANNOUNCE=N   says of each context, as NCCL does, that it will have N peers at once and 8 flows to each
//              RING_DENY=ERRNO   io_uring's system calls end with that number
//              RING_UNTOLD=1     the kernel does not tell of interfaces
//
// Threads: one; the plugin's besides.
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "nccl/net_v12.h"
#include "tests/netns/shifted_clock.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/plugin/lifetime/sandbox.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

// Every second message is small, so that all lanes are busy.
constexpr size_t kMessageBytes = 200000;
constexpr size_t kSmallBytes = 4000;
constexpr int kWindow = 4;

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

bool Flag(const char* name) { return getenv(name) != nullptr && *getenv(name) == '1'; }

// Whole or not at all.
void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path + ".part", std::ios::binary) << text;
  TCPX_REQUIRE(rename((path + ".part").c_str(), path.c_str()) == 0);
}

// Messages one way. Each holds its number, eight bytes at a time.
class Flow {
 public:
  enum class Way { kSend, kReceive };

  Flow(NetClient* net, Way way, void* comm) : net_(net), way_(way), comm_(comm), memory_(kWindow * kWords) {
    const ncclResult_t registered =
        net_->RegMr(comm_, memory_.data(), memory_.size() * sizeof(uint64_t), NCCL_PTR_HOST, &region_);
    TCPX_REQUIRE(registered == ncclSuccess || registered == ncclRemoteError);
  }

  ncclResult_t Step() {
    ncclResult_t result = ncclSuccess;
    while (posting_ && result == ncclSuccess && posted_ - finished_ < kWindow && Post(&result)) {
    }
    if (result == ncclSuccess && posted_ > finished_) result = TestOldest();
    return result;
  }

  // Behind an error: each request ends with one, or was done, and so does every later call.
  void RequireAllEnded() {
    for (; finished_ < posted_; ++finished_) {
      int done = 0;
      const ncclResult_t result = net_->Test(requests_[finished_ % kWindow], &done, nullptr);
      TCPX_REQUIRE(result != ncclSuccess || done == 1, "a request is left over");
    }
    ncclResult_t result = ncclSuccess;
    TCPX_REQUIRE(!Post(&result) && result != ncclSuccess, "a failed comm takes requests");
  }

  void Deregister() { TCPX_REQUIRE(net_->DeregMr(comm_, region_) == ncclSuccess); }
  void SetPosting(bool posting) { posting_ = posting; }
  int64_t finished() const { return finished_; }
  int64_t posted() const { return posted_; }

 private:
  static constexpr size_t kWords = kMessageBytes / sizeof(uint64_t);

  // In RING_VARY by a hash of the number that cares for its high bits too (Knuth's multiplicative one).
  size_t BytesOf(int64_t message) const {
    if (!vary_) return message % 2 == 0 ? kMessageBytes : kSmallBytes;
    const uint64_t hash = (static_cast<uint64_t>(message) * 0x9E3779B97F4A7C15) >> 32;
    const size_t bytes_max = hash % 3 == 0 ? kMessageBytes : kSmallBytes;
    return hash % 11 == 0 ? 0 : hash % (bytes_max / sizeof(uint64_t)) * sizeof(uint64_t);
  }
  uint64_t* Slot(int64_t message) { return memory_.data() + static_cast<size_t>(message % kWindow) * kWords; }

  bool Post(ncclResult_t* result) {
    void* request = nullptr;
    void* data = Slot(posted_);
    size_t bytes = BytesOf(posted_);
    int tag = 0;
    if (way_ == Way::kSend) {
      for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) Slot(posted_)[i] = static_cast<uint64_t>(posted_) + i;
      *result = net_->Isend(comm_, data, bytes, tag, region_, nullptr, &request);
    } else {
      *result = net_->Irecv(comm_, 1, &data, &bytes, &tag, &region_, nullptr, &request);
    }
    if (request == nullptr) return false;
    requests_[posted_++ % kWindow] = request;
    return true;
  }

  ncclResult_t TestOldest() {
    int done = 0;
    int size = 0;
    const ncclResult_t result = net_->Test(requests_[finished_ % kWindow], &done, &size);
    if (result != ncclSuccess || done == 0) return result;
    const size_t bytes = BytesOf(finished_);
    TCPX_REQUIRE(size == static_cast<int>(bytes), size, " bytes");
    for (size_t i = 0; way_ == Way::kReceive && i < bytes / sizeof(uint64_t); ++i) {
      TCPX_REQUIRE(Slot(finished_)[i] == static_cast<uint64_t>(finished_) + i, "message ", finished_, " word ", i);
    }
    ++finished_;
    return ncclSuccess;
  }

  NetClient* const net_;
  const Way way_;
  void* const comm_;
  std::vector<uint64_t> memory_;
  void* region_ = nullptr;
  void* requests_[kWindow] = {};
  const bool vary_ = Flag("RING_VARY");
  bool posting_ = true;
  int64_t posted_ = 0;
  int64_t finished_ = 0;
};

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

// Behind the plugin's back.
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
  while (!told || total < 0 || recv->finished() < total) {
    if (send->Step() != ncclSuccess) return send;
    if (recv->Step() != ncclSuccess) return recv;
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

struct Noted {
  bool stall = false;
  size_t verdict = std::string::npos;  // where the latest begins
};

void NoteLog(const Ring& ring, int round, Noted* noted) {
  const std::string log = LogText();
  if (!noted->stall && log.find("no progress for") != std::string::npos) {
    noted->stall = true;
    WriteFile(ring.Path("stalled", ring.rank, round), "");
  }
  const size_t verdict = log.rfind("verdict: ");
  if (verdict == noted->verdict) return;
  noted->verdict = verdict;
  WriteFile(ring.Path("verdict", ring.rank, round), log);
}

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
Flow* RunTraffic(const Ring& ring, int round, Flow* send, Flow* recv) {
  bool quiet = Flag("RING_QUIET");
  bool mute = Flag("RING_MUTE");
  bool told = false, shifted = false, chain = Flag("RING_CHAIN");
  Hush hush(getenv("RING_HUSH"));
  auto moved = [last = int64_t{0}](int64_t now) mutable { return std::exchange(last, now) != now; };
  Noted noted;
  send->SetPosting(!quiet);
  for (int64_t step = 0;; ++step) {
    const bool may_send = !chain || send->posted() < recv->finished() + kWindow;
    if (chain) send->SetPosting(!quiet && may_send && hush.sends());
    recv->SetPosting(hush.receives());
    if (send->Step() != ncclSuccess) return send;
    if (!mute && recv->Step() != ncclSuccess) return recv;
    if (chain && !moved(send->finished() + recv->finished())) absl::SleepFor(absl::Microseconds(100));
    const bool runs = quiet || mute || recv->finished() >= 8;
    if (runs && !told) WriteFile(ring.Path("running", ring.rank, round), "");
    if (runs && !told && getenv("RING_SHUT") != nullptr) ShutLane(atoi(getenv("RING_SHUT")));
    if (runs && !told) ForkLoader(ring);
    told = told || runs;
    if (quiet) absl::SleepFor(absl::Milliseconds(2));
    if (step % (quiet ? 4 : chain ? 16 : 512) != 0) continue;
    ShiftOnce(ring, &shifted);
    hush.Look(ring);
    NoteLog(ring, round, &noted);
    if ((mute || quiet) && ring.Has("speak")) {
      mute = quiet = false;
      send->SetPosting(true);
    }
    if (ring.Has("stop")) return Drain(ring, round, send, recv);
  }
}

void Result(const Ring& ring, int round, const char* what, int64_t messages) {
  const double seconds = static_cast<double>(MonotonicNanos()) * 1e-9;
  WriteFile(ring.Path("result", ring.rank, round), absl::StrCat(what, " ", seconds, " ", messages, "\n"));
}

void AwaitStop(const Ring& ring, Flow* failed) {
  const absl::Time deadline = absl::Now() + kHungAfter;
  failed->SetPosting(true);
  while (!ring.Has("stop")) {
    TCPX_REQUIRE(failed->Step() != ncclSuccess, "an error that does not stick");
    TCPX_REQUIRE(absl::Now() < deadline, "nobody says stop");
    absl::SleepFor(absl::Milliseconds(5));
  }
}

void RunRound(Rank* rank, const Ring& ring, int round, bool last) {
  NetClient* net = &rank->net();
  const size_t logged = LogText().size();
  void* context = rank->NewContext();
  Announce(context);
  const Ends ends = Connect(net, context, ring, round);
  {
    Flow send(net, Flow::Way::kSend, ends.send);
    Flow recv(net, Flow::Way::kReceive, ends.receive);
    Flow* const failed = RunTraffic(ring, round, &send, &recv);
    WriteFile(ring.Path("running", ring.rank, round), "");  // It may have been too short to say so.
    WriteFile(ring.Path("log", ring.rank, round), LogText().substr(logged));
    Result(ring, round, failed != nullptr ? "error" : "stopped", recv.finished());
    if (failed != nullptr) failed->RequireAllEnded();
    if (failed != nullptr && last) AwaitStop(ring, failed);
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
