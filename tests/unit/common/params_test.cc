#include "common/params.h"

#include <stdlib.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

using Environment = std::map<std::string, std::string>;

struct Loaded {
  Options options;
  std::vector<std::string> warnings;
};

Loaded Load(const Environment& environment) {
  Loaded loaded;
  const auto getenv_fn = [&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  loaded.options = LoadOptions(getenv_fn, &loaded.warnings);
  return loaded;
}

// Every field as text, so that two Options can be compared and printed.
std::vector<std::string> Fields(const Options& options) {
  struct Print {
    std::string operator()(int value) const { return std::to_string(value); }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(bool value) const { return std::to_string(value); }
    std::string operator()(EngineChoice value) const { return std::to_string(static_cast<int>(value)); }
    std::string operator()(Switch value) const { return std::to_string(static_cast<int>(value)); }
    std::string operator()(PortRange value) const {
      return std::to_string(value.low) + "-" + std::to_string(value.high);
    }
    std::string operator()(const AskedClass& value) const {
      return std::to_string(value.value) + (value.named ? " by name" : "");
    }
    std::string operator()(const std::string& value) const { return value; }
  };
  std::vector<std::string> fields;
  for (const Parameter& parameter : Parameters()) {
    const std::string text = std::visit([&](auto field) { return Print()(options.*field); }, parameter.field);
    fields.push_back(std::string(parameter.name) + "=" + text);
  }
  return fields;
}

TEST(ParamsTest, AnEmptyEnvironmentGivesTheDefaults) {
  Loaded loaded = Load({});
  EXPECT_EQ(Fields(loaded.options), Fields(Options()));
  EXPECT_TRUE(loaded.warnings.empty());
  Environment empty;
  for (const Parameter& parameter : Parameters()) empty[parameter.name] = "";
  loaded = Load(empty);
  EXPECT_EQ(Fields(loaded.options), Fields(Options()));
  EXPECT_TRUE(loaded.warnings.empty());
}

TEST(ParamsTest, DefaultsAreThese) {
  const Options options;
  EXPECT_EQ(options.engine, EngineChoice::kAuto);
  EXPECT_EQ(options.threads, -1);
  EXPECT_EQ(options.lanes, 0);
  EXPECT_EQ(options.express_bytes, 65536);
  EXPECT_EQ(options.chunk_bytes, 524288);
  EXPECT_EQ(options.chunk_bytes_min, 65536);
  EXPECT_EQ(options.linger_ns, 5000000000);
  EXPECT_EQ(options.hello_timeout_ns, 10000000000);
  EXPECT_EQ(options.retry_count, 34);
  EXPECT_EQ(options.retry_sleep_ns, 100000000);
  EXPECT_EQ(options.peer_timeout_ns, 30000000000);
  EXPECT_EQ(options.stall_warn_ns, 10000000000);
  EXPECT_EQ(options.sndbuf, -1);
  EXPECT_EQ(options.rcvbuf, -1);
  EXPECT_EQ(options.traffic_class, AskedClass());
  EXPECT_TRUE(options.port_range.any());
}

struct ValueCase {
  const char* name;
  const char* text;
  std::function<bool(const Options&)> holds;  // true exactly when the field has the value of `text`
};

TEST(ParamsTest, ReadsValues) {
  const ValueCase cases[] = {
      {"TCPX_ENGINE", "io_uring", [](const Options& o) { return o.engine == EngineChoice::kIoUring; }},
      {"TCPX_ENGINE", "epoll", [](const Options& o) { return o.engine == EngineChoice::kEpoll; }},
      {"TCPX_ENGINE", "auto", [](const Options& o) { return o.engine == EngineChoice::kAuto; }},
      {"TCPX_THREADS", "0", [](const Options& o) { return o.threads == 0; }},
      {"TCPX_THREADS", "64", [](const Options& o) { return o.threads == 64; }},
      {"TCPX_THREADS", "auto", [](const Options& o) { return o.threads == -1; }},
      {"TCPX_THREADS", "-1", [](const Options& o) { return o.threads == -1; }},
      {"TCPX_CPUS", "0-3,7", [](const Options& o) { return o.cpus == "0-3,7"; }},
      {"TCPX_LANES", "1", [](const Options& o) { return o.lanes == 1; }},
      {"TCPX_LANES", "64", [](const Options& o) { return o.lanes == 64; }},
      {"TCPX_LANES", "0", [](const Options& o) { return o.lanes == 0; }},
      {"TCPX_EXPRESS_BYTES", "0", [](const Options& o) { return o.express_bytes == 0; }},
      {"TCPX_EXPRESS_BYTES", "16k", [](const Options& o) { return o.express_bytes == 16384; }},
      {"TCPX_EXPRESS_BYTES", "1M", [](const Options& o) { return o.express_bytes == 1048576; }},
      {"TCPX_EXPRESS_BYTES", "1MB", [](const Options& o) { return o.express_bytes == 1048576; }},
      {"TCPX_EXPRESS_BYTES", "32KiB", [](const Options& o) { return o.express_bytes == 32768; }},
      {"TCPX_EXPRESS_BYTES", "32kib", [](const Options& o) { return o.express_bytes == 32768; }},
      {"TCPX_CHUNK_BYTES", "1gb", [](const Options& o) { return o.chunk_bytes == 1 << 30; }},
      {"TCPX_EXPRESS_BYTES", "0x8000", [](const Options& o) { return o.express_bytes == 32768; }},
      {"TCPX_CHUNK_BYTES", "1G", [](const Options& o) { return o.chunk_bytes == 1 << 30; }},
      {"TCPX_CHUNK_BYTES", "65536", [](const Options& o) { return o.chunk_bytes == 65536; }},
      {"TCPX_CONGESTION", "dctcp", [](const Options& o) { return o.congestion == "dctcp"; }},
      {"TCPX_PACING_MBPS", "25000", [](const Options& o) { return o.pacing_mbps == 25000; }},
      {"NCCL_SOCKET_SNDBUF", "4194304", [](const Options& o) { return o.sndbuf == 4 << 20; }},
      {"NCCL_SOCKET_RCVBUF", "4M", [](const Options& o) { return o.rcvbuf == 4 << 20; }},
      {"NCCL_SOCKET_RCVBUF", "-1", [](const Options& o) { return o.rcvbuf == -1; }},
      {"TCPX_PORT_RANGE", "40000-40100",
       [](const Options& o) {
         return o.port_range == PortRange{40000, 40100};
       }},
      {"TCPX_PORT_RANGE", "7-7",
       [](const Options& o) {
         return o.port_range == PortRange{7, 7};
       }},
      {"TCPX_LINGER", "0", [](const Options& o) { return o.linger_ns == 0; }},
      {"TCPX_LINGER", "0.25", [](const Options& o) { return o.linger_ns == 250 * kMillisecond; }},
      {"TCPX_LINGER", "600", [](const Options& o) { return o.linger_ns == 600 * kSecond; }},
      {"TCPX_HELLO_TIMEOUT", "2", [](const Options& o) { return o.hello_timeout_ns == 2 * kSecond; }},
      {"NCCL_SOCKET_RETRY_CNT", "7", [](const Options& o) { return o.retry_count == 7; }},
      {"NCCL_SOCKET_RETRY_SLEEP_MSEC", "5", [](const Options& o) { return o.retry_sleep_ns == 5 * kMillisecond; }},
      {"TCPX_STEER", "no", [](const Options& o) { return o.steer == Switch::kOff; }},
      {"TCPX_STEER", "auto", [](const Options& o) { return o.steer == Switch::kAuto; }},
      {"TCPX_TEST_SHUFFLE_LANES", "1", [](const Options& o) { return o.shuffle_lanes; }},
      {"TCPX_TEST_GPU_SLOT_BYTES", "64K", [](const Options& o) { return o.gpu_slot_bytes == 65536; }},
      {"TCPX_TRAFFIC_CLASS", "0x68",
       [](const Options& o) {
         return o.traffic_class == AskedClass{0x68, false};
       }},
      {"TCPX_TRAFFIC_CLASS", "0",
       [](const Options& o) {
         return o.traffic_class == AskedClass{0, false};
       }},
      {"TCPX_TRAFFIC_CLASS", "ef",
       [](const Options& o) {
         return o.traffic_class == AskedClass{46 << 2, true};
       }},
      {"TCPX_TRAFFIC_CLASS", "AF21",
       [](const Options& o) {
         return o.traffic_class == AskedClass{18 << 2, true};
       }},
      {"TCPX_TRAFFIC_CLASS", "unset", [](const Options& o) { return o.traffic_class == AskedClass(); }},
      {"TCPX_TRAFFIC_CLASS_MAP", "0:cs1,2:46", [](const Options& o) { return o.traffic_class_map == "0:cs1,2:46"; }},
      {"NCCL_SOCKET_IFNAME", "^docker,lo", [](const Options& o) { return o.ifname == "^docker,lo"; }},
      {"NCCL_SOCKET_FAMILY", "AF_INET6", [](const Options& o) { return o.family == "AF_INET6"; }},
      {"NCCL_COMM_ID", "10.0.0.1:1", [](const Options& o) { return o.comm_id == "10.0.0.1:1"; }},
      {"NCCL_LL_BUFFSIZE", "1048576", [](const Options& o) { return o.ll_buffer_bytes == 1 << 20; }},
      {"NCCL_SOCKET_INLINE", "128", [](const Options& o) { return o.socket_inline == 128; }},
  };
  for (const ValueCase& one : cases) {
    const Loaded loaded = Load({{one.name, one.text}});
    EXPECT_TRUE(one.holds(loaded.options)) << one.name << "=" << one.text;
    EXPECT_TRUE(loaded.warnings.empty()) << loaded.warnings[0];
  }
}

struct BadCase {
  const char* name;
  const char* text;
  const char* allowed;   // part of the warning
  const char* fallback;  // part of the warning
};

TEST(ParamsTest, ABadValueKeepsTheDefaultAndSaysSo) {
  const BadCase cases[] = {
      {"TCPX_ENGINE", "iouring", "auto, io_uring or epoll", "auto"},
      {"TCPX_ENGINE", "EPOLL", "auto, io_uring or epoll", "auto"},
      {"TCPX_THREADS", "65", "auto (-1) or 0 to 64", "auto"},
      {"TCPX_THREADS", "-2", "auto (-1) or 0 to 64", "auto"},
      {"TCPX_THREADS", "2K", "0 to 64", "auto"},
      {"TCPX_THREADS", "2 ", "0 to 64", "auto"},
      {"TCPX_THREADS", " 2", "0 to 64", "auto"},
      {"TCPX_THREADS", "4294967298", "0 to 64", "auto"},
      {"TCPX_CPUS", "3-1", "a list of CPUs like 0-3,7", "empty"},
      {"TCPX_LANES", "65", "1 to 64", "auto"},
      {"TCPX_LANES", "-1", "1 to 64", "auto"},
      {"NCCL_SOCKET_NTHREADS", "99999999999999999999", "unset (-2) or 0 to 16", "unset"},
      {"NCCL_SOCKET_NTHREADS", "-1", "unset (-2) or 0 to 16", "unset"},
      {"TCPX_EXPRESS_BYTES", "1025K", "0 to 1M", "64K"},
      {"TCPX_EXPRESS_BYTES", "64KX", "not a size (write 64K or 1M); allowed: 0 to 1M", "64K"},
      {"TCPX_EXPRESS_BYTES", "64KiBs", "not a size", "64K"},
      {"TCPX_EXPRESS_BYTES", "64iB", "not a size", "64K"},
      {"TCPX_EXPRESS_BYTES", "64B", "not a size", "64K"},
      {"TCPX_EXPRESS_BYTES", "1.5M", "not a size", "64K"},
      {"TCPX_EXPRESS_BYTES", "64 K", "not a size", "64K"},
      {"TCPX_EXPRESS_BYTES", "-1", "which is not 0 to 1M", "64K"},
      {"TCPX_EXPRESS_BYTES", "K", "not a size", "64K"},
      {"TCPX_CHUNK_BYTES", "65535", "64K to 1G", "512K"},
      {"TCPX_CHUNK_BYTES", "99999999999999999999G", "64K to 1G", "512K"},
      {"TCPX_CHUNK_BYTES", "9223372036854775807G", "64K to 1G", "512K"},
      {"NCCL_SOCKET_SNDBUF", "0", "system (-1) or 1 to", "system"},
      {"NCCL_SOCKET_SNDBUF", "4294967296", "system (-1) or 1 to", "system"},
      {"TCPX_PORT_RANGE", "40000", "LOW-HIGH", "empty"},
      {"TCPX_PORT_RANGE", "40100-40000", "LOW-HIGH", "empty"},
      {"TCPX_PORT_RANGE", "0-10", "LOW-HIGH", "empty"},
      {"TCPX_PORT_RANGE", "1-65536", "LOW-HIGH", "empty"},
      {"TCPX_LINGER", "601", "0 to 600", "5"},
      {"TCPX_LINGER", "-1", "0 to 600", "5"},
      {"TCPX_LINGER", "5 ", "0 to 600", "5"},
      {"TCPX_LINGER", "5s", "0 to 600", "5"},
      {"TCPX_LINGER", "nan", "0 to 600", "5"},
      {"TCPX_LINGER", "1e300", "0 to 600", "5"},
      {"TCPX_HELLO_TIMEOUT", "0", "1 to 600", "10"},
      {"TCPX_STALL_WARN", "3601", "off (0), or more, up to 3600", "10"},
      {"TCPX_MAX_RECVS", "9", "auto (0) or 1 to 8", "auto"},
      {"TCPX_SPREAD_ERRORS", "yess", "on (1) or off (0)", "on"},
      {"TCPX_SPREAD_ERRORS", "2", "on (1) or off (0)", "on"},
      {"TCPX_SPREAD_ERRORS", "auto", "on (1) or off (0)", "on"},
      {"TCPX_STEER", "on", "auto or off (0)", "auto"},
      {"TCPX_STEER", "1", "auto or off (0)", "auto"},
      {"TCPX_GPU_DIRECT_STAGING", "2", "on (1) or off (0)", "off"},
      {"TCPX_ZEROCOPY", "2", "auto, on (1) or off (0)", "auto"},
      {"NCCL_NET_OPTIONAL_RECV_COMPLETION", "off", "0 to 1", "1"},
      {"TCPX_TRAFFIC_CLASS", "256", "unset (-1) or 0 to 255", "unset"},
      {"TCPX_TRAFFIC_CLASS", "eff", "the name of a DSCP", "unset"},
      {"TCPX_TRAFFIC_CLASS_MAP", "0:cs8", "a list like 0:cs1,1:af21,2:46", "empty"},
      {"TCPX_TRAFFIC_CLASS_MAP", "0:cs1,0:cs2", "each once", "empty"},
  };
  for (const BadCase& one : cases) {
    const Loaded loaded = Load({{one.name, one.text}});
    EXPECT_EQ(Fields(loaded.options), Fields(Options())) << one.name << "=" << one.text;
    ASSERT_EQ(loaded.warnings.size(), 1u) << one.name << "=" << one.text;
    for (const std::string& part : {std::string(one.name), std::string(one.text), std::string(one.allowed),
                                    "default, " + std::string(one.fallback)}) {
      EXPECT_TRUE(absl::StrContains(loaded.warnings[0], part)) << part << " in: " << loaded.warnings[0];
    }
  }
}

// Its default would be less than was meant.
TEST(ParamsTest, EncryptionHasNoDefaultToFallBackTo) {
  for (const char* text : {"y", "2", "1 ", "auto", ""}) {
    const Loaded loaded = Load({{"TCPX_ENCRYPT", text}});
    EXPECT_EQ(loaded.options.refused, std::string("TCPX_ENCRYPT is \"") + text + "\", which is not on (1) or off (0)");
    EXPECT_TRUE(loaded.warnings.empty());
  }
  for (const char* text : {"on", "0", "No"}) EXPECT_EQ(Load({{"TCPX_ENCRYPT", text}}).options.refused, "");
  EXPECT_EQ(Load({}).options.refused, "");
  EXPECT_EQ(Load({{"TCPX_HEAL", "y"}}).options.refused, "");
}

TEST(ParamsTest, WarningsMayBeUnwanted) {
  const auto bad = [](const char*) { return "\x01nonsense"; };
  const Options options = LoadOptions(bad, nullptr);
  EXPECT_EQ(options.threads, -1);
}

struct LanesCase {
  Environment environment;
  int want;
  bool warns;
};

TEST(ParamsTest, LanesAreTheProductUnlessSet) {
  const LanesCase cases[] = {
      {{{"NCCL_SOCKET_NTHREADS", "4"}}, 4, false},
      {{{"NCCL_NSOCKS_PERTHREAD", "8"}}, 8, false},
      {{{"NCCL_SOCKET_NTHREADS", "4"}, {"NCCL_NSOCKS_PERTHREAD", "8"}}, 32, false},
      {{{"NCCL_SOCKET_NTHREADS", "0"}}, 1, false},
      {{{"NCCL_NSOCKS_PERTHREAD", "0"}}, 1, false},
      {{{"NCCL_SOCKET_NTHREADS", "0"}, {"NCCL_NSOCKS_PERTHREAD", "8"}}, 1, false},
      {{{"NCCL_SOCKET_NTHREADS", "4"}, {"NCCL_NSOCKS_PERTHREAD", "0"}}, 1, false},
      {{{"NCCL_SOCKET_NTHREADS", "99999999999"}}, 16, true},
      {{{"NCCL_NSOCKS_PERTHREAD", "9223372036854775807"}}, 64, true},
      {{{"NCCL_SOCKET_NTHREADS", "-2"}, {"NCCL_NSOCKS_PERTHREAD", "-2"}}, 0, false},
      {{{"NCCL_SOCKET_NTHREADS", "16"}, {"NCCL_NSOCKS_PERTHREAD", "4"}}, 64, false},
      {{{"NCCL_SOCKET_NTHREADS", "16"}, {"NCCL_NSOCKS_PERTHREAD", "5"}}, 64, true},
      {{{"NCCL_SOCKET_NTHREADS", "17"}}, 16, true},
      {{{"NCCL_SOCKET_NTHREADS", "20"}, {"NCCL_NSOCKS_PERTHREAD", "2"}}, 32, true},
      {{{"NCCL_SOCKET_NTHREADS", "20"}, {"NCCL_NSOCKS_PERTHREAD", "100"}}, 64, true},
      {{{"NCCL_SOCKET_NTHREADS", "7"}, {"NCCL_NSOCKS_PERTHREAD", "10"}}, 63, true},
      {{{"NCCL_NSOCKS_PERTHREAD", "100"}}, 64, true},
      {{{"NCCL_SOCKET_NTHREADS", "4"}, {"TCPX_LANES", "2"}}, 2, false},
      {{{"NCCL_SOCKET_NTHREADS", "16"}, {"NCCL_NSOCKS_PERTHREAD", "5"}, {"TCPX_LANES", "2"}}, 2, false},
      {{{"NCCL_SOCKET_NTHREADS", "4"}, {"TCPX_LANES", "auto"}}, 0, false},
      {{{"NCCL_SOCKET_NTHREADS", "4"}, {"TCPX_LANES", "many"}}, 4, true},
  };
  for (const LanesCase& one : cases) {
    const Loaded loaded = Load(one.environment);
    EXPECT_EQ(loaded.options.lanes, one.want) << testing::PrintToString(one.environment);
    EXPECT_EQ(!loaded.warnings.empty(), one.warns) << testing::PrintToString(one.environment);
  }
}

struct ChunkCase {
  Environment environment;
  int64_t chunk;
  int64_t min;
  bool warns;
};

TEST(ParamsTest, TheSmallestChunkIsNeverAboveTheLargest) {
  const ChunkCase cases[] = {
      {{{"NCCL_SOCKET_MIN_TASKSIZE", "128K"}}, 512 << 10, 128 << 10, false},
      {{{"NCCL_SOCKET_MIN_TASKSIZE", "1M"}}, 1 << 20, 1 << 20, false},
      {{{"NCCL_SOCKET_MIN_TASKSIZE", "1M"}, {"TCPX_CHUNK_BYTES", "1M"}}, 1 << 20, 1 << 20, false},
      {{{"NCCL_SOCKET_MIN_TASKSIZE", "1M"}, {"TCPX_CHUNK_BYTES", "256K"}}, 512 << 10, 64 << 10, true},
      {{{"TCPX_CHUNK_BYTES", "64K"}}, 64 << 10, 64 << 10, false},
  };
  for (const ChunkCase& one : cases) {
    const Loaded loaded = Load(one.environment);
    EXPECT_EQ(loaded.options.chunk_bytes, one.chunk) << testing::PrintToString(one.environment);
    EXPECT_EQ(loaded.options.chunk_bytes_min, one.min) << testing::PrintToString(one.environment);
    EXPECT_EQ(!loaded.warnings.empty(), one.warns) << testing::PrintToString(one.environment);
  }
}

TEST(ParamsTest, WithoutAFunctionTheEnvironmentIsRead) {
  setenv("TCPX_LANES", "7", 1);
  EXPECT_EQ(LoadOptions(nullptr, nullptr).lanes, 7);
  unsetenv("TCPX_LANES");
  EXPECT_EQ(LoadOptions(nullptr, nullptr).lanes, 0);
}

// Each switch of ours takes the same words.
TEST(ParamsTest, SwitchesAreAllAlike) {
  for (const Parameter& parameter : Parameters()) {
    if (parameter.kind != ParameterKind::kFlag && parameter.kind != ParameterKind::kSwitch) continue;
    const std::vector<std::string> on = Fields(Load({{parameter.name, "on"}}).options);
    const std::vector<std::string> off = Fields(Load({{parameter.name, "off"}}).options);
    EXPECT_NE(on, off) << parameter.name;
    for (const char* word : {"1", "ON", "On", "true", "True", "yes", "YES"}) {
      EXPECT_EQ(on, Fields(Load({{parameter.name, word}}).options)) << word;
      EXPECT_TRUE(Load({{parameter.name, word}}).warnings.empty()) << word;
    }
    for (const char* word : {"0", "OFF", "Off", "false", "FALSE", "no", "No"}) {
      EXPECT_EQ(off, Fields(Load({{parameter.name, word}}).options)) << word;
      EXPECT_TRUE(Load({{parameter.name, word}}).warnings.empty()) << word;
    }
  }
}

// As NCCL lowers them, and says so.
TEST(ParamsTest, TooManySocketsAreLoweredWithAWarningEach) {
  const Loaded loaded = Load({{"NCCL_SOCKET_NTHREADS", "20"}, {"NCCL_NSOCKS_PERTHREAD", "100"}});
  EXPECT_EQ(loaded.options.socket_nthreads, 16);
  EXPECT_EQ(loaded.options.nsocks_perthread, 4);
  ASSERT_EQ(loaded.warnings.size(), 2u);
  EXPECT_TRUE(absl::StrContains(loaded.warnings[0], "NCCL_SOCKET_NTHREADS is 20")) << loaded.warnings[0];
  EXPECT_TRUE(absl::StrContains(loaded.warnings[0], "using 16")) << loaded.warnings[0];
  EXPECT_TRUE(absl::StrContains(loaded.warnings[1], "NCCL_NSOCKS_PERTHREAD is 100")) << loaded.warnings[1];
  EXPECT_TRUE(absl::StrContains(loaded.warnings[1], "using 4")) << loaded.warnings[1];
}

TEST(ParamsTest, ALoweredValueIsSaidAsItWasWritten) {
  const Loaded loaded = Load({{"NCCL_SOCKET_NTHREADS", "99999999999"}});
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(loaded.warnings[0], "is 99999999999, which")) << loaded.warnings[0];
}

TEST(ParamsTest, WhatIsInEffectIsWhatWasValidAndOurs) {
  const Environment environment = {
      {"TCPX_LANES", "7"}, {"TCPX_THREADS", "many"}, {"NCCL_SOCKET_IFNAME", "eth"}, {"TCPX_CPUS", ""}};
  const auto getenv_fn = [&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  std::vector<std::string> ours;
  (void)LoadOptions(getenv_fn, nullptr, &ours);
  EXPECT_EQ(ours, std::vector<std::string>{"TCPX_LANES=7"});
}

}  // namespace
}  // namespace tcpx
