// Exceptions inside a library that brings its own unwinder (common/older_glibc.cc): in threads, while other libraries
// come and go, and after the library itself was unloaded and loaded again.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace tcpx {
namespace {

constexpr char kThrower[] = "tests/build/exceptions/libthrower.so";
constexpr int kDepth = 20;

class Library {
 public:
  explicit Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(nullptr, handle_) << dlerror();
  }
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  // Frames unwound; -2: there is no such function.
  int Call(const char* name, int depth) const {
    void* const found = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    return found == nullptr ? -2 : reinterpret_cast<int (*)(int)>(found)(depth);
  }

 private:
  void* const handle_;
};

TEST(ExceptionsTest, AreCaughtInTheLibraryThatThrowsThem) {
  const Library library(kThrower);
  EXPECT_EQ(1, library.Call("ThrowAndCatch", 1));
  EXPECT_EQ(kDepth, library.Call("ThrowAndCatch", kDepth));
  EXPECT_EQ(kDepth, library.Call("ThrowInThread", kDepth));
}

TEST(ExceptionsTest, AreCaughtAgainAfterAnUnload) {
  for (int life = 0; life < 20; ++life) {
    const Library library(kThrower);
    ASSERT_EQ(kDepth, library.Call("ThrowAndCatch", kDepth)) << life;
    ASSERT_EQ(kDepth, library.Call("ThrowInThread", kDepth)) << life;
  }
}

// The unwinder looks through the list of libraries while it changes.
TEST(ExceptionsTest, AreCaughtInThreadsWhileOthersLoadAndUnload) {
  const std::filesystem::path copy = std::filesystem::path(testing::TempDir()) / "libthrower_copy.so";
  std::filesystem::copy_file(kThrower, copy, std::filesystem::copy_options::overwrite_existing);
  const Library library(kThrower);
  std::atomic<int> running{4};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        if (library.Call("ThrowAndCatch", kDepth) != kDepth) wrong.fetch_add(1);
      }
      running.fetch_sub(1);
    });
  }
  do {
    const Library other(copy.string());
    EXPECT_EQ(kDepth, other.Call("ThrowAndCatch", kDepth));
  } while (running.load() > 0);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong.load());
  std::filesystem::remove(copy);
}

}  // namespace
}  // namespace tcpx
