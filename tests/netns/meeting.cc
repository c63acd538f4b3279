#include "tests/netns/meeting.h"

#include <stdio.h>

#include <fstream>

#include "absl/time/clock.h"
#include "tests/plugin/lifetime/processes.h"

namespace tcpx {
namespace {

void LeaveHandle(const Places& places, const char* handle) {
  const std::string unfinished = places.own_handle + ".part";
  std::ofstream(unfinished, std::ios::binary).write(handle, kHandleBytesMax);
  TCPX_REQUIRE(rename(unfinished.c_str(), places.own_handle.c_str()) == 0);
}

void FindHandle(const Places& places, char* handle) {
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  while (!std::ifstream(places.peer_handle, std::ios::binary).read(handle, kHandleBytesMax)) {
    TCPX_REQUIRE(absl::Now() < deadline, "no ", places.peer_handle);
    absl::SleepFor(absl::Milliseconds(5));
  }
}

}  // namespace

Ends Connect(Rank* rank, void* context, int device, const Places& places) {
  NetClient& net = rank->net();
  char handle[kHandleBytesMax] = {};
  void* listen = nullptr;
  TCPX_REQUIRE(net.Listen(context, device, handle, &listen) == ncclSuccess, LogText());
  LeaveHandle(places, handle);
  FindHandle(places, handle);
  Ends ends;
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  while (ends.send == nullptr || ends.recv == nullptr) {
    if (ends.send == nullptr) {
      TCPX_REQUIRE(net.Connect(context, device, handle, &ends.send) == ncclSuccess, LogText());
    }
    if (ends.recv == nullptr) TCPX_REQUIRE(net.Accept(listen, &ends.recv) == ncclSuccess, LogText());
    TCPX_REQUIRE(absl::Now() < deadline, LogText());
  }
  TCPX_REQUIRE(net.CloseListen(listen) == ncclSuccess);
  return ends;
}

}  // namespace tcpx
