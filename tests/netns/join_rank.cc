// join_rank: one rank of a ring that connects, as NCCL does it, and tells what came of it. Nothing is sent.
//
// usage: join_rank FOLDER RANK SIZE
//
// The ranks share FOLDER and nothing else. Each dials the next and accepts from the one before, on all channels at
// once, until all are there or one call has failed; then it waits for FOLDER/stop with what it has, as a rank does that
// NCCL has not torn down yet, so that only the plugin can tell the others. Into FOLDER a rank writes
// handle.RANK.CHANNEL, running.RANK.0 when it begins, and log.RANK.0, what the plugin said, and result.RANK.0: "error
// SECONDS" or "stopped SECONDS", where it was stopped with all connections open, with the time of
// CLOCK_MONOTONIC. joined.RANK.0 is there once all connections are up. Exit code 0: all was closed in order.
//
// environment: JOIN_CHANNELS (4)   connections to each neighbour
//              JOIN_WAITS=1        dials only once FOLDER/go is there
//              JOIN_DIALS=0        dials nobody, and only accepts
//
// Threads: one, and the plugin's.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

// Beyond what a connect may take with the shortest bounds that a test sets, and below the script's patience.
constexpr absl::Duration kPatience = absl::Seconds(55);

struct Channel {
  char handle[kHandleBytesMax] = {};  // of the next rank
  void* listen = nullptr;
  Ends ends;
};

class Joiner {
 public:
  Joiner(std::string folder, int rank, int size) : folder_(std::move(folder)), rank_(rank), size_(size) {
    const char* channels = getenv("JOIN_CHANNELS");
    channels_.resize(channels == nullptr ? 4 : static_cast<size_t>(atoi(channels)));
  }

  void Run() {
    Listen();
    Write(Path("running", rank_, 0), "");
    while (getenv("JOIN_WAITS") != nullptr && !Has("go")) Pause();
    Find();
    const bool joined = Join();
    if (joined) Write(Path("joined", rank_, 0), "");
    bool failed = !joined;
    if (failed) Result("error");
    while (!Has("stop")) {
      Pause();
      // A connection that is up may fail later: then every call returns the error.
      if (!failed && !Stands()) {
        failed = true;
        Result("error");
      }
    }
    if (!failed) Result("stopped");
    Leave();
  }

 private:
  std::string Path(const std::string& what, int rank, size_t number) const {
    return absl::StrCat(folder_, "/", what, ".", rank, ".", number);
  }
  bool Has(const std::string& name) const { return access(absl::StrCat(folder_, "/", name).c_str(), F_OK) == 0; }

  void Pause() {
    TCPX_REQUIRE(absl::Now() < deadline_, "nobody says stop; ", LogText());
    absl::SleepFor(absl::Milliseconds(2));
  }

  // Whole or not at all.
  void Write(const std::string& path, const std::string& text) {
    std::ofstream(path + ".part", std::ios::binary) << text;
    TCPX_REQUIRE(rename((path + ".part").c_str(), path.c_str()) == 0);
  }

  void Result(const char* what) {
    Write(Path("log", rank_, 0), LogText());
    Write(Path("result", rank_, 0), absl::StrCat(what, " ", static_cast<double>(MonotonicNanos()) * 1e-9, " 0\n"));
  }

  void Listen() {
    for (size_t i = 0; i < channels_.size(); ++i) {
      char handle[kHandleBytesMax] = {};
      TCPX_REQUIRE(net().Listen(plugin_.context(), 0, handle, &channels_[i].listen) == ncclSuccess, LogText());
      Write(Path("handle", rank_, i), std::string(handle, sizeof(handle)));
    }
  }

  void Find() {
    for (size_t i = 0; i < channels_.size(); ++i) {
      const std::string path = Path("handle", (rank_ + 1) % size_, i);
      while (!std::ifstream(path, std::ios::binary).read(channels_[i].handle, kHandleBytesMax)) Pause();
    }
  }

  // False: a call has failed.
  bool Poll(Channel* channel) {
    Ends& ends = channel->ends;
    if (ends.send == nullptr && dials_) {
      const ncclResult_t result = net().Connect(plugin_.context(), 0, channel->handle, &ends.send);
      if (result != ncclSuccess) return false;
    }
    return ends.receive != nullptr || net().Accept(channel->listen, &ends.receive) == ncclSuccess;
  }

  bool Join() {
    for (;;) {
      bool whole = true;
      for (Channel& channel : channels_) {
        if (!Poll(&channel)) return false;
        whole = whole && (channel.ends.send != nullptr || !dials_) && channel.ends.receive != nullptr;
      }
      if (whole) return true;
      Pause();
    }
  }

  // An empty receive is posted once and asked after.
  bool Stands() {
    Channel& channel = channels_.front();
    int done = 0;
    if (request_ == nullptr) {
      void* data = &byte_;
      size_t bytes = sizeof(byte_);
      int tag = 0;
      if (region_ == nullptr &&
          net().RegMr(channel.ends.receive, data, bytes, NCCL_PTR_HOST, &region_) != ncclSuccess) {
        return false;
      }
      return net().Irecv(channel.ends.receive, 1, &data, &bytes, &tag, &region_, nullptr, &request_) == ncclSuccess;
    }
    return net().Test(request_, &done, nullptr) == ncclSuccess;
  }

  void Leave() {
    if (region_ != nullptr) TCPX_REQUIRE(net().DeregMr(channels_.front().ends.receive, region_) == ncclSuccess);
    for (Channel& channel : channels_) {
      if (channel.ends.send != nullptr) TCPX_REQUIRE(net().CloseSend(channel.ends.send) == ncclSuccess);
      if (channel.ends.receive != nullptr) TCPX_REQUIRE(net().CloseRecv(channel.ends.receive) == ncclSuccess);
      TCPX_REQUIRE(net().CloseListen(channel.listen) == ncclSuccess);
    }
    plugin_.Finalize();
  }

  NetClient& net() { return plugin_.net(); }

  const std::string folder_;
  const int rank_;
  const int size_;
  const bool dials_ = getenv("JOIN_DIALS") == nullptr || *getenv("JOIN_DIALS") != '0';
  const absl::Time deadline_ = absl::Now() + kPatience;
  Rank plugin_;
  std::vector<Channel> channels_;
  char byte_ = 0;
  void* region_ = nullptr;
  void* request_ = nullptr;
};

}  // namespace
}  // namespace tcpx

int main(int argc, char** argv) {
  if (argc != 4) {
    fputs("usage: join_rank FOLDER RANK SIZE\n", stderr);
    return 2;
  }
  tcpx::Joiner(argv[1], atoi(argv[2]), atoi(argv[3])).Run();
  return 0;
}
