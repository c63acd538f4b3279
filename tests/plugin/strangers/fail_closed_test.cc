// A user who asked for a secret or encryption and cannot have it gets no connection: init succeeds and shows devices,
// so that NCCL stays with the plugin and not with sockets of its own, and every listen and connect fails with the
// reason.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <ostream>
#include <string>

#include "nccl/client/rma_client.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/secret_file.h"

namespace tcpx {
namespace {

struct Wish {
  const char* label;
  const char* name;
  const char* value;  // null: a file with `text`
  const char* text;
  const char* told;
};
void PrintTo(const Wish& wish, std::ostream* out) { *out << wish.label; }

const Wish kWishes[] = {
    {"MissingFile", "TCPX_SECRET_FILE", "/nowhere/secret", "",
     "TCPX_SECRET_FILE /nowhere/secret can't be opened: No such file or directory"},
    {"EmptyFile", "TCPX_SECRET_FILE", nullptr, "\n", "is empty"},
    {"ShortSecret", "TCPX_SECRET_FILE", nullptr, "password\n", "holds 8 bytes, which can be guessed"},
    {"WeakSecret", "TCPX_SECRET_FILE", nullptr, "aaaaaaaaaaaaaaaa\n", "holds only 1 different bytes"},
    {"Placeholder", "TCPX_SECRET_FILE", nullptr, "replace-this-by-what-openssl-rand-base64-32-writes",
     "holds the placeholder of the manifest"},
    {"Folder", "TCPX_SECRET_FILE", "/", "", "is not a file"},
    {"NoName", "TCPX_SECRET_FILE", "", "", "TCPX_SECRET_FILE is set, and empty"},
    {"NoSecret", "TCPX_ENCRYPT", "1", "", "TCPX_ENCRYPT=1 needs a secret"},
    {"NoSwitch", "TCPX_ENCRYPT", "y", "", "TCPX_ENCRYPT is \"y\", which is not on (1) or off (0)"},
    {"CipherAlone", "TCPX_ENCRYPT_CIPHER", "aes128-gcm", "", "TCPX_ENCRYPT is not on"},
    {"Required", "TCPX_REQUIRE_ENCRYPTION", "1", "", "TCPX_REQUIRE_ENCRYPTION is on, and TCPX_ENCRYPT is not"},
    {"MisspeltSwitch", "TCPX_ENCRYPTION", "1", "", "TCPX_ENCRYPTION is no parameter"},
    {"SmallLetters", "tcpx_encrypt", "1", "", "tcpx_encrypt is no parameter"},
    {"Transposed", "TPCX_ENCRYPT", "1", "", "TPCX_ENCRYPT is no parameter"},
    {"NcclsPrefix", "NCCL_TCPX_TLS", "1", "", "NCCL_TCPX_TLS is no parameter"},
    {"WithExport", "export TCPX_REQUIRE_ENCRYPTION", "1", "", "export TCPX_REQUIRE_ENCRYPTION is no parameter"},
    {"MisspeltFile", "TCPX_SECRETFILE", "/etc/secret", "", "TCPX_SECRETFILE is no parameter"},
};

class FailClosedTest : public ::testing::TestWithParam<Wish> {
 protected:
  void SetUp() override {
    Mode{.threads = 2, .lanes = 4}.Apply();
    unsetenv("TCPX_SECRET_FILE");
    unsetenv("TCPX_ENCRYPT");
  }
};

TEST_P(FailClosedTest, NoConnectionIsMade) {
  for (int version : {6, 8, 10, 11, 12}) {
    EXPECT_EQ("", RunAlone([version] {
                const Wish& wish = GetParam();
                setenv(wish.name, wish.value != nullptr ? wish.value : SecretFile(wish.text).c_str(), 1);
                Rank rank(version);
                int devices = 0;
                TCPX_REQUIRE(rank.net().Devices(&devices) == ncclSuccess && devices > 0, devices);
                TCPX_REQUIRE(CountInLog(wish.told) > 0 && WarningCount() > 0, LogText());
                const int warned = CountInLog(wish.told);
                char handle[kHandleBytesMax] = {};
                void* listen = nullptr;
                TCPX_REQUIRE(rank.net().Listen(rank.context(), 0, handle, &listen) == ncclInvalidUsage);
                TCPX_REQUIRE(listen == nullptr && CountInLog(wish.told) == warned + 1, LogText());
                const FakeAcceptor acceptor;
                acceptor.WriteHandle(handle);
                void* comm = nullptr;
                TCPX_REQUIRE(rank.net().Connect(rank.context(), 0, handle, &comm) == ncclInvalidUsage);
                TCPX_REQUIRE(comm == nullptr && CountInLog(wish.told) == warned + 2, LogText());
                TCPX_REQUIRE(acceptor.TryAccept() < 0, "it dials");
                rank.Finalize();
              }))
        << "v" << version;
  }
}

TEST_P(FailClosedTest, NoOneSidedConnectionIsMade) {
  setenv("TCPX_RMA", "1", 1);
  for (int version : {14, 15, 16}) {
    EXPECT_EQ("", RunAlone([version] {
                const Wish& wish = GetParam();
                setenv(wish.name, wish.value != nullptr ? wish.value : SecretFile(wish.text).c_str(), 1);
                const auto rma = Must(RmaClient::Open(kPluginPath, version));
                void* context = nullptr;
                TCPX_REQUIRE(rma->Init(&context, 7, &RecordLog) == ncclSuccess, LogText());
                const int warned = CountInLog(wish.told);
                char handle[kHandleBytesMax] = {};
                void* listen = nullptr;
                TCPX_REQUIRE(rma->Listen(context, 0, handle, &listen) == ncclInvalidUsage);
                TCPX_REQUIRE(listen == nullptr && CountInLog(wish.told) == warned + 1, LogText());
                void* handles[] = {handle, handle};
                void* group = nullptr;
                TCPX_REQUIRE(rma->Connect(context, handles, 2, 0, listen, &group) == ncclInvalidArgument);
                TCPX_REQUIRE(group == nullptr);
                TCPX_REQUIRE(rma->Finalize(context) == ncclSuccess);
              }))
        << "v" << version;
  }
}

INSTANTIATE_TEST_SUITE_P(Wishes, FailClosedTest, ::testing::ValuesIn(kWishes),
                         [](const auto& wish) { return wish.param.label; });

// Without any device NCCL would go on with its own sockets.
TEST(FailClosed, WhereThereIsNoInterfaceADeviceIsShownThatTakesNothing) {
  EXPECT_EQ("", RunAlone([] {
              Mode{.threads = 2, .lanes = 4}.Apply();
              setenv("NCCL_SOCKET_IFNAME", "=nowhere", 1);
              setenv("TCPX_SECRET_FILE", SecretFile().c_str(), 1);
              Rank rank;
              int devices = -1;
              TCPX_REQUIRE(rank.net().Devices(&devices) == ncclSuccess && devices == 1, devices);
              char handle[kHandleBytesMax] = {};
              void* listen = nullptr;
              TCPX_REQUIRE(rank.net().Listen(rank.context(), 0, handle, &listen) != ncclSuccess);
              const FakeAcceptor acceptor;
              acceptor.WriteHandle(handle);
              void* comm = nullptr;
              TCPX_REQUIRE(rank.net().Connect(rank.context(), 0, handle, &comm) != ncclSuccess);
              TCPX_REQUIRE(listen == nullptr && comm == nullptr && acceptor.TryAccept() < 0);
              ncclNetProperties_v12_t properties;
              TCPX_REQUIRE(rank.net().GetProperties(0, &properties) == ncclSuccess);
              TCPX_REQUIRE(CountInLog("no usable network interface") > 0, LogText());
              rank.Finalize();
            }));
}

// An init that fails would hand the job to NCCL's own sockets.
TEST(FailClosed, AWrongTrafficClassDoesNotEndTheProtection) {
  EXPECT_EQ("", RunAlone([] {
              Mode{.threads = 2, .lanes = 4}.Apply();
              setenv("TCPX_SECRET_FILE", SecretFile().c_str(), 1);
              Rank rank;
              void* const context = rank.NewContext(1000);
              char handle[kHandleBytesMax] = {};
              void* listen = nullptr;
              TCPX_REQUIRE(rank.net().Listen(context, 0, handle, &listen) == ncclInvalidUsage && listen == nullptr);
              TCPX_REQUIRE(WarningCount() == 1 && CountInLog("traffic class") >= 1, LogText());
              rank.Close(rank.ConnectToSelf());
              rank.Finalize();
            }));
}

}  // namespace
}  // namespace tcpx
