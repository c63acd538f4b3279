// Wrong arguments, hints and the optional entries of the tables, through the real shared library.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <climits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/support/plugin_test.h"

namespace tcpx {
namespace {

class ArgumentsTest : public PluginTest {
 protected:
  void Open() { OpenPair({}); }

  ncclResult_t Irecv(int n, void** data, size_t* sizes, int* tags) {
    void* request = nullptr;
    const ncclResult_t result = net().Irecv(pair_.receive, n, data, sizes, tags, nullptr, nullptr, &request);
    EXPECT_EQ(request, nullptr);
    return result;
  }
  ncclResult_t Isend(void* data, size_t bytes) {
    void* request = nullptr;
    const ncclResult_t result = net().Isend(pair_.send, data, bytes, 0, nullptr, nullptr, &request);
    EXPECT_EQ(request, nullptr);
    return result;
  }

  // One WARN that has `text`, although the call came many times.
  static void ExpectToldOnce(const std::string& text) {
    const std::vector<std::string> lines = LogLines(NCCL_LOG_WARN);
    ASSERT_EQ(lines.size(), 1u) << LogText();
    EXPECT_TRUE(absl::StrContains(lines[0], text)) << lines[0];
    EXPECT_TRUE(absl::StrContains(lines[0], "127.0.0.1")) << "no connection named: " << lines[0];
    ClearLog();
  }

  char memory_[64] = {};
};

TEST_F(ArgumentsTest, WrongIsendIsReportedOncePerConnection) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ncclInvalidArgument, Isend(nullptr, 8));
  ExpectToldOnce("isend: the buffer is null");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ncclInvalidArgument, Isend(memory_, SIZE_MAX));
  EXPECT_EQ(LogLines(NCCL_LOG_WARN).size(), 0u) << LogText();
  // The connection lives on.
  void* request = nullptr;
  EXPECT_EQ(ncclSuccess, net().Isend(pair_.send, memory_, 8, 0, nullptr, nullptr, &request));
  EXPECT_NE(request, nullptr);
}

TEST_F(ArgumentsTest, TooLargeIsendIsReportedOncePerConnection) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ncclInvalidUsage, Isend(memory_, (size_t{1} << 40) + 1));
  ExpectToldOnce("1 TiB");
}

TEST_F(ArgumentsTest, WrongIrecvIsReportedOncePerConnection) {
  void* data[9] = {memory_};
  size_t sizes[9] = {8};
  int tags[9] = {};
  struct Row {
    int n;
    bool has_tags;
    const char* text;
  };
  for (const Row& row : {Row{0, true, "irecv: 0 buffers"}, Row{9, true, "irecv: 9 buffers"},
                         Row{1, false, "irecv: an array is missing"}}) {
    ASSERT_NO_FATAL_FAILURE(Open());
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(ncclInvalidArgument, Irecv(row.n, data, sizes, row.has_tags ? tags : nullptr));
    }
    ExpectToldOnce(row.text);
    plugin_.reset();
  }
  ASSERT_NO_FATAL_FAILURE(Open());
  data[0] = nullptr;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ncclInvalidArgument, Irecv(1, data, sizes, tags));
  ExpectToldOnce("irecv: a buffer is null");
}

TEST_F(ArgumentsTest, WrongRegMrIsReportedOncePerConnection) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < 100; ++i) {
    void* region = memory_;
    ASSERT_EQ(ncclInvalidUsage, net().RegMr(pair_.send, memory_, sizeof(memory_), NCCL_PTR_CUDA, &region));
    EXPECT_EQ(region, nullptr);
  }
  ExpectToldOnce("NCCL_PTR_HOST");
}

TEST_F(ArgumentsTest, ClosingTwiceIsANoOp) {
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ncclSuccess, net().CloseSend(pair_.send));
    EXPECT_EQ(ncclSuccess, net().CloseRecv(pair_.receive));
  }
}

TEST_F(ArgumentsTest, IflushOfHostMemoryIsCompleteAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Open());
  void* data = memory_;
  int size = sizeof(memory_);
  void* mhandle = nullptr;
  void* request = memory_;
  EXPECT_EQ(ncclSuccess, net().Iflush(pair_.receive, 1, &data, &size, &mhandle, &request));
  EXPECT_EQ(request, nullptr);
}

template <class Table>
const Table* TableOf(void* library, const char* symbol) {
  return static_cast<const Table*>(dlsym(library, symbol));
}

TEST_F(ArgumentsTest, OptionalEntriesAreNull) {
  ASSERT_NO_FATAL_FAILURE(Open());
  void* library = dlopen(kPluginPath, RTLD_NOW);
  const auto* v12 = TableOf<ncclNet_v12_t>(library, "ncclNetPlugin_v12");
  ASSERT_NE(v12, nullptr);
  EXPECT_EQ(v12->regMrDmaBuf, nullptr);
  EXPECT_EQ(v12->getDeviceMr, nullptr);
  EXPECT_EQ(v12->irecvConsumed, nullptr);
  EXPECT_NE(v12->finalize, nullptr);
  EXPECT_NE(v12->setNetAttr, nullptr);
  dlclose(library);
}

}  // namespace
}  // namespace tcpx
