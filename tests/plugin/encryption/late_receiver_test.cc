// A message that was read ahead with the one before it lies here, and no longer in the kernel: where nobody calls test
// the verdict names this end, and not the peer, with encryption and without.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/plugin/encryption/encryption_fixture.h"
#include "tests/support/pattern.h"
#include "tests/support/plugin_test.h"

namespace tcpx {
namespace {

constexpr size_t kBytes = 12'000;

class LateReceiverTest : public PluginTest, public ::testing::WithParamInterface<bool> {
 protected:
  void Open() {
    ClearLog();
    Mode settings;
    if (GetParam()) settings = Encrypted(settings);
    settings.lanes = 1;
    settings.threads = 0;
    settings.environment["TCPX_STALL_WARN"] = "1";
    settings.environment["TCPX_LINGER"] = "1";
    OpenPair(settings);
  }

  // Null: it failed.
  void* Post(bool sends, std::string* text) {
    NetClient* const net = &plugin_->net();
    auto posted = sends ? PostSend(net, pair_.send, text->data(), text->size())
                        : PostReceive(net, pair_.receive, &(*text)[0], text->size());
    EXPECT_TRUE(posted.ok()) << posted.status();
    return posted.ok() ? *posted : nullptr;
  }

  void Finish(void* request) {
    const Deadline deadline(60);
    for (int done = 0; done == 0;) {
      ASSERT_EQ(plugin_->net().Test(request, &done, nullptr), ncclSuccess) << LogText();
      ASSERT_TRUE(deadline.Yield()) << LogText();
    }
  }

  const Pattern pattern_{7, kBytes};
};

TEST_P(LateReceiverTest, IsNamedWhereTheDataLiesHere) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::string sent[2] = {std::string(pattern_.Bytes(0), kBytes), std::string(pattern_.Bytes(1), kBytes)};
  std::string got[2] = {std::string(kBytes, '?'), std::string(kBytes, '?')};
  void* sends[2] = {Post(true, &sent[0]), Post(true, &sent[1])};
  for (void* send : sends) ASSERT_NO_FATAL_FAILURE(Finish(send));
  ASSERT_NO_FATAL_FAILURE(Finish(Post(false, &got[0])));
  void* const late = Post(false, &got[1]);
  const Deadline deadline(60);
  while (!LogHas("verdict: ")) {
    ASSERT_TRUE(deadline.Yield()) << LogText();
    usleep(10'000);
  }
  // A busy machine comes first.
  EXPECT_TRUE(LogHas("bytes could be moved here, and nobody calls test") || LogHas("verdict: no-cpu: ")) << LogText();
  ASSERT_NO_FATAL_FAILURE(Finish(late));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(got[i], sent[i]);
  EXPECT_TRUE(plugin_->Close(pair_).ok());
}

INSTANTIATE_TEST_SUITE_P(Sockets, LateReceiverTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Encrypted" : "Plain"; });

}  // namespace
}  // namespace tcpx
