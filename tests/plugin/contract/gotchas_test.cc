// The traps of NCCL's interface, through the real shared library. GotchaNN is the number that docs/api.md lists; what a
// table alone decides is tested in tests/unit/nccl, unloading and deregistration in tests/plugin/lifetime.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nccl/net_tables.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/plugin_test.h"

namespace tcpx {
namespace {

constexpr int kRequests = 32;  // NCCL_NET_MAX_REQUESTS

void* Stale() { return reinterpret_cast<void*>(0xdeadbeefdeadbeef); }

class GotchasTest : public PluginTest {
 protected:
  void Open(int version = 0) { PluginTest::Open({.version = version}); }
  void OpenPair() { PluginTest::OpenPair({}); }

  ncclResult_t Receive(void* data, size_t capacity, void** request) {
    int tag = 0;
    return net().Irecv(pair_.receive, 1, &data, &capacity, &tag, nullptr, nullptr, request);
  }
  ncclResult_t Send(const void* data, size_t bytes, void** request) {
    return net().Isend(pair_.send, const_cast<void*>(data), bytes, 0, nullptr, nullptr, request);
  }
  void MoveOne() {
    char out[] = "message", in[sizeof(out)] = {};
    void *send = Stale(), *receive = Stale();
    ASSERT_EQ(ncclSuccess, Receive(in, sizeof(in), &receive));
    ASSERT_EQ(ncclSuccess, Send(out, sizeof(out), &send));
    ASSERT_TRUE(WaitFor(&net(), send).ok());
    ASSERT_TRUE(WaitFor(&net(), receive).ok());
    EXPECT_STREQ(out, in);
  }
};

TEST_F(GotchasTest, Gotcha01_RequestIsNulledWhenThereIsNoRoom) {
  ASSERT_NO_FATAL_FAILURE(OpenPair());
  char in[1], out[1] = {};
  for (int i = 0; i <= kRequests; ++i) {
    void *receive = Stale(), *send = Stale();
    ASSERT_EQ(ncclSuccess, Receive(in, 1, &receive));
    EXPECT_EQ(i == kRequests, receive == nullptr) << i;
    // Sent or not, it is in use until it was tested.
    ASSERT_EQ(ncclSuccess, Send(out, 1, &send));
    EXPECT_EQ(i == kRequests, send == nullptr) << i;
    EXPECT_NE(receive, Stale());
    EXPECT_NE(send, Stale());
  }
}

TEST_F(GotchasTest, Gotcha03_PresetOfRequestIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(OpenPair());
  void* const preset = reinterpret_cast<void*>(uintptr_t{NCCL_NET_OPTIONAL_RECV_COMPLETION});
  char in[8], out[8] = "optiona";
  void *receive = preset, *send = nullptr;
  ASSERT_EQ(ncclSuccess, Receive(in, sizeof(in), &receive));
  ASSERT_NE(receive, preset);
  ASSERT_NE(receive, nullptr);
  ASSERT_EQ(ncclSuccess, Send(out, sizeof(out), &send));
  ASSERT_TRUE(WaitFor(&net(), send).ok());
  ASSERT_TRUE(WaitFor(&net(), receive).ok());
  EXPECT_STREQ(out, in);
}

// The out-of-band bootstrap and the GPU-direct probe pass neither config nor device handles nor sizes.
TEST_F(GotchasTest, Gotcha04_NullsOfTheBootstrapAreTaken) {
  ASSERT_NO_FATAL_FAILURE(Open(10));
  void* library = dlopen(kPluginPath, RTLD_NOW);
  const auto* table = static_cast<const ncclNet_v10_t*>(dlsym(library, "ncclNetPlugin_v10"));
  ASSERT_NE(table, nullptr);
  char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
  auto listen = plugin_->Listen(handle);
  ASSERT_TRUE(listen.ok()) << listen.status();
  Deadline deadline;
  while (pair_.send == nullptr || pair_.receive == nullptr) {
    if (pair_.send == nullptr) {
      ASSERT_EQ(ncclSuccess, table->connect(0, nullptr, handle, &pair_.send, nullptr));
    }
    if (pair_.receive == nullptr) {
      ASSERT_EQ(ncclSuccess, table->accept(*listen, &pair_.receive, nullptr));
    }
    ASSERT_TRUE(deadline.Yield());
  }
  ASSERT_NO_FATAL_FAILURE(MoveOne());
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  dlclose(library);
}

// One thread polls all connections: one that blocks in a call holds up the others.
TEST_F(GotchasTest, Gotcha06_SilentPeerHoldsUpNobody) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const FakeAcceptor silent;
  std::string nobody = silent.HandleBytes();
  char unused[NCCL_NET_HANDLE_MAXSIZE] = {};
  auto lonely = plugin_->Listen(unused);
  ASSERT_TRUE(lonely.ok()) << lonely.status();
  for (int i = 0; i < 10; ++i) {
    void *send = Stale(), *receive = Stale();
    ASSERT_EQ(ncclSuccess, net().Connect(plugin_->context(), 0, &nobody[0], &send));
    EXPECT_EQ(send, nullptr);
    ASSERT_EQ(ncclSuccess, net().Accept(*lonely, &receive));
    EXPECT_EQ(receive, nullptr);
    auto pair = plugin_->Connect();
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_TRUE(plugin_->Close(*pair).ok());
  }
}

TEST_F(GotchasTest, Gotcha07_SendsRunAheadAndEmptyOnesAreMessages) {
  ASSERT_NO_FATAL_FAILURE(OpenPair());
  constexpr size_t kSizes[] = {0, 5, 0, 70000, 0, 0, 1};
  const std::vector<char> out(70000, 's');
  std::vector<void*> sends;
  for (size_t bytes : kSizes) {
    void* request = nullptr;
    ASSERT_EQ(ncclSuccess, Send(bytes == 0 ? nullptr : out.data(), bytes, &request));
    ASSERT_NE(request, nullptr);
    sends.push_back(request);
  }
  for (size_t bytes : kSizes) {
    std::vector<char> in(70000, 'r');
    void* request = nullptr;
    int size = -1;
    ASSERT_EQ(ncclSuccess, Receive(in.data(), in.size(), &request));
    ASSERT_NE(request, nullptr);
    // The sender is tested too: on one thread nobody else moves its bytes.
    Deadline deadline;
    int done = 0;
    while (done == 0) {
      ASSERT_EQ(ncclSuccess, net().Test(request, &done, &size));
      int sent = 0;
      if (!sends.empty()) {
        ASSERT_EQ(ncclSuccess, net().Test(sends.front(), &sent, nullptr));
      }
      if (sent != 0) sends.erase(sends.begin());
      ASSERT_TRUE(deadline.Yield());
    }
    EXPECT_EQ(static_cast<int>(bytes), size);
  }
}

TEST_F(GotchasTest, Gotcha08_DeregAndCloseSucceedWithRequestsOutstanding) {
  ASSERT_NO_FATAL_FAILURE(OpenPair());
  std::vector<char> memory(4096);
  void *send_region = nullptr, *receive_region = nullptr, *request = nullptr;
  ASSERT_EQ(ncclSuccess, net().RegMr(pair_.send, memory.data(), memory.size(), NCCL_PTR_HOST, &send_region));
  ASSERT_EQ(ncclSuccess, net().RegMr(pair_.receive, memory.data(), memory.size(), NCCL_PTR_HOST, &receive_region));
  ASSERT_EQ(ncclSuccess, Receive(memory.data(), memory.size(), &request));
  EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, receive_region));
  EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, send_region));
  EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, nullptr));
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  EXPECT_EQ(LogLines(NCCL_LOG_WARN), std::vector<std::string>());
}

TEST_F(GotchasTest, Gotcha09_ForgottenListensAndConnectsLeaveNothing) {
  const size_t before = OpenDescriptors().size();
  ASSERT_NO_FATAL_FAILURE(Open(12));
  {
    const FakeAcceptor silent;
    std::string nobody = silent.HandleBytes();
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    void *listen = nullptr, *send = nullptr;
    ASSERT_EQ(ncclSuccess, net().Listen(plugin_->context(), 0, handle, &listen));
    ASSERT_EQ(ncclSuccess, net().Connect(plugin_->context(), 0, handle, &send));
    ASSERT_EQ(ncclSuccess, net().Connect(plugin_->context(), 0, &nobody[0], &send));
    ASSERT_TRUE(plugin_->Finish().ok());
    EXPECT_EQ(before, OpenDescriptors().size() - 1) << "but for the silent listener's own";
  }
  plugin_.reset();
}

TEST_F(GotchasTest, Gotcha10_InitsAndFinalizesFromSeveralThreads) {
  ASSERT_NO_FATAL_FAILURE(Open(12));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 5; ++round) {
        void *context = nullptr, *listen = nullptr;
        char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
        EXPECT_EQ(ncclSuccess, net().Init(&context, 1, -1, &RecordLog, nullptr));
        EXPECT_EQ(ncclSuccess, net().Listen(context, 0, handle, &listen));
        EXPECT_EQ(ncclSuccess, net().Finalize(context));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ncclSuccess, net().Finalize(nullptr));
  auto pair = plugin_->Connect();
  EXPECT_TRUE(pair.ok()) << pair.status();
}

// A failing init crashes some releases with v6 to v10: that there is no device shows in devices.
TEST_F(GotchasTest, Gotcha13_NoInterfaceIsNoDeviceButNoFailedInit) {
  setenv("NCCL_SOCKET_IFNAME", "=nosuchinterface", 1);
  for (int version = kOldestNetVersion; version <= kNewestNetVersion; ++version) {
    auto net = NetClient::Open(kPluginPath, version);
    ASSERT_TRUE(net.ok()) << net.status();
    void* context = nullptr;
    EXPECT_EQ(ncclSuccess, (*net)->Init(&context, 1, -1, &RecordLog, nullptr));
    int devices = -1;
    (void)(*net)->Devices(&devices);
    EXPECT_LE(devices, 0);
    EXPECT_EQ(ncclSuccess, (*net)->Finalize(context));
  }
  unsetenv("NCCL_SOCKET_IFNAME");
}

// NCCL_NET_PLUGIN=tcpx must find the file, NCCL_NET=tcpx the table, in every release.
TEST_F(GotchasTest, Gotcha14_And15_OneNameForFileAndTables) {
  for (int version = kOldestNetVersion; version <= kNewestNetVersion; ++version) {
    auto net = NetClient::Open(kPluginPath, version);
    ASSERT_TRUE(net.ok()) << net.status();
    EXPECT_STREQ("tcpx", (*net)->name());
    const std::string path = kPluginPath;
    EXPECT_EQ(path.substr(path.rfind('/') + 1), absl::StrCat("libnccl-net-", (*net)->name(), ".so"));
  }
}

// Some releases try the failed call again for ever, others show no error at all.
TEST_F(GotchasTest, Gotcha17_ErrorIsLoggedOnceAndReturnedEachTime) {
  ASSERT_NO_FATAL_FAILURE(OpenPair());
  char in[8];
  void* request = nullptr;
  ASSERT_EQ(ncclSuccess, Receive(in, sizeof(in), &request));
  ASSERT_TRUE(plugin_->Close({pair_.send, nullptr}).ok());
  Deadline deadline;
  int done = 0;
  ncclResult_t result = ncclSuccess;
  while (result == ncclSuccess) {
    result = net().Test(request, &done, nullptr);
    ASSERT_EQ(0, done);
    ASSERT_TRUE(deadline.Yield());
  }
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(ncclRemoteError, net().Test(request, &done, nullptr));
    void* another = Stale();
    ASSERT_EQ(ncclRemoteError, Receive(in, sizeof(in), &another));
    ASSERT_EQ(another, nullptr);
  }
  EXPECT_EQ(LogLines(NCCL_LOG_WARN).size(), 1u) << LogText();
}

TEST_F(GotchasTest, Gotcha19_And20_And21_PropertiesAreWhatNcclCanUse) {
  for (int version = kOldestNetVersion; version <= kNewestNetVersion; ++version) {
    ASSERT_NO_FATAL_FAILURE(Open(version));
    ncclNetProperties_v12_t properties;
    ASSERT_EQ(ncclSuccess, net().GetProperties(0, &properties));
    EXPECT_EQ(properties.latency, std::floor(properties.latency)) << "fractions are lost";
    EXPECT_GE(properties.speed, 1);
    EXPECT_GT(properties.maxP2pBytes, 0u);
    EXPECT_LE(properties.maxP2pBytes, size_t{1} << 40);
    EXPECT_GT(properties.maxCollBytes, 0u);
    ASSERT_EQ(properties.vProps.ndevs, 1);
    EXPECT_EQ(properties.vProps.devs[0], 0);
    plugin_.reset();
  }
}

TEST_F(GotchasTest, Gotcha25_TablesAreFoundByName) {
  void* library = dlopen(kPluginPath, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  for (int version = kOldestNetVersion; version <= kNewestNetVersion; ++version) {
    // Each begins with its name.
    const auto* table =
        static_cast<const char* const*>(dlsym(library, absl::StrCat("ncclNetPlugin_v", version).c_str()));
    ASSERT_NE(table, nullptr) << version;
    EXPECT_STREQ("tcpx", *table);
  }
  dlclose(library);
}

}  // namespace
}  // namespace tcpx
