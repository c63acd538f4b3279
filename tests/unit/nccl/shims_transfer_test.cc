// What the tables do with isend, irecv, iflush and test.
#include <climits>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nccl/shims.h"
#include "tests/unit/nccl/every_table.h"
#include "tests/unit/nccl/fake_plugin.h"

namespace tcpx {
namespace {

// Arguments of a group of two, with all optional ones present.
struct Group {
  int n = 2;
  char memory[2][64];
  void* data[kReceivesMax + 1] = {memory[0], memory[1]};
  size_t sizes[kReceivesMax + 1] = {64, 0};
  int int_sizes[kReceivesMax + 1] = {64, 0};
  int tags[kReceivesMax + 1] = {7, 8};
  void* mhandles[kReceivesMax + 1] = {nullptr, &Fake().region};
  void* phandles[kReceivesMax + 1] = {};
};

ncclResult_t Isend(NetClient& net, void* data, size_t size, void** request) {
  return net.Isend(&Fake().send_comm, data, size, 7, nullptr, nullptr, request);
}

ncclResult_t Irecv(NetClient& net, Group& group, void** request) {
  return net.Irecv(&Fake().receive_comm, group.n, group.data, group.sizes, group.tags, group.mhandles, group.phandles,
                   request);
}

ncclResult_t Iflush(NetClient& net, Group& group, void** request) {
  return net.Iflush(&Fake().receive_comm, group.n, group.data, group.int_sizes, group.mhandles, request);
}

// Posts each kind once over a slot that holds a stale pointer.
void ExpectEachPost(NetClient& net, ncclResult_t result, void* want) {
  Group group;
  void* request = Stale();
  EXPECT_EQ(Isend(net, group.memory[0], 64, &request), result);
  EXPECT_EQ(request, want);
  request = Stale();
  EXPECT_EQ(Irecv(net, group, &request), result);
  EXPECT_EQ(request, want);
  request = Stale();
  EXPECT_EQ(Iflush(net, group, &request), result);
  EXPECT_EQ(request, want);
}

TEST(ShimsTransfer, PostedRequestsAreHandedOut) {
  ForEachClient([](NetClient& net) { ExpectEachPost(net, ncclSuccess, &Fake().request); });
}

TEST(ShimsTransfer, Gotcha01_RequestIsNulledWhenNothingWasPosted) {
  ForEachClient([](NetClient& net) {
    Fake().ready = false;
    ExpectEachPost(net, ncclSuccess, nullptr);
  });
}

TEST(ShimsTransfer, Gotcha01_RequestIsNulledOnError) {
  ForEachClient([](NetClient& net) {
    Fake().status = absl::UnavailableError("peer gone");
    ExpectEachPost(net, ncclRemoteError, nullptr);
  });
}

TEST(ShimsTransfer, Gotcha02_DoneIsAlwaysWritten) {
  ForEachClient([](NetClient& net) {
    int done = 77;
    Fake().done = false;
    EXPECT_EQ(net.Test(&Fake().request, &done, nullptr), ncclSuccess);
    EXPECT_EQ(done, 0);
    Fake().done = true;
    EXPECT_EQ(net.Test(&Fake().request, &done, nullptr), ncclSuccess);
    EXPECT_EQ(done, 1);
    done = 77;
    Fake().status = absl::UnavailableError("peer gone");
    EXPECT_EQ(net.Test(&Fake().request, &done, nullptr), ncclRemoteError);
    EXPECT_EQ(done, 0);
    done = 77;
    EXPECT_EQ(net.Test(nullptr, &done, nullptr), ncclInvalidArgument);
    EXPECT_EQ(done, 0);
    EXPECT_EQ(net.Test(&Fake().request, nullptr, nullptr), ncclInvalidArgument);
  });
}

// irecv as the table has it, with *request as the test sets it: the client would take the preset away before v9.
template <class Table>
ncclResult_t RawIrecv(const Table& table, int n, void** request) {
  constexpr int kVersion = kNetVersion<Table>;
  Group group;
  Comm* comm = &Fake().receive_comm;
  if constexpr (kVersion >= 10) {
    return table.irecv(comm, n, group.data, group.sizes, group.tags, nullptr, nullptr, request);
  } else if constexpr (kVersion == 9) {
    return table.irecv(comm, n, group.data, group.sizes, group.tags, nullptr, request);
  } else {
    return table.irecv(comm, n, group.data, group.int_sizes, group.tags, nullptr, request);
  }
}

TEST(ShimsTransfer, Gotcha03_PresetOfRequestIsAHintFromV9OnForOneBuffer) {
  ForEachTable([](const auto& table) {
    void* const befores[] = {Preset(), Stale(), nullptr};
    for (const int n : {1, 2}) {
      for (void* const before : befores) {
        for (const bool ready : {true, false}) {
          Fake().ready = ready;
          void* request = before;
          EXPECT_EQ(RawIrecv(table, n, &request), ncclSuccess);
          EXPECT_EQ(request, ready ? &Fake().request : nullptr);
          const bool hinted = kVersionOf<decltype(table)> >= 9 && n == 1 && before == Preset();
          EXPECT_EQ(Fake().receive_args.optional_completion, hinted);
        }
      }
    }
  });
}

TEST(ShimsTransfer, Gotcha04_SizesHandlesAndParentsCanBeNull) {
  ForEachClient([](NetClient& net) {
    Group group;
    void* request = nullptr;
    EXPECT_EQ(net.Irecv(&Fake().receive_comm, 2, group.data, group.sizes, group.tags, nullptr, nullptr, &request),
              ncclSuccess);
    EXPECT_EQ(Fake().receive_args.regions, nullptr);
    EXPECT_EQ(Fake().receive_args.profiler_parents, nullptr);
    EXPECT_EQ(net.Iflush(&Fake().receive_comm, 2, group.data, group.int_sizes, nullptr, &request), ncclSuccess);
    EXPECT_EQ(Fake().flush_args.regions, nullptr);
    EXPECT_EQ(Isend(net, group.memory[0], 64, &request), ncclSuccess);
    EXPECT_EQ(Fake().send_args.region, nullptr);
    EXPECT_EQ(Fake().send_args.profiler_parent, nullptr);
    int done = 0;
    EXPECT_EQ(net.Test(request, &done, nullptr), ncclSuccess);
  });
}

TEST(ShimsTransfer, Gotcha07_ZeroBytesIsARealMessage) {
  ForEachClient([](NetClient& net) {
    void* request = nullptr;
    EXPECT_EQ(Isend(net, nullptr, 0, &request), ncclSuccess);
    EXPECT_EQ(request, &Fake().request);
    Group group;
    group.n = 1;
    group.data[0] = nullptr;
    group.sizes[0] = 0;
    request = nullptr;
    EXPECT_EQ(Irecv(net, group, &request), ncclSuccess);
    EXPECT_EQ(request, &Fake().request);
  });
}

TEST(ShimsTransfer, SendArgumentsArrive) {
  ForEachClient([](NetClient& net) {
    char memory[64];
    int parent = 0;
    void* request = nullptr;
    EXPECT_EQ(net.Isend(&Fake().send_comm, memory, 64, 7, &Fake().region, &parent, &request), ncclSuccess);
    const SendArgs& args = Fake().send_args;
    EXPECT_EQ(args.data, memory);
    EXPECT_EQ(args.bytes, 64u);
    EXPECT_EQ(args.tag, 7);
    EXPECT_EQ(args.region, &Fake().region);
    EXPECT_EQ(args.profiler_parent, net.version() >= 10 ? &parent : nullptr);
  });
}

TEST(ShimsTransfer, ReceiveArgumentsArrive) {
  ForEachClient([](NetClient& net) {
    Group group;
    void* request = nullptr;
    EXPECT_EQ(Irecv(net, group, &request), ncclSuccess);
    const ReceiveArgs& args = Fake().receive_args;
    EXPECT_EQ(args.count, 2);
    EXPECT_EQ(args.data, group.data);
    EXPECT_EQ(args.tags, group.tags);
    EXPECT_EQ(args.profiler_parents, net.version() >= 10 ? group.phandles : nullptr);
    EXPECT_EQ(Fake().capacities, (std::vector<size_t>{64, 0}));
    EXPECT_EQ(Fake().regions, (std::vector<MemoryRegion*>{nullptr, &Fake().region}));
    EXPECT_EQ(Iflush(net, group, &request), ncclSuccess);
    EXPECT_EQ(Fake().flush_args.count, 2);
    EXPECT_EQ(Fake().flush_args.data, group.data);
    EXPECT_EQ(Fake().flush_args.bytes, group.int_sizes);
    EXPECT_EQ(Fake().regions, (std::vector<MemoryRegion*>{nullptr, &Fake().region}));
  });
}

TEST(ShimsTransfer, SizesOfTestArrive) {
  ForEachClient([](NetClient& net) {
    Fake().size = 48;
    int done = 0, sizes[1] = {0};
    EXPECT_EQ(net.Test(&Fake().request, &done, sizes), ncclSuccess);
    EXPECT_EQ(sizes[0], 48);
  });
}

TEST(ShimsTransfer, Gotcha23_NegativeIntSizesAreRefused) {
  ForEachTable([](const auto& table) {
    constexpr int kVersion = kVersionOf<decltype(table)>;
    Group group;
    for (const int bad : {-1, INT_MIN}) {
      void* out = Stale();
      group.int_sizes[1] = bad;
      EXPECT_EQ(table.iflush(&Fake().receive_comm, 2, group.data, group.int_sizes, nullptr, &out), ncclInvalidArgument);
      EXPECT_EQ(out, nullptr);
      if constexpr (kVersion <= 8) {
        out = Stale();
        EXPECT_EQ(table.isend(&Fake().send_comm, group.data[0], bad, 0, nullptr, &out), ncclInvalidArgument);
        EXPECT_EQ(out, nullptr);
        out = Stale();
        EXPECT_EQ(table.irecv(&Fake().receive_comm, 2, group.data, group.int_sizes, group.tags, nullptr, &out),
                  ncclInvalidArgument);
        EXPECT_EQ(out, nullptr);
      }
      if constexpr (kVersion <= 7) {
        out = Stale();
        EXPECT_EQ(table.regMr(&Fake().send_comm, group.data[0], bad, NCCL_PTR_HOST, &out), ncclInvalidArgument);
        EXPECT_EQ(out, nullptr);
      }
    }
  });
}

TEST(ShimsTransfer, Gotcha23_LargeSizesKeepEveryBit) {
  ForEachTable([](const auto& table) {
    constexpr int kVersion = kVersionOf<decltype(table)>;
    constexpr size_t kIsendMost = kVersion <= 8 ? INT_MAX : size_t{5} << 32 | 1;
    constexpr size_t kRegMrMost = kVersion <= 7 ? INT_MAX : size_t{5} << 32 | 1;
    char byte = 0;
    void* data = &byte;
    void* out = nullptr;
    int tag = 0;
    if constexpr (kVersion >= 10) {
      size_t size = kIsendMost;
      EXPECT_EQ(table.isend(&Fake().send_comm, data, size, 0, nullptr, nullptr, &out), ncclSuccess);
      EXPECT_EQ(table.irecv(&Fake().receive_comm, 1, &data, &size, &tag, nullptr, nullptr, &out), ncclSuccess);
    } else {
      std::conditional_t<kVersion <= 8, int, size_t> size = kIsendMost;
      EXPECT_EQ(table.isend(&Fake().send_comm, data, size, 0, nullptr, &out), ncclSuccess);
      EXPECT_EQ(table.irecv(&Fake().receive_comm, 1, &data, &size, &tag, nullptr, &out), ncclSuccess);
    }
    EXPECT_EQ(Fake().send_args.bytes, kIsendMost);
    EXPECT_EQ(Fake().capacities, std::vector<size_t>{kIsendMost});
    EXPECT_EQ(table.regMr(&Fake().send_comm, data, kRegMrMost, NCCL_PTR_HOST, &out), ncclSuccess);
    EXPECT_EQ(Fake().bytes, kRegMrMost);
  });
}

TEST(ShimsTransfer, GroupsThatCanNotBeAreRefused) {
  ForEachClient([](NetClient& net) {
    for (const int n : {INT_MIN, -1, 0, kReceivesMax + 1}) {
      Group group;
      group.n = n;
      void* request = Stale();
      EXPECT_EQ(Irecv(net, group, &request), ncclInvalidArgument);
      EXPECT_EQ(request, nullptr);
      request = Stale();
      EXPECT_EQ(Iflush(net, group, &request), ncclInvalidArgument);
      EXPECT_EQ(request, nullptr);
    }
  });
}

// NCCL shows no more than a result's name: the plugin gets the words, and the comm.
TEST(ShimsTransfer, RefusedArgumentsAreReportedInWords) {
  ForEachClient([](NetClient& net) {
    Group g;
    void* out = nullptr;
    Isend(net, nullptr, 8, &out);
    g.n = 0;
    Irecv(net, g, &out);
    g.n = 2;
    g.data[0] = nullptr;
    Irecv(net, g, &out);
    const std::vector<std::string>& said = Fake().misuses;
    ASSERT_EQ(said.size(), 3u);
    EXPECT_EQ(said[0].substr(0, 20), "isend: the buffer is");
    EXPECT_EQ(said[1].substr(0, 16), "irecv: 0 buffers");
    EXPECT_EQ(said[2].substr(0, 17), "irecv: a buffer i");
    EXPECT_EQ(net.Isend(nullptr, nullptr, 8, 0, nullptr, nullptr, &out), ncclInvalidArgument);
    EXPECT_EQ(said.size(), 3u) << "of no comm";
  });
}

TEST(ShimsTransfer, MissingArgumentsAreRefused) {
  ForEachClient([](NetClient& net) {
    Group g;
    Comm* comm = &Fake().receive_comm;
    void* out = Stale();
    EXPECT_EQ(net.Isend(nullptr, g.data[0], 8, 0, nullptr, nullptr, &out), ncclInvalidArgument);
    EXPECT_EQ(out, nullptr);
    EXPECT_EQ(Isend(net, nullptr, 8, &out), ncclInvalidArgument);
    EXPECT_EQ(Isend(net, g.data[0], 8, nullptr), ncclInvalidArgument);
    EXPECT_EQ(net.Irecv(nullptr, 2, g.data, g.sizes, g.tags, nullptr, nullptr, &out), ncclInvalidArgument);
    EXPECT_EQ(net.Irecv(comm, 2, nullptr, g.sizes, g.tags, nullptr, nullptr, &out), ncclInvalidArgument);
    EXPECT_EQ(net.Irecv(comm, 2, g.data, g.sizes, nullptr, nullptr, nullptr, &out), ncclInvalidArgument);
    EXPECT_EQ(net.Iflush(nullptr, 2, g.data, g.int_sizes, nullptr, &out), ncclInvalidArgument);
    EXPECT_EQ(net.Iflush(comm, 2, nullptr, g.int_sizes, nullptr, &out), ncclInvalidArgument);
    EXPECT_EQ(net.Iflush(comm, 2, g.data, nullptr, nullptr, &out), ncclInvalidArgument);
    EXPECT_EQ(net.Iflush(comm, 2, g.data, g.int_sizes, nullptr, nullptr), ncclInvalidArgument);
    g.data[0] = nullptr;
    EXPECT_EQ(Irecv(net, g, &out), ncclInvalidArgument);
    EXPECT_EQ(out, nullptr);
  });
}

// The client reads sizes and *request itself before v9, so these two ask the tables.
TEST(ShimsTransfer, IrecvWithoutSizesOrRequestIsRefused) {
  ForEachTable([](const auto& table) {
    Group g;
    Comm* comm = &Fake().receive_comm;
    void* out = Stale();
    if constexpr (kVersionOf<decltype(table)> <= 9) {
      EXPECT_EQ(table.irecv(comm, 2, g.data, nullptr, g.tags, nullptr, &out), ncclInvalidArgument);
      EXPECT_EQ(table.irecv(comm, 2, g.data, nullptr, g.tags, nullptr, nullptr), ncclInvalidArgument);
    } else {
      EXPECT_EQ(table.irecv(comm, 2, g.data, nullptr, g.tags, nullptr, nullptr, &out), ncclInvalidArgument);
      EXPECT_EQ(table.irecv(comm, 2, g.data, g.sizes, g.tags, nullptr, nullptr, nullptr), ncclInvalidArgument);
    }
    EXPECT_EQ(out, nullptr);
  });
}

}  // namespace
}  // namespace tcpx
