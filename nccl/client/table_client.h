// table_client.h: NetClient over one table, which is in this program or in a library that the client keeps open.
//
// Purpose: the body of NetClient::Open, and direct access for tests that link a table statically. What an old version
//          lacks is filled in as NCCL's adapters do it, so a plugin sees what it would see under NCCL.
// Threads: see net_client.h.
// Units:   sizes are bytes.
// Errors:  the plugin's own results; ncclInternalError for a size that the version can not carry, as in NCCL.
// Source:  the adapters of NCCL 2.28 to 2.30.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include "nccl/client/net_client.h"
#include "nccl/client/open_library.h"
#include "nccl/net_tables.h"

namespace tcpx {

template <class Table>
class TableClient final : public NetClient {
 public:
  // `table` lives while `library` is open; a null library means that it lives as long as the program.
  explicit TableClient(const Table* table, LibraryHandle library = nullptr)
      : library_(std::move(library)), table_(*table) {}

  int version() const override { return kVersion; }
  const char* name() const override { return table_.name; }
  bool has_finalize() const override { return kVersion >= 11; }

  ncclResult_t Init(void** ctx, uint64_t comm_id, int traffic_class, ncclDebugLogger_t log,
                    ncclProfilerCallback_t profiler) override {
    if constexpr (kVersion >= 11) {
      ncclNetCommConfig_v11_t config = {traffic_class};
      return table_.init(ctx, comm_id, &config, log, profiler);
    } else {
      *ctx = nullptr;
      traffic_class_ = traffic_class;
      if constexpr (kVersion == 10) return table_.init(log, profiler);
      if constexpr (kVersion < 10) return table_.init(log);
    }
  }

  ncclResult_t Finalize([[maybe_unused]] void* ctx) override {
    if constexpr (kVersion >= 11) return table_.finalize(ctx);
    return ncclSuccess;
  }

  ncclResult_t Devices(int* count) override { return table_.devices(count); }

  ncclResult_t GetProperties(int dev, ncclNetProperties_v12_t* props) override {
    return Widen(table_.getProperties, dev, props);
  }

  ncclResult_t MakeVDevice([[maybe_unused]] int* dev,
                           [[maybe_unused]] const ncclNetVDeviceProps_v12_t& props) override {
    if constexpr (kVersion >= 11) return Narrow(table_.makeVDevice, dev, props);
    return ncclInvalidUsage;
  }

  ncclResult_t Listen([[maybe_unused]] void* ctx, int dev, void* handle, void** listen_comm) override {
    if constexpr (kVersion >= 11) return table_.listen(ctx, dev, handle, listen_comm);
    if constexpr (kVersion < 11) return table_.listen(dev, handle, listen_comm);
  }

  ncclResult_t Connect([[maybe_unused]] void* ctx, int dev, void* handle, void** send_comm) override {
    [[maybe_unused]] ncclNetDeviceHandle_v7_t* device_comm = nullptr;
    if constexpr (kVersion >= 11) return table_.connect(ctx, dev, handle, send_comm, &device_comm);
    if constexpr (kVersion == 10) {
      ncclNetCommConfig_v10_t config = {traffic_class_};
      return table_.connect(dev, &config, handle, send_comm, &device_comm);
    }
    if constexpr (kVersion >= 7 && kVersion <= 9) return table_.connect(dev, handle, send_comm, &device_comm);
    if constexpr (kVersion < 7) return table_.connect(dev, handle, send_comm);
  }

  ncclResult_t Accept(void* listen_comm, void** recv_comm) override {
    [[maybe_unused]] ncclNetDeviceHandle_v7_t* device_comm = nullptr;
    if constexpr (kVersion >= 7) return table_.accept(listen_comm, recv_comm, &device_comm);
    if constexpr (kVersion < 7) return table_.accept(listen_comm, recv_comm);
  }

  ncclResult_t RegMr(void* comm, void* data, size_t size, int type, void** mhandle) override {
    if constexpr (kVersion >= 8) return table_.regMr(comm, data, size, type, mhandle);
    if (size > INT_MAX) return ncclInternalError;
    return table_.regMr(comm, data, static_cast<int>(size), type, mhandle);
  }

  ncclResult_t DeregMr(void* comm, void* mhandle) override { return table_.deregMr(comm, mhandle); }

  ncclResult_t Isend(void* send_comm, void* data, size_t size, int tag, void* mhandle, [[maybe_unused]] void* phandle,
                     void** request) override {
    if constexpr (kVersion >= 10) return table_.isend(send_comm, data, size, tag, mhandle, phandle, request);
    if constexpr (kVersion == 9) return table_.isend(send_comm, data, size, tag, mhandle, request);
    if constexpr (kVersion <= 8) {
      if (size > MAX_NET_SIZE) return ncclInternalError;
      return table_.isend(send_comm, data, static_cast<int>(size), tag, mhandle, request);
    }
  }

  ncclResult_t Irecv(void* recv_comm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                     [[maybe_unused]] void** phandles, void** request) override {
    if constexpr (kVersion >= 10) return table_.irecv(recv_comm, n, data, sizes, tags, mhandles, phandles, request);
    if constexpr (kVersion == 9) return table_.irecv(recv_comm, n, data, sizes, tags, mhandles, request);
    if constexpr (kVersion <= 8) {
      int int_sizes[kMostGrouped];
      if (!CutSizes(sizes, n, int_sizes)) return ncclInternalError;
      if (*request == OptionalCompletion()) *request = nullptr;
      return table_.irecv(recv_comm, n, data, int_sizes, tags, mhandles, request);
    }
  }

  ncclResult_t Iflush(void* recv_comm, int n, void** data, int* sizes, void** mhandles, void** request) override {
    return table_.iflush(recv_comm, n, data, sizes, mhandles, request);
  }

  ncclResult_t Test(void* request, int* done, int* sizes) override { return table_.test(request, done, sizes); }
  ncclResult_t CloseSend(void* send_comm) override { return table_.closeSend(send_comm); }
  ncclResult_t CloseRecv(void* recv_comm) override { return table_.closeRecv(recv_comm); }
  ncclResult_t CloseListen(void* listen_comm) override { return table_.closeListen(listen_comm); }

 private:
  static constexpr int kVersion = kNetVersion<Table>;
  static_assert(kVersion != 0, "not a table of net_tables.h");
  // NCCL groups at most as many sub-operations as it has channels.
  static constexpr int kMostGrouped = 64;

  static void* OptionalCompletion() { return reinterpret_cast<void*>(intptr_t{NCCL_NET_OPTIONAL_RECV_COMPLETION}); }

  // True exactly when all `n` sizes could be written to `out`.
  static bool CutSizes(const size_t* sizes, int n, int* out) {
    if (n > kMostGrouped) return false;
    for (int i = 0; i < n; ++i) {
      if (sizes[i] > MAX_NET_SIZE) return false;
      out[i] = static_cast<int>(sizes[i]);
    }
    return true;
  }

  template <class Props>
  static ncclResult_t Widen(ncclResult_t (*get)(int, Props*), int dev, ncclNetProperties_v12_t* out) {
    Props in = {};
    const ncclResult_t result = get(dev, &in);
    if (result != ncclSuccess) return result;
    *out = {};
    WidenTo(in, dev, out);
    return ncclSuccess;
  }

  template <class Props>
  static ncclResult_t Narrow(ncclResult_t (*make)(int*, Props*), int* dev, const ncclNetVDeviceProps_v12_t& wide) {
    Props props = {};
    if (make == nullptr || wide.ndevs > static_cast<int>(std::size(props.devs))) return ncclInvalidUsage;
    props.ndevs = wide.ndevs;
    for (int i = 0; i < wide.ndevs; ++i) props.devs[i] = wide.devs[i];
    return make(dev, &props);
  }

  template <class Props>
  static void WidenTo(const Props& in, [[maybe_unused]] int dev, ncclNetProperties_v12_t* out) {
    out->name = in.name;
    out->pciPath = in.pciPath;
    out->guid = in.guid;
    out->ptrSupport = in.ptrSupport;
    out->speed = in.speed;
    out->port = in.port;
    out->latency = in.latency;
    out->maxComms = in.maxComms;
    out->maxRecvs = in.maxRecvs;
    out->netDeviceType = NCCL_NET_DEVICE_HOST;
    out->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
    out->maxMultiRequestSize = 1;
    out->railId = out->planeId = NCCL_NET_ID_UNDEF;
    if constexpr (kVersion >= 7) {
      out->netDeviceType = in.netDeviceType;
      out->netDeviceVersion = in.netDeviceVersion;
    }
    if constexpr (kVersion >= 8) out->regIsGlobal = in.regIsGlobal;
    if constexpr (kVersion >= 9) {
      out->forceFlush = in.forceFlush;
      out->maxP2pBytes = in.maxP2pBytes;
      out->maxCollBytes = in.maxCollBytes;
      out->vProps.ndevs = in.vProps.ndevs;
      for (int i = 0; i < static_cast<int>(std::size(in.vProps.devs)); ++i) out->vProps.devs[i] = in.vProps.devs[i];
    } else {
      out->maxP2pBytes = MAX_NET_SIZE;
      out->maxCollBytes = MAX_COLLNET_SIZE;
      out->vProps.ndevs = 1;
      out->vProps.devs[0] = dev;
    }
    if constexpr (kVersion >= 11) out->maxMultiRequestSize = in.maxMultiRequestSize;
    if constexpr (kVersion >= 12) {
      out->railId = in.railId;
      out->planeId = in.planeId;
    }
  }

  LibraryHandle library_;
  const Table& table_;
  int traffic_class_ = NCCL_NET_TRAFFIC_CLASS_UNDEF;  // v10: from Init to Connect
};

}  // namespace tcpx
