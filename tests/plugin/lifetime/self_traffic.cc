// self_traffic: opens the plugin, connects it to itself and checks what arrives. Exit code 0: all did.
#include "tests/support/rank.h"
#include "tests/support/stream.h"

int main() {
  tcpx::Rank rank;
  const tcpx::Ends ends = rank.ConnectToSelf();
  tcpx::Transfer(&rank.net(), ends, {500000, 4, 20, true});
  rank.Close(ends);
  rank.Finalize();
  TCPX_REQUIRE(tcpx::WarningCount() == 0, tcpx::LogText());
  return 0;
}
