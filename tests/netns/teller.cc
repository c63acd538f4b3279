// teller: one of two ranks that tell each other a file's bytes through the plugin; and somebody who looks for that
// file's bytes in what was heard on the wire.
//
// usage: teller tell FOLDER NAME OTHER SECRETS     the ranks share FOLDER, where each leaves its handle
//        teller count SECRETS HEARD                prints how many of SECRETS' blocks of 8 bytes HEARD has, anywhere
//
// In both directions at once the ranks send messages of 8 B to a MiB, whose bytes are the next ones of SECRETS:
// plainly, as data of LL is received (NCCL_NET_OPTIONAL_RECV_COMPLETION), in groups, and from GPU memory where there is
// a driver or its stand-in. Every byte is checked. The plugin's log goes to stdout. Exit code 0: all arrived.
//
// Threads: one, and the plugin's.
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/netns/meeting.h"
#include "tests/support/gpu_lab.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

constexpr size_t kSizes[] = {8, 16, 100, 1000, 5000, 70'000, 300'000, size_t{1} << 20};
constexpr size_t kLongest = size_t{1} << 20;
constexpr size_t kBlock = 8;
constexpr int kGroup = 3;
enum class Way { kPlain, kFlags, kGrouped, kStaged };

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  TCPX_REQUIRE(!all.empty(), "nothing in ", path);
  return all;
}

// Memory of one end, known to its comm.
class Place {
 public:
  Place(NetClient* net, void* comm, GpuLab* lab) : net_(net), comm_(comm), host_(kLongest) {
    if (lab != nullptr) gpu_ = std::make_unique<GpuBuffer>(lab, kLongest);
    const int type = gpu_ != nullptr ? NCCL_PTR_CUDA : NCCL_PTR_HOST;
    TCPX_REQUIRE(net->RegMr(comm, data(), kLongest, type, &handle_) == ncclSuccess, LogText());
  }
  ~Place() { (void)net_->DeregMr(comm_, handle_); }

  void* data() { return gpu_ != nullptr ? gpu_->data() : host_.data(); }
  void* handle() const { return handle_; }
  void Write(const char* text, size_t bytes) {
    gpu_ != nullptr ? gpu_->Write(0, text, bytes) : void(memcpy(host_.data(), text, bytes));
  }
  std::string Read(size_t bytes) {
    const std::vector<char> read = gpu_ != nullptr ? gpu_->Read(0, bytes) : host_;
    return std::string(read.data(), bytes);
  }

 private:
  NetClient* const net_;
  void* const comm_;
  void* handle_ = nullptr;
  std::vector<char> host_;
  std::unique_ptr<GpuBuffer> gpu_;
};

class Teller {
 public:
  Teller(Rank* rank, const Ends& ends, const std::string& secrets) : net_(&rank->net()), ends_(ends), text_(secrets) {}

  // A message of that size in each direction, or a group of them.
  void Exchange(Way way, size_t bytes, GpuLab* lab) {
    const int count = way == Way::kGrouped ? kGroup : 1;
    TCPX_REQUIRE(at_ + bytes * static_cast<size_t>(count) <= text_.size(), "SECRETS is too short");
    std::deque<Place> from;
    std::deque<Place> to;
    std::vector<void*> sends(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      from.emplace_back(net_, ends_.send, lab);
      to.emplace_back(net_, ends_.receive, lab);
      from.back().Write(&text_[at_ + static_cast<size_t>(i) * bytes], bytes);
    }
    void* receive = Post(way, bytes, &to);
    bool received = false;
    const absl::Time deadline = absl::Now() + kHungAfter / 2;
    std::vector<bool> sent(sends.size());
    while (!received || std::count(sent.begin(), sent.end(), true) < count) {
      for (size_t i = 0; i < sends.size(); ++i) {
        if (!sent[i]) sent[i] = SendOn(static_cast<int>(i), bytes, &from[i], &sends[i]);
      }
      if (!received) received = Done(receive);
      TCPX_REQUIRE(absl::Now() < deadline, LogText());
    }
    for (Place& place : to) {
      TCPX_REQUIRE(place.Read(bytes) == text_.substr(at_, bytes), "wrong bytes at ", at_);
      at_ += bytes;
    }
  }

 private:
  void* Post(Way way, size_t bytes, std::deque<Place>* to) {
    void* data[kGroup] = {};
    void* handles[kGroup] = {};
    size_t sizes[kGroup] = {bytes, bytes, bytes};
    int tags[kGroup] = {0, 1, 2};
    for (size_t i = 0; i < to->size(); ++i) {
      data[i] = (*to)[i].data();
      handles[i] = (*to)[i].handle();
    }
    void* request = nullptr;
    const absl::Time deadline = absl::Now() + kHungAfter / 2;
    for (;;) {
      request = way == Way::kFlags ? reinterpret_cast<void*>(NCCL_NET_OPTIONAL_RECV_COMPLETION) : nullptr;
      const int count = static_cast<int>(to->size());
      TCPX_REQUIRE(net_->Irecv(ends_.receive, count, data, sizes, tags, handles, nullptr, &request) == ncclSuccess,
                   LogText());
      if (request != nullptr) return request;
      TCPX_REQUIRE(absl::Now() < deadline, LogText());
    }
  }

  // True: it is done.
  bool SendOn(int tag, size_t bytes, Place* from, void** request) {
    if (*request != nullptr) return Done(*request);
    const ncclResult_t result = net_->Isend(ends_.send, from->data(), bytes, tag, from->handle(), nullptr, request);
    TCPX_REQUIRE(result == ncclSuccess, LogText());
    return false;
  }

  bool Done(void* request) {
    int done = 0;
    TCPX_REQUIRE(net_->Test(request, &done, nullptr) == ncclSuccess, LogText());
    return done != 0;
  }

  NetClient* const net_;
  const Ends ends_;
  const std::string& text_;
  size_t at_ = 0;
};

void Tell(const Places& places, const std::string& secrets_path) {
  const std::string secrets = ReadAll(secrets_path);
  auto lab = GpuLab::Open();
  Rank rank;
  const Ends ends = Connect(&rank, rank.context(), 0, places);
  {
    Teller teller(&rank, ends, secrets);
    for (const Way way : {Way::kPlain, Way::kFlags, Way::kGrouped, Way::kStaged}) {
      if (way == Way::kStaged && !lab.ok()) {
        printf("no GPU and no stand-in: nothing is staged\n");
        continue;
      }
      for (const size_t bytes : kSizes) teller.Exchange(way, bytes, way == Way::kStaged ? lab->get() : nullptr);
    }
  }
  rank.Close(ends);
  rank.Finalize();
  rank.Unload();
  fputs(LogText().c_str(), stdout);
  TCPX_REQUIRE(WarningCount() == 0);
}

// At random that happens once in a million runs; who has 16 bytes in a row has such a block.
size_t Count(const std::string& secrets, const std::string& heard) {
  std::unordered_set<uint64_t> blocks;
  std::vector<bool> filter(size_t{1} << 26);  // Most need no further look.
  const auto block = [](const char* at) {
    uint64_t bytes = 0;
    memcpy(&bytes, at, sizeof(bytes));
    return bytes;
  };
  for (size_t at = 0; at + kBlock <= secrets.size(); at += kBlock) {
    blocks.insert(block(&secrets[at]));
    filter[block(&secrets[at]) % filter.size()] = true;
  }
  size_t found = 0;
  for (size_t at = 0; at + kBlock <= heard.size(); ++at) {
    const uint64_t bytes = block(&heard[at]);
    if (filter[bytes % filter.size()]) found += blocks.count(bytes);
  }
  return found;
}

}  // namespace
}  // namespace tcpx

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "tell" && argc == 6) {
    const std::string folder = argv[2];
    tcpx::Tell({absl::StrCat(folder, "/", argv[3]), absl::StrCat(folder, "/", argv[4])}, argv[5]);
    return 0;
  }
  if (what == "count" && argc == 4) {
    printf("%zu\n", tcpx::Count(tcpx::ReadAll(argv[2]), tcpx::ReadAll(argv[3])));
    return 0;
  }
  fputs("usage: teller tell FOLDER NAME OTHER SECRETS | teller count SECRETS HEARD\n", stderr);
  return 2;
}
