// What the tables do with init, finalize, devices and the two callbacks. A GotchaNN guards a known trap of NCCL's
// interface; traps that concern the transport are guarded by its own tests.
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nccl/profiler_tables.h"
#include "nccl/shims.h"
#include "tests/unit/nccl/every_table.h"
#include "tests/unit/nccl/fake_plugin.h"

namespace tcpx {
namespace {

struct LogLine {
  ncclDebugLogLevel level;
  unsigned long flags;
  std::string format;
  std::string text;
};
std::vector<LogLine>& Logged() {
  static std::vector<LogLine> lines;
  return lines;
}

void Log(ncclDebugLogLevel level, unsigned long flags, const char*, int, const char* format, ...) {
  char text[4096];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  Logged().push_back({level, flags, format, text});
}

struct Event {
  void** handle;
  int type;
  void* parent;
  int64_t plugin_id;
  ncclProfilerNetSockDescr_v1_t description;
};
Event& LastEvent() {
  static Event event;
  return event;
}

ncclResult_t Profile(void** handle, int type, void* parent, int64_t plugin_id, void* data) {
  LastEvent() = {handle, type, parent, plugin_id, *static_cast<ncclProfilerNetSockDescr_v1_t*>(data)};
  return ncclInternalError;
}

class ShimsInit : public testing::Test {
 protected:
  void SetUp() override { Logged().clear(); }
};

ncclResult_t Init(NetClient& net, void** ctx, int traffic_class = -1) {
  return net.Init(ctx, 77, traffic_class, &Log, &Profile);
}

TEST_F(ShimsInit, ContextLearnsWhatInitWasGiven) {
  ForEachClient([](NetClient& net) {
    void* ctx = nullptr;
    ASSERT_EQ(Init(net, &ctx, 96), ncclSuccess);
    const ContextOptions& options = Fake().context_options;
    EXPECT_EQ(options.api_version, net.version());
    EXPECT_EQ(options.comm_id, net.version() >= 11 ? 77u : 0u);
    EXPECT_EQ(options.traffic_class, net.version() >= 11 ? 96 : kNoTrafficClass);
    EXPECT_EQ(ctx, net.version() >= 11 ? Fake().contexts[0].get() : nullptr);
  });
}

template <int kNumber>
void NumberedLog(ncclDebugLogLevel level, unsigned long flags, const char*, int, const char* format, ...) {
  Logged().push_back({level, flags, format, std::to_string(kNumber)});
}

// Copies of NCCL in one process share the library.
TEST_F(ShimsInit, EachLoggerHasASinkOfItsOwn) {
  ForEachClient([](NetClient& net) {
    Logged().clear();
    std::vector<LogSink> sinks;
    for (ncclDebugLogger_t log : {&NumberedLog<1>, &NumberedLog<2>, &NumberedLog<1>}) {
      void* ctx = nullptr;
      ASSERT_EQ(net.Init(&ctx, 77, -1, log, nullptr), ncclSuccess);
      sinks.push_back(Fake().context_options.log);
    }
    EXPECT_NE(sinks[0], sinks[1]);
    EXPECT_EQ(sinks[0], sinks[2]);
    sinks[0](LogLevel::kInfo, 1, "file", 1, "text");
    sinks[1](LogLevel::kInfo, 1, "file", 1, "text");
    ASSERT_EQ(Logged().size(), 2u);
    EXPECT_EQ(Logged()[0].text, "1");
    EXPECT_EQ(Logged()[1].text, "2");
  });
}

TEST_F(ShimsInit, TrafficClassOfV10ComesWithConnect) {
  ForEachClient([](NetClient& net) {
    void* ctx = nullptr;
    ASSERT_EQ(Init(net, &ctx, 96), ncclSuccess);
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    void* comm = nullptr;
    ASSERT_EQ(net.Connect(ctx, 0, handle, &comm), ncclSuccess);
    EXPECT_EQ(Fake().connect_options.traffic_class, net.version() == 10 ? 96 : kNoTrafficClass);
  });
}

TEST_F(ShimsInit, UnsetTrafficClassIsUndefined) {
  ForEachClient([](NetClient& net) {
    for (const int unset : {-1, INT_MIN}) {
      void* ctx = nullptr;
      char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
      void* comm = nullptr;
      ASSERT_EQ(Init(net, &ctx, unset), ncclSuccess);
      ASSERT_EQ(net.Connect(ctx, 0, handle, &comm), ncclSuccess);
      EXPECT_EQ(Fake().context_options.traffic_class, kNoTrafficClass);
      EXPECT_EQ(Fake().connect_options.traffic_class, kNoTrafficClass);
    }
  });
}

TEST_F(ShimsInit, Gotcha04_ConfigCanBeNull) {
  ForEachTable([](const auto& table) {
    constexpr int kVersion = kVersionOf<decltype(table)>;
    if constexpr (kVersion >= 11) {
      void* ctx = nullptr;
      EXPECT_EQ(table.init(&ctx, 1, nullptr, &Log, nullptr), ncclSuccess);
      EXPECT_NE(ctx, nullptr);
      EXPECT_EQ(Fake().context_options.traffic_class, kNoTrafficClass);
    }
    if constexpr (kVersion == 10) {
      char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
      void* comm = nullptr;
      EXPECT_EQ(table.init(&Log, nullptr), ncclSuccess);
      EXPECT_EQ(table.connect(0, nullptr, handle, &comm, nullptr), ncclSuccess);
      EXPECT_EQ(comm, &Fake().send_comm);
      EXPECT_EQ(Fake().connect_options.traffic_class, kNoTrafficClass);
    }
  });
}

TEST_F(ShimsInit, Gotcha10_FinalizeOfNullSucceeds) {
  ForEachTable([](const auto& table) {
    if constexpr (kVersionOf<decltype(table)> >= 11) {
      Fake().status = absl::InternalError("must not be asked");
      EXPECT_EQ(table.finalize(nullptr), ncclSuccess);
      EXPECT_EQ(Fake().contexts_destroyed, 0);
    }
  });
}

TEST_F(ShimsInit, Gotcha10_SecondInitAfterFinalizeWorks) {
  ForEachClient([](NetClient& net) {
    for (int round = 0; round < 2; ++round) {
      void* ctx = nullptr;
      int count = -1;
      ASSERT_EQ(Init(net, &ctx), ncclSuccess);
      EXPECT_EQ(net.Devices(&count), ncclSuccess);
      EXPECT_EQ(count, 1);
      EXPECT_EQ(net.Finalize(ctx), ncclSuccess);
    }
    EXPECT_EQ(Fake().contexts.size(), net.has_finalize() ? 0u : 1u);
  });
}

TEST_F(ShimsInit, Gotcha10_TwoContextsAreFinalizedInEitherOrder) {
  ForEachClient([](NetClient& net) {
    if (!net.has_finalize()) return;
    for (const int first : {0, 1}) {
      void* ctx[2] = {};
      ASSERT_EQ(Init(net, &ctx[0]), ncclSuccess);
      ASSERT_EQ(Init(net, &ctx[1]), ncclSuccess);
      EXPECT_NE(ctx[0], ctx[1]);
      EXPECT_EQ(net.Finalize(ctx[first]), ncclSuccess);
      ASSERT_EQ(Fake().contexts.size(), 1u);
      EXPECT_EQ(Fake().contexts[0].get(), ctx[1 - first]);
      EXPECT_EQ(net.Finalize(ctx[1 - first]), ncclSuccess);
    }
  });
}

TEST_F(ShimsInit, Gotcha13_OldInitNeverFailsAndReportsNoDevices) {
  ForEachClient([](NetClient& net) {
    if (net.version() >= 11) return;
    Logged().clear();
    void* ctx = nullptr;
    Fake().status = absl::UnknownError("no socket for 100% sure");
    ASSERT_EQ(Init(net, &ctx), ncclSuccess);
    ASSERT_EQ(Logged().size(), 1u);
    EXPECT_EQ(Logged()[0].level, NCCL_LOG_WARN);
    EXPECT_EQ(Logged()[0].flags, ~0ul);
    EXPECT_NE(Logged()[0].text.find("no socket for 100% sure"), std::string::npos);

    Fake().status = absl::OkStatus();
    int count = -1;
    EXPECT_EQ(net.Devices(&count), ncclSuccess);
    EXPECT_EQ(count, 0);
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    void* comm = Stale();
    EXPECT_EQ(net.Listen(ctx, 0, handle, &comm), ncclInvalidArgument);
    EXPECT_EQ(comm, nullptr);

    ASSERT_EQ(Init(net, &ctx), ncclSuccess);
    EXPECT_EQ(net.Devices(&count), ncclSuccess);
    EXPECT_EQ(count, 1);
  });
}

TEST_F(ShimsInit, NewInitFailsWithTheReasonAndANullContext) {
  ForEachClient([](NetClient& net) {
    if (net.version() < 11) return;
    Logged().clear();
    void* ctx = Stale();
    Fake().status = absl::UnknownError("no socket");
    EXPECT_EQ(Init(net, &ctx), ncclSystemError);
    EXPECT_EQ(ctx, nullptr);
    ASSERT_EQ(Logged().size(), 1u);
    EXPECT_NE(Logged()[0].text.find("no socket"), std::string::npos);
  });
}

TEST_F(ShimsInit, DeviceCountIsZeroOnError) {
  ForEachClient([](NetClient& net) {
    InitPlain(net);
    Fake().status = absl::UnknownError("interfaces");
    int count = 55;
    EXPECT_EQ(net.Devices(&count), ncclSystemError);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(net.Devices(nullptr), ncclInvalidArgument);
  });
}

TEST_F(ShimsInit, Gotcha15_NameIsTheSameEverywhere) {
  ForEachClient([](NetClient& net) { EXPECT_STREQ(net.name(), "tcpx"); });
}

TEST_F(ShimsInit, Gotcha16_GoodInitLogsNothing) {
  ForEachClient([](NetClient& net) {
    void* ctx = nullptr;
    ASSERT_EQ(Init(net, &ctx), ncclSuccess);
    EXPECT_TRUE(Logged().empty());
  });
}

TEST_F(ShimsInit, Gotcha17_WarningsReachEverySubsystem) {
  ForEachClient([](NetClient& net) {
    void* ctx = nullptr;
    ASSERT_EQ(Init(net, &ctx), ncclSuccess);
    Logged().clear();
    const std::string text = std::string(895, 'x') + " %s%n";
    Fake().context_options.log(LogLevel::kWarn, NCCL_NET, "f.cc", 3, text.c_str());
    Fake().context_options.log(LogLevel::kInfo, NCCL_NET, "f.cc", 3, "info");
    ASSERT_EQ(Logged().size(), 2u);
    EXPECT_EQ(Logged()[0].level, NCCL_LOG_WARN);
    EXPECT_EQ(Logged()[0].flags, ~0ul);
    EXPECT_EQ(Logged()[0].format, "%s");
    EXPECT_EQ(Logged()[0].text, text);
    EXPECT_EQ(Logged()[1].level, NCCL_LOG_INFO);
    EXPECT_EQ(Logged()[1].flags, static_cast<unsigned long>(NCCL_NET));
  });
}

TEST_F(ShimsInit, AFailedInitIsAWarningWithThePrefixOfAllLines) {
  ForEachClient([](NetClient& net) {
    Logged().clear();
    Fake().status = absl::UnknownError("no luck");
    void* ctx = nullptr;
    (void)net.Init(&ctx, 1, -1, Log, nullptr);
    Fake().status = absl::OkStatus();
    ASSERT_EQ(Logged().size(), 1u);
    EXPECT_EQ(Logged()[0].level, NCCL_LOG_WARN);
    EXPECT_EQ(Logged()[0].text, "NET/tcpx: init failed: no luck");
  });
}

TEST_F(ShimsInit, NullCallbacksBecomeNullSinks) {
  ForEachClient([](NetClient& net) {
    InitPlain(net);
    EXPECT_EQ(Fake().context_options.log, nullptr);
    EXPECT_EQ(Fake().context_options.profiler, nullptr);
    Fake().status = absl::UnknownError("no logger to say it to");
    void* ctx = nullptr;
    EXPECT_EQ(net.Init(&ctx, 1, -1, nullptr, nullptr), net.version() >= 11 ? ncclSystemError : ncclSuccess);
  });
}

TEST_F(ShimsInit, Gotcha24_EventsReachTheProfilerFromV10) {
  ForEachClient([](NetClient& net) {
    void* ctx = nullptr;
    ASSERT_EQ(Init(net, &ctx), ncclSuccess);
    const ProfilerSink sink = Fake().context_options.profiler;
    ASSERT_EQ(sink != nullptr, net.version() >= 10);
    if (sink == nullptr) return;
    int parent = 0;
    void* handle = nullptr;
    for (const EventStep step : {EventStep::kStart, EventStep::kStop, EventStep::kUpdate}) {
      sink(&handle, step, &parent, {17, step == EventStep::kUpdate, 4096});
      const Event& got = LastEvent();
      EXPECT_EQ(got.handle, &handle);
      EXPECT_EQ(got.type, static_cast<int>(step));
      EXPECT_EQ(got.parent, &parent);
      EXPECT_EQ(got.plugin_id, 0x20001);
      EXPECT_EQ(got.description.type, ncclProfileSocket);
      EXPECT_EQ(got.description.sock.fd, 17);
      EXPECT_EQ(got.description.sock.op, step == EventStep::kUpdate ? 1 : 0);
      EXPECT_EQ(got.description.sock.length, 4096u);
    }
  });
}

template <class Attr>
void ExpectHintsAreTaken(ncclResult_t (*set)(void*, Attr*), void* ctx) {
  Attr hints = {{1, 2, 3, 4}, {5, 6, 7, NCCL_NET_ATTR_UNDEF}, 8, 9, 0xffffffff};
  EXPECT_EQ(set(ctx, &hints), ncclSuccess);
  EXPECT_EQ(set(ctx, nullptr), ncclInvalidArgument);
  EXPECT_EQ(set(nullptr, &hints), ncclInvalidArgument);
}

TEST_F(ShimsInit, SetNetAttrTakesEveryHint) {
  ForEachTable([](const auto& table) {
    if constexpr (kVersionOf<decltype(table)> >= 11) {
      void* ctx = nullptr;
      ASSERT_EQ(table.init(&ctx, 1, nullptr, nullptr, nullptr), ncclSuccess);
      ExpectHintsAreTaken(table.setNetAttr, ctx);
    }
  });
}

}  // namespace
}  // namespace tcpx
