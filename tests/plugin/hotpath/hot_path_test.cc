// The budget of isend, irecv and test: no allocation, one system call a batch. The plugin is linked in, so that this
// file's operator new and socket calls are the ones it uses.
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "nccl/client/table_client.h"
#include "nccl/net_tables.h"
#include "nccl/plugin_api.h"
#include "nccl/shims.h"
#include "net_socket/plugin/plugin.h"
#include "tests/support/deadline.h"

namespace {

std::atomic<int> allocations{0};
std::atomic<int> send_calls{0};
std::atomic<int> receive_calls{0};
std::atomic<int> empty_receive_calls{0};
thread_local bool counting = false;  // the housekeeping thread's calls are not the caller's
int last_sender = -1;                // the descriptor of the latest call that was counted

void CountSend(int fd) {
  if (!counting) return;
  ++send_calls;
  last_sender = fd;
}

}  // namespace

void* operator new(size_t bytes) {
  if (counting) ++allocations;
  void* memory = malloc(bytes);
  if (memory == nullptr) abort();
  return memory;
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  if (counting) ++allocations;
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<size_t>(alignment), bytes) != 0) abort();
  return memory;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  CountSend(fd);
  return syscall(SYS_sendmsg, fd, message, flags);
}
extern "C" ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  CountSend(fd);
  return syscall(SYS_sendto, fd, data, bytes, flags, nullptr, 0);
}
extern "C" ssize_t recv(int fd, void* data, size_t bytes, int flags) {
  const ssize_t got = syscall(SYS_recvfrom, fd, data, bytes, flags, nullptr, nullptr);
  if (counting) ++(got < 0 ? empty_receive_calls : receive_calls);
  return got;
}
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const ssize_t got = syscall(SYS_recvmsg, fd, message, flags);
  if (counting) ++(got < 0 ? empty_receive_calls : receive_calls);
  return got;
}

namespace tcpx {

PluginApi& ThePlugin() {
  static Plugin* plugin = new Plugin;
  return *plugin;
}

namespace {

struct alignas(64) CacheLine {
  char bytes[64] = {};
};

template <typename T>
int AllocationsOf() {
  allocations = 0;
  counting = true;
  std::vector<T>* made = new std::vector<T>(2);
  counting = false;
  asm volatile("" : : "r"(made->data()) : "memory");  // Else the compiler may leave both out.
  delete made;
  return allocations;
}

TEST(HotPathCountTest, EveryKindOfNewCounts) {
  EXPECT_EQ(2, AllocationsOf<int>());
  EXPECT_EQ(2, AllocationsOf<CacheLine>());
}

class HotPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("TCPX_THREADS", "0", 1);
    net_ = std::make_unique<TableClient<ncclNet_v12_t>>(&ncclNetPlugin_v12);
    ASSERT_EQ(ncclSuccess, net_->Init(&ctx_, 7, -1, nullptr, Profiler()));
    void* listen = nullptr;
    char handle[128] = {};
    ASSERT_EQ(ncclSuccess, net_->Listen(ctx_, 0, handle, &listen));
    const Deadline deadline;
    while ((send_ == nullptr || recv_ == nullptr) && deadline.Yield()) {
      if (send_ == nullptr) {
        ASSERT_EQ(ncclSuccess, net_->Connect(ctx_, 0, handle, &send_));
      }
      if (recv_ == nullptr) {
        ASSERT_EQ(ncclSuccess, net_->Accept(listen, &recv_));
      }
    }
    ASSERT_NE(nullptr, send_);
    ASSERT_NE(nullptr, recv_);
    net_->CloseListen(listen);
    Burst(8, 1024);  // Warm: the staging buffer exists, the kernel's buffers are there.
  }

  void TearDown() override {
    net_->CloseSend(send_);
    net_->CloseRecv(recv_);
    EXPECT_EQ(ncclSuccess, net_->Finalize(ctx_));
  }

  // `count` sends in a row, then the tests of all, then the receives.
  void Burst(int count, size_t bytes) {
    std::vector<char> out(bytes * count, 's'), in(bytes * count, 'r');
    std::vector<void*> sends(count), receives(count);
    allocations = send_calls = receive_calls = empty_receive_calls = 0;
    counting = true;
    // Again while another thread holds the connection.
    const Deadline deadline;
    for (int i = 0; i < count; ++i) {
      void* data = in.data() + i * bytes;
      size_t size = bytes;
      int tag = 0;
      do {
        net_->Irecv(recv_, 1, &data, &size, &tag, nullptr, &parent_, &receives[i]);
      } while (receives[i] == nullptr && deadline.Yield());
    }
    // Or where a credit has not come yet.
    for (int i = 0; i < count; ++i) {
      do {
        Send(out.data() + i * bytes, bytes, announces_ && i + 1 < count ? bytes : 0, &sends[i]);
      } while (sends[i] == nullptr && deadline.Yield());
    }
    bool all = true;
    for (void* request : sends) all = Finish(request) && all;
    AwaitArrival();
    for (void* request : receives) all = Finish(request) && all;
    counting = false;
    EXPECT_TRUE(all);
    EXPECT_EQ(0, std::memcmp(out.data(), in.data(), out.size()));
  }

  // NCCL's tables say of no message that another follows: one-sided transfers do.
  void Send(char* data, size_t bytes, size_t next_bytes, void** request) {
    SendArgs args;
    args.data = data;
    args.bytes = bytes;
    args.profiler_parent = parent_;
    args.next_bytes = next_bytes;
    Request* posted = nullptr;
    EXPECT_TRUE(ThePlugin().Send(static_cast<Comm*>(send_), args, &posted).ok());
    *request = posted;
  }

  // All that was sent is in the receiver's socket: on a busy machine that takes a while.
  static void AwaitArrival() {
    const Deadline deadline;
    for (int unacknowledged = 1; unacknowledged > 0;) {
      if (ioctl(last_sender, SIOCOUTQ, &unacknowledged) != 0 || !deadline.Yield()) return;
    }
  }

  virtual ncclProfilerCallback_t Profiler() { return nullptr; }

  bool Finish(void* request) {
    const Deadline deadline;
    do {
      int done = 0, size = 0;
      if (net_->Test(request, &done, &size) != ncclSuccess) return false;
      if (done) return true;
    } while (deadline.Yield());
    return false;
  }

  static bool Grouped() {
    const char* members = getenv("TCPX_MAX_RECVS");
    return members != nullptr && atoi(members) > 1;
  }

  std::unique_ptr<TableClient<ncclNet_v12_t>> net_;
  void* ctx_ = nullptr;
  void* parent_ = nullptr;  // of each request, for the profiler
  bool announces_ = false;  // of a burst, each send says that another follows
  void* send_ = nullptr;
  void* recv_ = nullptr;
};

// Run a second time with TCPX_MAX_RECVS=8; a credit is a call of its own then.
TEST_F(HotPathTest, CreditsAllocateNothingAndCostOneCallEach) {
  for (int count : {1, 8, 32}) {
    SCOPED_TRACE(count);
    Burst(count, 512);
    EXPECT_EQ(0, allocations);
    EXPECT_EQ((count == 1 ? 1 : 2) + (Grouped() ? count : 0), send_calls);
    // isend reads several credits with one call when they have come.
    EXPECT_LE(1, receive_calls);
    EXPECT_GE(1 + (Grouped() ? count : 0), receive_calls);
  }
}

TEST_F(HotPathTest, ALoneMessageIsOneCallAtEachEnd) {
  for (size_t bytes : {0, 8, 1024, 4096, 65536}) {
    SCOPED_TRACE(bytes);
    Burst(1, bytes);
    EXPECT_EQ(0, allocations);
    EXPECT_EQ(1, send_calls);
    EXPECT_EQ(1, receive_calls);
  }
}

TEST_F(HotPathTest, ABurstLeavesWithTwoCallsAndArrivesWithOne) {
  Burst(8, 1024);
  EXPECT_EQ(0, allocations);
  EXPECT_EQ(2, send_calls);  // the first at once, the others together
  EXPECT_EQ(1, receive_calls);
}

TEST_F(HotPathTest, AMessageLeavesWithTheNextWhereThatIsAnnounced) {
  announces_ = true;
  Burst(2, 4096);
  EXPECT_EQ(0, allocations);
  EXPECT_EQ(1, send_calls);
}

TEST_F(HotPathTest, AFullWindowIsGatheredToo) {
  Burst(32, 512);
  EXPECT_EQ(0, allocations);
  EXPECT_EQ(2, send_calls);
  EXPECT_EQ(1, receive_calls);
}

TEST_F(HotPathTest, NothingIsReadFromAnEmptySocketTwiceInOneTest) {
  char buffer[64];
  void* data = buffer;
  size_t size = sizeof(buffer);
  int tag = 0, done = 1;
  void* request = nullptr;
  ASSERT_EQ(ncclSuccess, net_->Irecv(recv_, 1, &data, &size, &tag, nullptr, nullptr, &request));
  empty_receive_calls = receive_calls = 0;
  counting = true;
  net_->Test(request, &done, nullptr);
  counting = false;
  EXPECT_EQ(0, done);
  EXPECT_EQ(1, empty_receive_calls);
  EXPECT_EQ(0, receive_calls);
}

std::atomic<int> events{0};

ncclResult_t CountEvent(void** handle, int, void*, int64_t, void*) {
  if (*handle == nullptr) *handle = &events;
  ++events;
  return ncclSuccess;
}

class ProfiledHotPathTest : public HotPathTest {
 protected:
  ProfiledHotPathTest() { parent_ = this; }
  ncclProfilerCallback_t Profiler() override { return &CountEvent; }
};

// A profiler that listens costs its calls: no memory and no system call.
TEST_F(ProfiledHotPathTest, EventsNeedNoMoreThanTheirCalls) {
  events = 0;
  Burst(8, 1024);
  EXPECT_EQ(0, allocations);
  EXPECT_EQ(2, send_calls);
  EXPECT_EQ(1, receive_calls);
  EXPECT_EQ(2 * 8 * 2, events) << "a start and a stop for each end of each message";
}

}  // namespace
}  // namespace tcpx
