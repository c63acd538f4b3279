// Runs the program itself with the loopback plugin, right and wrong.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/program.h"

namespace tcpx {
namespace bench {
namespace {

// Output and errors together. `environment` is put before the command.
ProgramResult NetBench(const std::string& arguments, const std::string& environment = "") {
  return RunCommand(environment + " " + Runfile("bench/net_bench/net_bench") + " --no-priority " + arguments);
}

std::string Plugin() { return "--plugin " + Runfile("tests/support/loopback/loopback_plugin.so") + " "; }

// Few, short, whatever the phase: these tests are about what is said, not about how fast it is.
constexpr char kQuick[] = "--phase any --samples 1 --sample-ms 2 -b 8 -e 64K -f 128 ";

bool Says(const ProgramResult& result, const std::string& text) {
  return result.output.find(text) != std::string::npos;
}

TEST(NetBench, PrintsATableWithRatios) {
  const ProgramResult result = NetBench(Plugin() + kQuick + "--raw --check");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(Says(result, "loopback, v12, device 0 of 1")) << result.output;
  EXPECT_TRUE(Says(result, "engine poll, mode caller-driven")) << "the plugin's own words\n" << result.output;
  EXPECT_TRUE(Says(result, "# latency:")) << result.output;
  EXPECT_TRUE(Says(result, "# bandwidth:")) << result.output;
  EXPECT_TRUE(Says(result, "1/1")) << result.output;
}

TEST(NetBench, ASecondThreadPollsFlagsWithTheHintAndWithout) {
  const std::string quick = "--optional-recv --samples 1 --sample-ms 2 -b 8 -e 64K -f 128 ";
  ProgramResult result = NetBench(Plugin() + quick);
  EXPECT_EQ(result.code, 0) << result.output;
  for (const char* part : {"# optional-recv:", " LL ", " LL128 ", "1K ", "calls to test"}) {
    EXPECT_TRUE(Says(result, part)) << part << "\n" << result.output;
  }
  result = NetBench(Plugin() + quick + "--csv");
  EXPECT_EQ(result.code, 0) << result.output;
  for (const char* part : {"optional-recv,LL,8,0,1,", "optional-recv,LL,8,1,1,", "optional-recv,LL128,128,1,1,"}) {
    EXPECT_TRUE(Says(result, part)) << part << "\n" << result.output;
  }
  result = NetBench(Plugin() + quick + "--json");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(Says(result, "{\"lines\": \"LL128\", \"bytes\": 128, \"hint\": true, \"samples\": 1,")) << result.output;
  const std::string real = "--plugin " + Runfile("net_socket/libnccl-net-tcpx.so") + " ";
  result = NetBench(real + quick, "NCCL_SOCKET_IFNAME=lo");
  EXPECT_EQ(result.code, 0) << result.output;
  result = NetBench(real + quick + "--api v8", "NCCL_SOCKET_IFNAME=lo");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_TRUE(Says(result, "needs v9 or later")) << result.output;
}

TEST(NetBench, EveryModeRuns) {
  for (const char* mode : {"bidir --conns 3", "rate", "many --conns 2,20", "setup --conns 20",
                           "idle --conns 5 --seconds 1", "allreduce --ranks 3 -n 2", "latency --one-isend-per-pass"}) {
    const ProgramResult result = NetBench(Plugin() + kQuick + "--check --mode " + mode);
    EXPECT_EQ(result.code, 0) << mode << "\n" << result.output;
  }
}

TEST(NetBench, PingPongDuringAStream) {
  const std::string quick = "--raw --mode mixed --phase any --samples 1 --sample-ms 2 --window 2 ";
  ProgramResult result = NetBench(Plugin() + quick);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(Says(result, "# mixed: a ping-pong next to a stream of 4M messages")) << result.output;
  EXPECT_TRUE(Says(result, "     16K ")) << result.output;
  result = NetBench("--csv " + quick);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(Says(result, "\nmixed,8,raw,1,")) << result.output;
  EXPECT_FALSE(Says(result, ",plugin,")) << result.output;
  result = NetBench(Plugin() + "--json -b 4 " + quick);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(Says(result, "{\"bytes\": 8, \"implementation\": \"plugin\", \"samples\": 1,")) << result.output;
}

TEST(NetBench, EmptyMessagesAreMessages) {
  const ProgramResult result = NetBench(Plugin() + "--raw --check --phase any --samples 1 --sample-ms 2 -b 0");
  EXPECT_EQ(result.code, 0) << result.output;
}

// The plugin that ships: the loopback one reports no events.
TEST(NetBench, ProfileCountsEvents) {
  const std::string plugin = "--plugin " + Runfile("net_socket/libnccl-net-tcpx.so") + " ";
  const ProgramResult result = NetBench(plugin + kQuick + "--profile --mode latency -n 100", "NCCL_SOCKET_IFNAME=lo");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(Says(result, "a profiler counts events")) << result.output;
  EXPECT_TRUE(Says(result, " events started, ")) << result.output;
  EXPECT_FALSE(Says(result, "profiler: 0 events started")) << result.output;
}

TEST(NetBench, CsvAndJsonHoldResults) {
  const ProgramResult csv = NetBench(Plugin() + kQuick + "--csv --mode latency");
  EXPECT_EQ(csv.code, 0);
  EXPECT_TRUE(Says(csv, "\nlatency,1024,1,8,plugin,unchecked,1,us,")) << csv.output;
  const ProgramResult json = NetBench(Plugin() + kQuick + "--json --mode latency");
  EXPECT_EQ(json.code, 0);
  EXPECT_TRUE(Says(json, "{\"mode\": \"latency\", \"bytes\": 1024, \"connections\": 1,")) << json.output;
}

TEST(NetBench, ASecondPluginIsComparedWithTheFirst) {
  const std::string real = Runfile("net_socket/libnccl-net-tcpx.so");
  const std::string page = testing::TempDir() + "/report.html";
  const ProgramResult result =
      NetBench(Plugin() + kQuick + "--vs " + real + " --mode latency,bidir --conns 2 --check --report " + page,
               "NCCL_SOCKET_IFNAME=lo");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(Says(result, "loopback, v12, device 0 of 1")) << result.output;
  EXPECT_TRUE(Says(result, real + ": tcpx, v12, device 0 of 1: lo")) << result.output;
  EXPECT_TRUE(Says(result, "# latency, vs: the second plugin, us")) << result.output;
  EXPECT_TRUE(Says(result, "# bidir, vs: the second plugin, GB/s")) << result.output;
  EXPECT_EQ(RunCommand("grep -q '\"implementation\": \"vs\"' " + page).code, 0);
}

TEST(NetBench, TheTableNamesTheTrafficClass) {
  const ProgramResult result = NetBench(Plugin() + kQuick + "--mode latency --traffic-class 184");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(Says(result, "traffic class")) << result.output;
}

TEST(NetBench, WrongUsageIsTwo) {
  for (const char* arguments : {"", "--bogus", "--raw --mode nothing", "--plugin"}) {
    const ProgramResult result = NetBench(arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_TRUE(Says(result, "net_bench: ")) << arguments;
  }
}

TEST(NetBench, APluginThatIsNotThereIsOne) {
  const ProgramResult result = NetBench("--plugin /nonexistent/libnccl-net-none.so");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(Says(result, "/nonexistent/libnccl-net-none.so")) << result.output;
}

TEST(NetBench, AMissingVersionIsOne) {
  const ProgramResult result = NetBench(Plugin() + "--api v9");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(Says(result, "ncclNetPlugin_v9")) << result.output;
}

// How long net_bench waits before it says where it hangs. Only faults that hang wait so long; a busy machine must not.
constexpr int kHangSeconds = 4;
constexpr int kPatienceSeconds = 60;

struct Fault {
  const char* fault;
  const char* says;
  int timeout_seconds = kPatienceSeconds;
};

class NetBenchFaults : public testing::TestWithParam<Fault> {};

TEST_P(NetBenchFaults, EndWithOneAndTheReason) {
  const Fault& fault = GetParam();
  const ProgramResult result = NetBench(Plugin() + "--phase any --samples 1 --check -b 1K --mode latency --timeout " +
                                            std::to_string(fault.timeout_seconds),
                                        std::string("LOOPBACK_FAULT=") + fault.fault);
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_TRUE(Says(result, fault.says)) << result.output;
}

std::string FaultName(const testing::TestParamInfo<Fault>& row) {
  const std::string name = row.param.fault;
  return name.substr(0, name.find(':'));
}

INSTANTIATE_TEST_SUITE_P(All, NetBenchFaults,
                         testing::Values(Fault{"flip:50", "byte 512 of 1024 is "},
                                         Fault{"skip:5", "byte 1023 of 1024 is "},
                                         Fault{"overrun:9", "guard byte 0 after the receive buffer"},
                                         Fault{"underrun:9", "guard byte 1 before the receive buffer"},
                                         Fault{"size:3", "the plugin reports 1023 bytes, 1024 were sent"},
                                         Fault{"error:7", "test returned ncclSystemError (2)"},
                                         Fault{"hang:12", "made no progress for 4 s, in: ", kHangSeconds},
                                         Fault{"block:12", "made no progress for 4 s, in: ", kHangSeconds},
                                         Fault{"crash:20", "was killed by signal 9"},
                                         Fault{"init", "init returned ncclSystemError (2)"},
                                         Fault{"connect", "in: connect and accept, connection 0", kHangSeconds}),
                         FaultName);

}  // namespace
}  // namespace bench
}  // namespace tcpx
