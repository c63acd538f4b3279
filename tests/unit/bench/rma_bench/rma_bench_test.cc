// Runs the program itself with the built library, right and wrong.
#include <string>

#include "gtest/gtest.h"
#include "tests/support/program.h"

namespace tcpx {
namespace bench {
namespace {

// Few, short, whatever the phase: these tests are about what is said, not about how fast it is.
constexpr char kQuick[] = "--no-priority --keep-disturbed --phase any --samples 1 --sample-ms 2 ";

ProgramResult RmaBench(const std::string& arguments) {
  return RunCommand("NCCL_SOCKET_IFNAME=lo " + Runfile("bench/rma_bench/rma_bench") + " " + kQuick + arguments);
}

std::string Library() { return "--library " + Runfile("net_socket/libnccl-net-tcpx.so") + " "; }

bool Says(const ProgramResult& result, const std::string& text) {
  return result.output.find(text) != std::string::npos;
}

TEST(RmaBench, PrintsATableOfEachMode) {
  const ProgramResult result = RmaBench(Library() + "-b 64 -e 64K -f 1024");
  EXPECT_EQ(result.code, 0) << result.output;
  for (const char* part : {"one-sided v16, device 0 of 1", "# latency:", "# rate:", "32 in flight",
                           "# bandwidth:", "8 in flight", "isend-irecv", "raw-1", "1/1"}) {
    EXPECT_TRUE(Says(result, part)) << part << "\n" << result.output;
  }
}

TEST(RmaBench, TakesASecondLibraryAndAnOlderTable) {
  const std::string second = "--vs " + Runfile("net_socket/libnccl-net-tcpx.so") + " ";
  const ProgramResult result = RmaBench(Library() + second + "--table v14 --mode latency --json");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(Says(result, "one-sided v14")) << result.output;
  EXPECT_TRUE(Says(result, "\"implementation\": \"vs\"")) << result.output;
}

TEST(RmaBench, WritesAPage) {
  const std::string page = testing::TempDir() + "/rma.html";
  const ProgramResult result = RmaBench(Library() + "--mode bandwidth -b 64K --report " + page);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(RunCommand("grep -c isend-irecv " + page).code, 0);
}

TEST(RmaBench, SaysWhatIsWrong) {
  ProgramResult result = RmaBench("--mode latency --library /nowhere/x.so");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(Says(result, "/nowhere/x.so")) << result.output;
  result = RmaBench("--mode latency --library " + Runfile("tests/support/loopback/loopback_plugin.so"));
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(Says(result, "no symbol ncclRmaPlugin_v16 to _v14")) << result.output;
  result = RmaBench("");
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(Says(result, "rma_bench --help explains")) << result.output;
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
