// self_traffic: opens the plugin, connects it to itself and checks what arrives. Exit code 0: all did.
#include "tests/plugin/lifetime/processes.h"
#include "tests/plugin/lifetime/rank.h"
#include "tests/plugin/lifetime/stream.h"

int main() {
  tcpx::Rank rank;
  const tcpx::Ends ends = rank.ConnectToSelf();
  tcpx::Stream send(&rank.net(), tcpx::Stream::Way::kSend, ends.send, {500000, 4, 20, true});
  tcpx::Stream recv(&rank.net(), tcpx::Stream::Way::kReceive, ends.recv, {500000, 4, 20, true});
  while (!send.complete() || !recv.complete()) {
    TCPX_REQUIRE(send.Step() == ncclSuccess && recv.Step() == ncclSuccess, tcpx::LogText());
  }
  send.Deregister();
  recv.Deregister();
  rank.Close(ends);
  rank.Finalize();
  TCPX_REQUIRE(tcpx::WarningCount() == 0, tcpx::LogText());
  return 0;
}
