// Each context speaks to the logger that its init was given: two copies of NCCL in one process share the library.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/plugin/contexts/contexts_fixture.h"

namespace tcpx {
namespace {

// The logger of another NCCL; that of the first is RecordLog.
std::mutex mutex;
std::vector<std::string>& OtherLines() {
  static auto* lines = new std::vector<std::string>;
  return *lines;
}

__attribute__((format(printf, 5, 6))) void OtherLogger(ncclDebugLogLevel, unsigned long, const char*, int,
                                                       const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  std::lock_guard<std::mutex> lock(mutex);
  OtherLines().push_back(text);
}

int OtherLinesWith(const std::string& part) {
  std::lock_guard<std::mutex> lock(mutex);
  return static_cast<int>(std::count_if(OtherLines().begin(), OtherLines().end(),
                                        [&](const std::string& line) { return absl::StrContains(line, part); }));
}

class LoggerTest : public ContextsTest {
 protected:
  // Lines of any level.
  static int LinesWithAny(const std::string& part) {
    return LinesWith(NCCL_LOG_INFO, part) + LinesWith(NCCL_LOG_WARN, part);
  }

  // Its connection's other end is gone.
  void SendUntilItFails(void* comm) {
    Deadline deadline;
    char byte = 0;
    ncclResult_t result = ncclSuccess;
    while (result == ncclSuccess && deadline.Yield()) {
      void* request = nullptr;
      int done = 0;
      result = net().Isend(comm, &byte, 1, 0, nullptr, nullptr, &request);
      if (result == ncclSuccess && request != nullptr) result = net().Test(request, &done, nullptr);
    }
    EXPECT_EQ(ncclRemoteError, result);
  }
};

TEST_F(LoggerTest, EachContextSpeaksToItsOwn) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  void* other = nullptr;
  ASSERT_EQ(ncclSuccess, net().Init(&other, 0x55, NCCL_NET_TRAFFIC_CLASS_UNDEF, &OtherLogger, nullptr));
  const Ends pair = Connect(other, plugin_->context());
  EXPECT_EQ(1, OtherLinesWith("comm 55 send device"));
  EXPECT_EQ(0, LinesWithAny("comm 55")) << LogText();
  EXPECT_EQ(1, LinesWithAny("comm 2a receive device")) << LogText();
  EXPECT_EQ(0, OtherLinesWith("comm 2a"));
  EXPECT_EQ(ncclSuccess, net().CloseRecv(pair.receive));
  SendUntilItFails(pair.send);
  EXPECT_EQ(1, OtherLinesWith("comm 55 send device 0 lane 0 of 1"));
  EXPECT_EQ(0, LinesWith(NCCL_LOG_WARN, "comm 55")) << LogText();
  EXPECT_EQ(ncclSuccess, net().CloseSend(pair.send));
  EXPECT_EQ(ncclSuccess, net().Finalize(other));
  EXPECT_EQ(1, OtherLinesWith("comm 55: 1 connections"));
  // That NCCL may be unloaded now: nothing speaks to its logger any more.
  size_t before = 0;
  {
    std::lock_guard<std::mutex> lock(mutex);
    before = OtherLines().size();
  }
  char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
  void* listen = nullptr;
  EXPECT_NE(ncclSuccess, net().Listen(plugin_->context(), 99, handle, &listen));
  EXPECT_EQ(1, LinesWithAny("device 99")) << LogText();
  std::lock_guard<std::mutex> lock(mutex);
  EXPECT_EQ(before, OtherLines().size());
}

}  // namespace
}  // namespace tcpx
