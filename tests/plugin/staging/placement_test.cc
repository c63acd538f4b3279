// Staging by network card: a device that makeVDevice made stages as its children do, and slots are pinned on the NUMA
// node of the card. The cards are a folder in the place of /sys; their interfaces are those of a network of the test's
// own. What the kernel is asked is seen between the plugin and libc: no answer of a machine with one node would show
// it.
#include <gtest/gtest.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net_socket/plugin/plugin.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_cards.h"
#include "tests/support/gpu_lab.h"
#include "tests/support/own_network.h"
#include "tests/support/pattern.h"
#include "tests/support/seed.h"
#include "tests/unit/common/fake_tree.h"

namespace tcpx {
namespace {

constexpr int kCards = 3;
constexpr size_t kPoolBytes = 1 << 20;
constexpr size_t kSlotBytes = 64 << 10;
constexpr int kPreferred = 1;             // MPOL_PREFERRED (linux/mempolicy.h)
constexpr unsigned kNodeOfAddress = 3;    // MPOL_F_NODE | MPOL_F_ADDR
constexpr unsigned kPolicyOfAddress = 2;  // MPOL_F_ADDR

// One mbind(2) of the plugin's.
struct Wish {
  char* data;
  size_t bytes;
  int mode;
  unsigned long nodes;
  uint64_t pinned_before;
  int error;
};

struct Wishes {
  std::mutex mutex;
  GpuLab* lab = nullptr;
  std::vector<Wish> all;
};
Wishes& TheWishes() {
  static Wishes wishes;
  return wishes;
}

}  // namespace
}  // namespace tcpx

extern "C" {
long __real_syscall(long number, ...);

// The linker sends every call of syscall here first (--wrap, ld(1)).
long __wrap_syscall(long number, ...) {
  long a[6];
  va_list arguments;
  va_start(arguments, number);
  for (long& one : a) one = va_arg(arguments, long);
  va_end(arguments);
  if (number != SYS_mbind) return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  tcpx::Wishes& wishes = tcpx::TheWishes();
  std::lock_guard<std::mutex> lock(wishes.mutex);
  const uint64_t pinned = wishes.lab == nullptr ? 0 : wishes.lab->counts().pinned_bytes;
  const long result = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  // A count of 65 bits is what the kernel reads as the 64 of one word.
  const unsigned long nodes = a[4] == 65 ? *reinterpret_cast<const unsigned long*>(a[3]) : 0;
  wishes.all.push_back({reinterpret_cast<char*>(a[0]), static_cast<size_t>(a[1]), static_cast<int>(a[2]), nodes, pinned,
                        result == 0 ? 0 : errno});
  return result;
}
}

namespace tcpx {
namespace {

// eth0 is on node 0, eth1 on node 1, eth2 on a machine without nodes.
class PlacementTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (InOwnNetwork()) MakeInterfaces(kCards);
  }

  void SetUp() override {
    if (!InOwnNetwork()) GTEST_SKIP() << "no network of the test's own";
    auto lab = GpuLab::Open();
    ASSERT_TRUE(lab.ok()) << lab.status();
    lab_ = *std::move(lab);
    if (!lab_->is_fake()) GTEST_SKIP() << "needs the stand-in driver's account of pinned memory";
    sysfs_.Folder("bus/pci");
    for (int i = 0; i < kCards; ++i) {
      sysfs_.File("class/net/" + CardName(i) + "/speed", "10000\n");
      sysfs_.Folder(CardPath(i));
      sysfs_.File(CardPath(i) + "/numa_node", i == 2 ? "-1\n" : std::to_string(i) + "\n");
      sysfs_.Link(CardPath(i) + "/subsystem", "bus/pci");
      sysfs_.Link("class/net/" + CardName(i) + "/device", CardPath(i));
    }
    setenv("NCCL_SOCKET_IFNAME", "eth", 1);
    setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
    setenv("TCPX_GPU_DIRECT_STAGING", "1", 1);
    setenv("TCPX_TEST_GPU_SLOT_BYTES", std::to_string(kSlotBytes).c_str(), 1);
    setenv("TCPX_GPU_POOL_BYTES", std::to_string(kPoolBytes).c_str(), 1);
    setenv("TCPX_LANES", "4", 1);
    setenv("TCPX_THREADS", "0", 1);
    {
      std::lock_guard<std::mutex> lock(TheWishes().mutex);
      TheWishes().lab = lab_.get();
    }
    Start();
  }

  void TearDown() override {
    End();
    std::lock_guard<std::mutex> lock(TheWishes().mutex);
    TheWishes().lab = nullptr;
  }

  // Anew, for other parameters or cards.
  void Start() {
    End();
    plugin_ = std::make_unique<Plugin>(sysfs_.root());
    ContextOptions options;
    options.api_version = 12;
    auto context = plugin_->CreateContext(options);
    ASSERT_TRUE(context.ok()) << context.status();
    context_ = *context;
    ASSERT_EQ(kCards, plugin_->DeviceCount().value_or(-1));
  }

  void End() {
    if (plugin_ == nullptr) return;
    EXPECT_TRUE(plugin_->DestroyContext(context_).ok());
    EXPECT_TRUE(plugin_->Unload([] { return false; }));
    plugin_.reset();
    EXPECT_EQ(0u, lab_->counts().pinned_bytes);
  }

  int Fuse(const std::vector<int>& children) {
    auto made = plugin_->MakeVirtualDevice(children);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or(-1);
  }

  void Connect(int device) {
    char handle[kHandleBytes] = {};
    auto listen = plugin_->Listen(context_, device, handle);
    ASSERT_TRUE(listen.ok()) << listen.status();
    send_ = receive_ = nullptr;
    Deadline deadline;
    while (send_ == nullptr || receive_ == nullptr) {
      if (send_ == nullptr) {
        auto connected = plugin_->Connect(context_, device, handle, {});
        ASSERT_TRUE(connected.ok()) << connected.status();
        send_ = *connected;
      }
      if (receive_ == nullptr) {
        auto accepted = plugin_->Accept(*listen);
        ASSERT_TRUE(accepted.ok()) << accepted.status();
        receive_ = *accepted;
      }
      ASSERT_TRUE(deadline.Yield());
    }
    plugin_->CloseListen(*listen);
  }

  MemoryRegion* Register(Comm* comm, const GpuBuffer& buffer) {
    auto region = plugin_->RegisterMemory(comm, buffer.data(), buffer.bytes(), MemoryType::kCuda);
    EXPECT_TRUE(region.ok()) << region.status();
    return region.ok() ? *region : nullptr;
  }

  // One message out of GPU memory into GPU memory, over the connection that is up.
  void Move(uint64_t number, size_t bytes) {
    const Pattern pattern(TestSeed(), bytes);
    GpuBuffer from(lab_.get(), bytes + 3), to(lab_.get(), bytes + 5);
    from.Fill('f');
    to.Fill('t');
    from.Write(3, pattern.Bytes(number), bytes);
    MemoryRegion* const from_region = Register(send_, from);
    MemoryRegion* const to_region = Register(receive_, to);
    ASSERT_FALSE(HasFailure());
    void* const data = static_cast<char*>(to.data()) + 1;
    const int tag = 0;
    ReceiveArgs receive_args;
    receive_args.count = 1;
    receive_args.data = &data;
    receive_args.bytes = &bytes;
    receive_args.tags = &tag;
    receive_args.regions = &to_region;
    SendArgs send_args;
    send_args.data = static_cast<char*>(from.data()) + 3;
    send_args.bytes = bytes;
    send_args.region = from_region;
    Request *send = nullptr, *receive = nullptr;
    bool sent = false, received = false;
    int size = -1;
    Deadline deadline;
    while (!sent || !received) {
      if (receive == nullptr) {
        ASSERT_TRUE(plugin_->Receive(receive_, receive_args, &receive).ok());
      } else if (!received) {
        ASSERT_TRUE(plugin_->Test(receive, &received, &size).ok());
      }
      if (send == nullptr) {
        ASSERT_TRUE(plugin_->Send(send_, send_args, &send).ok());
      } else if (!sent) {
        ASSERT_TRUE(plugin_->Test(send, &sent, nullptr).ok());
      }
      ASSERT_TRUE(deadline.Yield());
    }
    EXPECT_EQ(static_cast<int>(bytes), size);
    const std::vector<char> landed = to.Read(0, to.bytes());
    EXPECT_EQ("", pattern.Check(number, landed.data() + 1, bytes));
    EXPECT_EQ('t', landed[0]);
    EXPECT_EQ(std::string(4, 't'), std::string(landed.end() - 4, landed.end()));
    plugin_->DeregisterMemory(send_, from_region);
    plugin_->DeregisterMemory(receive_, to_region);
  }

  // Registers GPU memory with both ends of a connection of `device`, which pins what it needs, and gives what the
  // kernel was asked meanwhile.
  std::vector<Wish> Pin(int device) {
    Connect(device);
    if (HasFatalFailure()) return {};
    {
      std::lock_guard<std::mutex> lock(TheWishes().mutex);
      TheWishes().all.clear();
    }
    pinned_before_ = lab_->counts().pinned_bytes;
    GpuBuffer buffer(lab_.get(), 100);
    for (Comm* comm : {send_, receive_}) plugin_->DeregisterMemory(comm, Register(comm, buffer));
    std::lock_guard<std::mutex> lock(TheWishes().mutex);
    return TheWishes().all;
  }

  // All that was pinned was asked for on `node`, before it was pinned: what is pinned does not move any more.
  void ExpectOn(int node, const std::vector<Wish>& wishes) {
    uint64_t bytes = 0;
    for (const Wish& wish : wishes) {
      EXPECT_EQ(kPreferred, wish.mode);
      EXPECT_EQ(1ul << node, wish.nodes);
      EXPECT_EQ(pinned_before_ + bytes, wish.pinned_before);
      bytes += wish.bytes;
    }
    EXPECT_EQ(lab_->counts().pinned_bytes, pinned_before_ + bytes);
    EXPECT_LT(0u, bytes);
  }

  FakeTree sysfs_;
  std::unique_ptr<GpuLab> lab_;
  std::unique_ptr<Plugin> plugin_;
  Context* context_ = nullptr;
  Comm* send_ = nullptr;
  Comm* receive_ = nullptr;
  uint64_t pinned_before_ = 0;
};

TEST_F(PlacementTest, AFusedDeviceAnnouncesWhatItsChildrenDo) {
  const int fused = Fuse({0, 1});
  const DeviceProperties child = plugin_->GetProperties(0).value_or(DeviceProperties());
  const DeviceProperties made = plugin_->GetProperties(fused).value_or(DeviceProperties());
  EXPECT_EQ(static_cast<int>(MemoryType::kHost) | static_cast<int>(MemoryType::kCuda), child.pointer_support);
  EXPECT_EQ(child.pointer_support, made.pointer_support);
  EXPECT_EQ(8, made.max_receives);
  EXPECT_EQ(child.max_receives, made.max_receives);
}

TEST_F(PlacementTest, BytesArriveExactlyOverAFusedDevice) {
  for (const char* threads : {"0", "2"}) {
    SCOPED_TRACE(threads);
    setenv("TCPX_THREADS", threads, 1);
    ASSERT_NO_FATAL_FAILURE(Start());
    ASSERT_NO_FATAL_FAILURE(Connect(Fuse({0, 1})));
    uint64_t number = 0;
    for (size_t bytes : {size_t{1}, size_t{4096}, kSlotBytes + 1, size_t{3 << 20} + 13}) {
      ASSERT_NO_FATAL_FAILURE(Move(++number, bytes));
    }
  }
}

// NCCL may also fuse once connections are up.
TEST_F(PlacementTest, FusedAfterTheFirstConnection) {
  ASSERT_NO_FATAL_FAILURE(Connect(0));
  ASSERT_NO_FATAL_FAILURE(Move(1, 100000));
  ExpectOn(1, Pin(Fuse({1, 0})));
  ASSERT_NO_FATAL_FAILURE(Move(2, 100000));
}

TEST_F(PlacementTest, SlotsFollowTheCard) {
  ExpectOn(0, Pin(0));
  EXPECT_EQ(2 * (kPoolBytes + kSlotBytes), lab_->counts().pinned_bytes);
  ExpectOn(1, Pin(1));  // Pools of its own, although the GPU is the same.
  EXPECT_EQ(4 * (kPoolBytes + kSlotBytes), lab_->counts().pinned_bytes);
  ExpectOn(1, Pin(1));  // The second connection shares them; its own slot is there too.
  EXPECT_EQ(4 * (kPoolBytes + kSlotBytes) + 2 * kSlotBytes, lab_->counts().pinned_bytes);
}

// The first child's: NCCL measures distances from the PCI path, which is that one's.
TEST_F(PlacementTest, AFusedDeviceFollowsItsFirstCard) {
  ExpectOn(1, Pin(Fuse({1, 0})));
  ExpectOn(0, Pin(Fuse({0, 1})));
}

TEST_F(PlacementTest, NothingIsAskedWithoutANode) {
  EXPECT_TRUE(Pin(2).empty());
  EXPECT_EQ(2 * (kPoolBytes + kSlotBytes), lab_->counts().pinned_bytes);
  ASSERT_NO_FATAL_FAILURE(Move(1, 100000));
}

// A node that this machine does not have, or a kernel that forbids mbind: slots are pinned anywhere, and serve.
TEST_F(PlacementTest, ARefusedWishIsNoFailure) {
  sysfs_.File(CardPath(0) + "/numa_node", "63\n");
  ASSERT_NO_FATAL_FAILURE(Start());
  ExpectOn(63, Pin(0));
  ASSERT_NO_FATAL_FAILURE(Move(1, 100000));
}

// What the kernel made of the wish.
TEST_F(PlacementTest, TheKernelHasTakenTheWish) {
  const std::vector<Wish> wishes = Pin(0);
  ASSERT_FALSE(wishes.empty());
  if (wishes[0].error != 0) GTEST_SKIP() << "mbind is refused here, with errno " << wishes[0].error;
  for (const Wish& wish : wishes) {
    int mode = -1;
    unsigned long nodes = 0;
    ASSERT_EQ(0, syscall(SYS_get_mempolicy, &mode, &nodes, 65ul, wish.data, kPolicyOfAddress));
    EXPECT_EQ(kPreferred, mode);
    EXPECT_EQ(1ul, nodes);
  }
}

TEST_F(PlacementTest, PagesAreOnTheNode) {
  if (access("/sys/devices/system/node/node1", F_OK) != 0) {
    GTEST_SKIP() << "this machine has no NUMA node 1: where pages are shows nothing";
  }
  const std::vector<Wish> wishes = Pin(1);
  ASSERT_FALSE(wishes.empty());
  if (wishes[0].error != 0) GTEST_SKIP() << "mbind is refused here, with errno " << wishes[0].error;
  for (const Wish& wish : wishes) {
    *static_cast<volatile char*>(wish.data) = 1;
    int node = -1;
    ASSERT_EQ(0, syscall(SYS_get_mempolicy, &node, nullptr, 0ul, wish.data, kNodeOfAddress));
    EXPECT_EQ(1, node);
  }
}

}  // namespace
}  // namespace tcpx
