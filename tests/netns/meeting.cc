#include "tests/netns/meeting.h"

#include <stdio.h>

#include <fstream>

#include "absl/time/clock.h"
#include "tests/support/processes.h"

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
  char handle[kHandleBytesMax] = {};
  void* const listen = rank->Listen(context, handle, device);
  LeaveHandle(places, handle);
  FindHandle(places, handle);
  const Ends ends = rank->ConnectTo(context, listen, handle, device);
  rank->CloseListen(listen);
  return ends;
}

}  // namespace tcpx
