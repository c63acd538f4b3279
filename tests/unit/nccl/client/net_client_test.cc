// Opening libraries, and what the client adds to an old table. libfake_net.so is the fake plugin with our tables.
#include "nccl/client/net_client.h"

#include <climits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/unit/nccl/every_table.h"
#include "tests/unit/nccl/fake_plugin.h"

namespace tcpx {
namespace {

constexpr char kLibrary[] = "tests/unit/nccl/libfake_net.so";
constexpr size_t kGibibyte = size_t{1} << 30;

TEST(NetClient, OpenTakesTheNewestTable) {
  const absl::StatusOr<std::unique_ptr<NetClient>> net = NetClient::Open(kLibrary);
  ASSERT_TRUE(net.ok()) << net.status();
  EXPECT_EQ((*net)->version(), 12);
  EXPECT_STREQ((*net)->name(), "tcpx");
}

TEST(NetClient, OpenTakesTheWantedTable) {
  for (int version = 6; version <= 12; ++version) {
    const absl::StatusOr<std::unique_ptr<NetClient>> net = NetClient::Open(kLibrary, version);
    ASSERT_TRUE(net.ok()) << net.status();
    EXPECT_EQ((*net)->version(), version);
    EXPECT_EQ((*net)->has_finalize(), version >= 11);
    void* ctx = InitPlain(**net);
    int count = 0;
    EXPECT_EQ((*net)->Devices(&count), ncclSuccess);
    EXPECT_EQ(count, 1);
    EXPECT_EQ((*net)->Finalize(ctx), ncclSuccess);
  }
}

TEST(NetClient, OpenSaysWhatIsWrong) {
  struct Row {
    const char* path;
    int version;
    const char* want;
  };
  const Row rows[] = {
      {"no/such/library.so", 0, "no/such/library.so"},
      {"libm.so.6", 0, "libm.so.6: no symbol ncclNetPlugin_v12 to _v6"},
      {"libm.so.6", 7, "libm.so.6: no symbol ncclNetPlugin_v7"},
      {kLibrary, 5, "v5 is not one of v6 to v12"},
      {kLibrary, 13, "v13 is not one of v6 to v12"},
  };
  for (const Row& row : rows) {
    const absl::StatusOr<std::unique_ptr<NetClient>> net = NetClient::Open(row.path, row.version);
    ASSERT_FALSE(net.ok()) << row.path;
    EXPECT_NE(net.status().message().find(row.want), std::string::npos) << net.status();
  }
}

TEST(NetClient, SizesThatAVersionCanNotCarryAreRefusedBeforeThePlugin) {
  ForEachClient([](NetClient& net) {
    char byte = 0;
    void* data = &byte;
    void* out = nullptr;
    size_t size = kGibibyte + 1;
    int tag = 0;
    const ncclResult_t transfer = net.version() <= 8 ? ncclInternalError : ncclSuccess;
    EXPECT_EQ(net.Isend(&Fake().send_comm, data, size, 0, nullptr, nullptr, &out), transfer);
    EXPECT_EQ(net.Irecv(&Fake().receive_comm, 1, &data, &size, &tag, nullptr, nullptr, &out), transfer);
    const ncclResult_t registration = net.version() <= 7 ? ncclInternalError : ncclSuccess;
    EXPECT_EQ(net.RegMr(&Fake().send_comm, data, size_t{INT_MAX} + 1, NCCL_PTR_HOST, &out), registration);
  });
}

TEST(NetClient, PresetOfRequestReachesThePluginFromV9) {
  ForEachClient([](NetClient& net) {
    char byte = 0;
    void* data = &byte;
    size_t size = 1;
    int tag = 0;
    void* request = Preset();
    EXPECT_EQ(net.Irecv(&Fake().receive_comm, 1, &data, &size, &tag, nullptr, nullptr, &request), ncclSuccess);
    EXPECT_EQ(Fake().receive_args.optional_completion, net.version() >= 9);
  });
}

}  // namespace
}  // namespace tcpx
