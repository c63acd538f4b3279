// peer: one of two ranks that talk to each other through the plugin, each on a host of its own.
//
// usage: peer FOLDER NAME OTHER [DEVICE [CLASS...]]
//
// A device such as 0+1 is one that makeVDevice makes of these two first.
//
// The ranks share FOLDER and nothing else: each leaves its handles there. In both directions at once they send small,
// medium and large messages and check every byte. With CLASSes there is a communicator of each traffic class, and all
// of them are busy at the same time. PEER_WARNS=1: the plugin may say WARN. The plugin's log goes to stdout. Exit code
// 0: all arrived; 1: says what did not.
//
// Threads: one, and the plugin's.
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/netns/meeting.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/stream.h"

namespace tcpx {
namespace {

constexpr Stream::Shape kShapes[] = {
    {700, 8, 300, true},
    {40000, 8, 200, true},
    {size_t{1} << 20, 8, 24, true},
};

void Exchange(Rank* rank, const std::vector<Ends>& all, const Stream::Shape& shape) {
  std::vector<std::unique_ptr<BothWays>> streams;
  for (const Ends& ends : all) streams.push_back(std::make_unique<BothWays>(&rank->net(), ends, shape));
  const auto complete = [](const auto& both) { return both->send.complete() && both->receive.complete(); };
  const absl::Time deadline = absl::Now() + kHungAfter;
  while (!std::all_of(streams.begin(), streams.end(), complete)) {
    for (auto& both : streams) {
      TCPX_REQUIRE(both->send.Step() == ncclSuccess && both->receive.Step() == ncclSuccess, LogText());
    }
    TCPX_REQUIRE(absl::Now() < deadline, LogText());
  }
  for (auto& both : streams) both->Deregister();
}

int FindDevice(Rank* rank, const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '+');
  if (parts.size() == 1) return atoi(name.c_str());
  ncclNetVDeviceProps_v12_t children = {};
  for (const std::string& part : parts) children.devs[children.ndevs++] = atoi(part.c_str());
  int device = -1;
  const ncclResult_t result = rank->net().MakeVDevice(&device, children);
  TCPX_REQUIRE(result == ncclSuccess, "makeVDevice says ", static_cast<int>(result), "; ", LogText());
  return device;
}

void Run(const std::string& device_name, const Places& places, const std::vector<int>& classes) {
  Rank rank;
  const int device = FindDevice(&rank, device_name);
  std::vector<void*> contexts;
  for (int traffic_class : classes) contexts.push_back(rank.NewContext(traffic_class));
  if (contexts.empty()) contexts.push_back(rank.context());
  std::vector<Ends> all;
  for (void* context : contexts) {
    const size_t i = all.size();
    all.push_back(
        Connect(&rank, context, device, {absl::StrCat(places.own_handle, i), absl::StrCat(places.peer_handle, i)}));
  }
  for (const Stream::Shape& shape : kShapes) Exchange(&rank, all, shape);
  for (const Ends& ends : all) rank.Close(ends);
  for (void* context : contexts) {
    if (context != rank.context()) TCPX_REQUIRE(rank.net().Finalize(context) == ncclSuccess);
  }
  rank.Finalize();
  rank.Unload();
  fputs(LogText().c_str(), stdout);
  TCPX_REQUIRE(WarningCount() == 0 || getenv("PEER_WARNS") != nullptr);
}

}  // namespace
}  // namespace tcpx

int main(int argc, char** argv) {
  if (argc < 4) {
    fputs("usage: peer FOLDER NAME OTHER [DEVICE [CLASS...]]\n", stderr);
    return 2;
  }
  std::vector<int> classes;
  for (int i = 5; i < argc; ++i) classes.push_back(atoi(argv[i]));
  tcpx::Run(argc > 4 ? argv[4] : "0", {absl::StrCat(argv[1], "/", argv[2]), absl::StrCat(argv[1], "/", argv[3])},
            classes);
  return 0;
}
