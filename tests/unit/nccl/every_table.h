// every_table.h: runs a test's body once per exported table.
//
// Purpose: ForEachTable hands out the table itself, ForEachClient a NetClient over it; both start from a fresh fake.
// Threads: none.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gtest/gtest.h"
#include "nccl/client/table_client.h"
#include "nccl/shims.h"
#include "tests/unit/nccl/fake_plugin.h"

namespace tcpx {

// In a generic body: kVersionOf<decltype(table)>.
template <class Reference>
inline constexpr int kVersionOf = kNetVersion<std::decay_t<Reference>>;

template <class Body>
void ForEachTable(Body body) {
  const auto run = [&body](const auto& table) {
    SCOPED_TRACE(testing::Message() << "v" << kVersionOf<decltype(table)>);
    ResetFake();
    body(table);
  };
  run(ncclNetPlugin_v6);
  run(ncclNetPlugin_v7);
  run(ncclNetPlugin_v8);
  run(ncclNetPlugin_v9);
  run(ncclNetPlugin_v10);
  run(ncclNetPlugin_v11);
  run(ncclNetPlugin_v12);
}

template <class Body>
void ForEachClient(Body body) {
  ForEachTable([&body](const auto& table) {
    TableClient<std::decay_t<decltype(table)>> client(&table);
    body(client);
  });
}

// Inits with nothing special and returns the context (null before v11).
inline void* InitPlain(NetClient& net) {
  void* ctx = nullptr;
  EXPECT_EQ(net.Init(&ctx, 1, NCCL_NET_TRAFFIC_CLASS_UNDEF, nullptr, nullptr), ncclSuccess);
  return ctx;
}

// A pointer that must never be followed, as NCCL leaves it in a slot.
inline void* Stale() { return reinterpret_cast<void*>(0xdeadbeefdeadbeef); }
// The preset of irecv's *request.
inline void* Preset() { return reinterpret_cast<void*>(uintptr_t{NCCL_NET_OPTIONAL_RECV_COMPLETION}); }

}  // namespace tcpx
