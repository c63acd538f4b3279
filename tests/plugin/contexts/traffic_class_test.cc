// Traffic classes through the real shared library: which octet each communicator's lanes carry, at both ends.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "nccl/net_tables.h"
#include "tests/plugin/contexts/contexts_fixture.h"

namespace tcpx {
namespace {

constexpr int kUnset = NCCL_NET_TRAFFIC_CLASS_UNDEF;

class TrafficClassTest : public ContextsTest {
 protected:
  // Connects and looks at every socket of the new connection: lanes x 2 ends.
  void ExpectMarked(void* dialling, void* listening, int lanes, int traffic_class, int priority) {
    const std::vector<LaneEnd> before = ConnectedSockets();
    const Ends pair = Connect(dialling, listening);
    const std::vector<LaneEnd> ends = NewOnes(ConnectedSockets(), before);
    EXPECT_EQ(static_cast<size_t>(2 * lanes), ends.size());
    for (const LaneEnd& end : ends) {
      EXPECT_EQ(traffic_class, end.traffic_class) << end.local << " to " << end.peer;
      EXPECT_EQ(priority, end.priority) << end.local << " to " << end.peer;
    }
    Close(pair);
  }

  // What one connection bears whose communicator asks for `asked`, in a plugin with `environment`.
  void ExpectClass(int version, int asked, const std::map<std::string, std::string>& environment, int traffic_class) {
    SCOPED_TRACE(::testing::Message() << "v" << version << " asks for " << asked);
    Mode settings;
    settings.version = version;
    settings.environment = environment;
    ASSERT_NO_FATAL_FAILURE(Open(settings));
    void* context = NewContext(7, asked);
    ExpectMarked(context, context, 1, traffic_class, traffic_class / 32);
    if (net().has_finalize()) {
      EXPECT_EQ(ncclSuccess, net().Finalize(context));
    }
  }
};

TEST_F(TrafficClassTest, EachCommunicatorOfAProcessHasItsOwn) {
  for (int family : {AF_INET, AF_INET6}) {
    if (family == AF_INET6 && !InOwnNetwork()) GTEST_SKIP() << "no network namespace: IPv6 not looked at";
    Mode settings;
    settings.lanes = 4;
    settings.family = family;
    ASSERT_NO_FATAL_FAILURE(Open(settings));
    void* high = NewContext(1, 184);
    void* low = NewContext(2, 32);
    // The class is the dialling side's: the sender's, whose data it concerns.
    for (int round = 0; round < 2; ++round) {
      ExpectMarked(high, plugin_->context(), 4, 184, 5);
      ExpectMarked(low, high, 4, 32, 1);
      ExpectMarked(plugin_->context(), low, 4, 0, 0);
    }
    EXPECT_EQ(ncclSuccess, net().Finalize(high));
    EXPECT_EQ(ncclSuccess, net().Finalize(low));
  }
}

TEST_F(TrafficClassTest, TheBitsOfEcnAreTheKernels) {
  for (int asked : {185, 186, 187}) ExpectClass(12, asked, {}, 184);
  ExpectClass(10, 187, {}, 184);
  ExpectClass(12, 255, {}, 252);
}

TEST_F(TrafficClassTest, TheDefaultServesWhereTheApplicationSetNone) {
  for (int version = 6; version <= 12; ++version) {
    for (int unset : {kUnset, INT_MIN}) {
      ExpectClass(version, unset, {{"TCPX_TRAFFIC_CLASS", "104"}}, 104);
      ExpectClass(version, unset, {}, 0);
    }
    ExpectClass(version, 184, {{"TCPX_TRAFFIC_CLASS", "104"}}, version >= 10 ? 184 : 104);
    ExpectClass(version, 0, {{"TCPX_TRAFFIC_CLASS", "104"}}, version >= 10 ? 0 : 104);
  }
}

TEST_F(TrafficClassTest, AMapGivesIdsADscp) {
  const std::map<std::string, std::string> map = {{"TCPX_TRAFFIC_CLASS_MAP", "0:cs1,1:af21,2:46"}};
  for (int version : {10, 11, 12}) {
    ExpectClass(version, 0, map, 8 << 2);
    ExpectClass(version, 1, map, 18 << 2);
    ExpectClass(version, 2, map, 46 << 2);
    ExpectClass(version, 104, map, 104);
    ExpectClass(version, kUnset, map, 0);
  }
  ExpectClass(9, kUnset, {{"TCPX_TRAFFIC_CLASS_MAP", "3:af41"}, {"TCPX_TRAFFIC_CLASS", "3"}}, 34 << 2);
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
}

TEST_F(TrafficClassTest, ABadMapIsAWarningAndCountsAsNone) {
  ExpectClass(12, 1, {{"TCPX_TRAFFIC_CLASS_MAP", "1:af44"}}, 0);
  EXPECT_EQ(1, LinesWith(NCCL_LOG_WARN, "TCPX_TRAFFIC_CLASS_MAP is \"1:af44\"")) << LogText();
  ExpectClass(12, 184, {{"TCPX_TRAFFIC_CLASS", "256"}}, 184);
  EXPECT_EQ(1, LinesWith(NCCL_LOG_WARN, "TCPX_TRAFFIC_CLASS is \"256\"")) << LogText();
}

TEST_F(TrafficClassTest, OutOfRangeIsInvalidUsageOfInit) {
  for (int version : {11, 12}) {
    Mode settings;
    settings.version = version;
    ASSERT_NO_FATAL_FAILURE(Open(settings));
    for (int asked : {-2, 256, 1000000, INT_MAX}) {
      ClearLog();
      void* context = &settings;
      EXPECT_EQ(ncclInvalidUsage, net().Init(&context, 7, asked, &RecordLog, nullptr)) << asked;
      EXPECT_EQ(nullptr, context);
      EXPECT_EQ(1, LinesWith(NCCL_LOG_WARN, "0 to 255")) << LogText();
    }
    ExpectMarked(plugin_->context(), plugin_->context(), 1, 0, 0);  // The others don't mind.
  }
}

TEST_F(TrafficClassTest, OutOfRangeIsInvalidUsageOfConnectInV10) {
  Mode settings;
  settings.version = 10;
  ASSERT_NO_FATAL_FAILURE(Open(settings));
  for (int asked : {-2, 256, INT_MAX}) {
    ClearLog();
    NewContext(7, asked);
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    auto listen = plugin_->Listen(handle);
    ASSERT_TRUE(listen.ok()) << listen.status();
    void* comm = &settings;
    EXPECT_EQ(ncclInvalidUsage, net().Connect(nullptr, 0, handle, &comm)) << asked;
    EXPECT_EQ(nullptr, comm);
    EXPECT_EQ(1, LinesWith(NCCL_LOG_WARN, "0 to 255")) << LogText();
    EXPECT_TRUE(plugin_->CloseListen(*listen).ok());
  }
  NewContext(7, 184);
  ExpectMarked(nullptr, nullptr, 1, 184, 5);
}

TEST_F(TrafficClassTest, ConnectOfV10WithoutAConfigTakesTheDefault) {
  Mode settings;
  settings.version = 10;
  settings.environment = {{"TCPX_TRAFFIC_CLASS", "104"}};
  ASSERT_NO_FATAL_FAILURE(Open(settings));
  void* library = dlopen(kPluginPath, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(nullptr, library);
  const auto* table = static_cast<const ncclNet_v10_t*>(dlsym(library, "ncclNetPlugin_v10"));
  ASSERT_NE(nullptr, table);
  char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
  void* listen = nullptr;
  ASSERT_EQ(ncclSuccess, table->listen(0, handle, &listen));
  Ends pair;
  Deadline deadline;
  while (pair.send == nullptr || pair.receive == nullptr) {
    if (pair.send == nullptr) {
      ASSERT_EQ(ncclSuccess, table->connect(0, nullptr, handle, &pair.send, nullptr));
    }
    if (pair.receive == nullptr) {
      ASSERT_EQ(ncclSuccess, table->accept(listen, &pair.receive, nullptr));
    }
    ASSERT_TRUE(deadline.Yield()) << LogText();
  }
  for (const LaneEnd& end : ConnectedSockets()) EXPECT_EQ(104, end.traffic_class);
  EXPECT_EQ(2u, ConnectedSockets().size());
  EXPECT_EQ(ncclSuccess, table->closeListen(listen));
  Close(pair);
  dlclose(library);
}

// The calling thread without the rights that SO_PRIORITY 7 needs, and threads that it starts meanwhile.
class WithoutRights {
 public:
  WithoutRights() {
    syscall(SYS_capget, &header_, before_);
    __user_cap_data_struct fewer[2] = {before_[0], before_[1]};
    fewer[0].effective &= ~(1u << CAP_NET_ADMIN | 1u << CAP_NET_RAW);
    syscall(SYS_capset, &header_, fewer);
  }
  ~WithoutRights() { syscall(SYS_capset, &header_, before_); }

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
};

TEST_F(TrafficClassTest, ARefusedPriorityIsSaidOnceAndTheDscpStays) {
  Mode settings;
  settings.lanes = 4;
  const WithoutRights without_rights;
  ASSERT_NO_FATAL_FAILURE(Open(settings));
  void* high = NewContext(1, 224);
  for (int round = 0; round < 2; ++round) {
    const std::vector<LaneEnd> before = ConnectedSockets();
    const Ends pair = Connect(high, high);
    const std::vector<LaneEnd> ends = NewOnes(ConnectedSockets(), before);
    EXPECT_EQ(8u, ends.size());
    for (const LaneEnd& end : ends) {
      EXPECT_EQ(224, end.traffic_class);
      EXPECT_NE(7, end.priority) << "this test did not give up its rights";
    }
    Close(pair);
  }
  EXPECT_EQ(1, LinesWith(NCCL_LOG_INFO, "SO_PRIORITY")) << LogText();
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
  EXPECT_EQ(ncclSuccess, net().Finalize(high));
}

TEST_F(TrafficClassTest, EveryConnectionNamesItsDscpInTheLog) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  void* high = NewContext(0xab, 184);
  ExpectMarked(high, plugin_->context(), 1, 184, 5);
  EXPECT_EQ(2, LinesWith(NCCL_LOG_INFO, "dscp 46 (ef)")) << LogText();
  ExpectMarked(plugin_->context(), high, 1, 0, 0);
  EXPECT_EQ(2, LinesWith(NCCL_LOG_INFO, "dscp ")) << LogText();
  EXPECT_EQ(ncclSuccess, net().Finalize(high));
}

}  // namespace
}  // namespace tcpx
