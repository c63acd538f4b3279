// rma_rank.h: one of the two ranks of a group whose ranks are processes.
//
// Threads: one. Lifetime: the destructor unloads; closing is the caller's.
// Errors:  every refusal that a healthy plugin does not give ends the process.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "nccl/client/rma_client.h"
#include "tests/support/plugin_log.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {

class RmaRank {
 public:
  static constexpr size_t kBytes = 1 << 20;
  static constexpr int kParts = 9;
  static constexpr uint64_t kCommId = 42;  // as the net table's in rank.h

  RmaRank(Control* peer, int rank) : rma(Must(RmaClient::Open(kPluginPath))), rank_(rank) {
    Succeeds(rma->Init(&context_, kCommId, &RecordLog), "init");
    std::array<char, NCCL_NET_HANDLE_MAXSIZE> handles[2] = {};
    void* listen = nullptr;
    Succeeds(rma->Listen(context_, 0, handles[rank].data(), &listen), "listen");
    peer->Send(handles[rank].data(), handles[rank].size());
    peer->Receive(handles[1 - rank].data(), handles[1 - rank].size());
    void* all[] = {handles[0].data(), handles[1].data()};
    Succeeds(rma->Connect(nullptr, all, 2, rank, listen, &group), "connect");
    Succeeds(rma->CloseListen(listen), "closeListen");
    Succeeds(rma->CreateContext(group, 1, NCCL_NET_TRAFFIC_CLASS_UNDEF, &contexts), "createContext");
    Succeeds(rma->RegMrSym(group, window.data(), kBytes, NCCL_PTR_CUDA, 0, &mhandle), "regMrSym");
    // NCCL's registration is over when all ranks have registered.
    peer->Tell('r');
    peer->Await('r');
  }

  static void Succeeds(ncclResult_t result, const char* call) {
    TCPX_REQUIRE(result == ncclSuccess, call, " returned ", result, "; ", LogText());
  }
  void* context() const { return context_; }
  uint32_t peer() const { return static_cast<uint32_t>(1 - rank_); }
  uint64_t Word(size_t index) const { return __atomic_load_n(&window[index], __ATOMIC_ACQUIRE); }
  // All of the window but its first page, whose first word it signals. Null: an error.
  void* Put() { return Put(kFirst, kBytes - kFirst); }
  // One of kParts of it: puts that no signal orders may write no byte twice.
  void* PutPart(int part) {
    constexpr size_t kPartBytes = (kBytes - kFirst) / kParts;
    return Put(kFirst + static_cast<size_t>(part % kParts) * kPartBytes, kPartBytes);
  }
  bool failed() {
    bool has_failed = false;
    Succeeds(rma->QueryLastError(contexts, &has_failed), "queryLastError");
    return has_failed;
  }
  void Close() {
    Succeeds(rma->DestroyContext(contexts), "destroyContext");
    Succeeds(rma->CloseColl(group), "closeColl");
    Succeeds(rma->Finalize(context_), "finalize");
  }

  const std::unique_ptr<RmaClient> rma;
  void* group = nullptr;
  void* contexts = nullptr;
  void* mhandle = nullptr;

  std::vector<uint64_t> window = std::vector<uint64_t>(kBytes / sizeof(uint64_t));

 private:
  static constexpr size_t kFirst = 4096;

  void* Put(size_t offset, size_t bytes) {
    void* request = nullptr;
    (void)rma->IputSignal(contexts, 0, {mhandle, offset, mhandle, offset, bytes, peer()}, {mhandle}, 0, &request);
    return request;
  }

  const int rank_;
  void* context_ = nullptr;
};

}  // namespace tcpx
