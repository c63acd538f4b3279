#include "nccl/client/rma_client.h"

namespace tcpx {
namespace {

template <class Table>
std::unique_ptr<RmaClient> WrapRma(const void* table, LibraryHandle library) {
  return std::make_unique<RmaClient>(*static_cast<const Table*>(table), std::move(library));
}

std::unique_ptr<RmaClient> WrapRmaVersion(int version, const void* table, LibraryHandle library) {
  if (version == 14) return WrapRma<ncclRma_v14_t>(table, std::move(library));
  if (version == 15) return WrapRma<ncclRma_v15_t>(table, std::move(library));
  return WrapRma<ncclRma_v16_t>(table, std::move(library));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RmaClient>> RmaClient::Open(const std::string& path, int version) {
  auto found = OpenTable(path, "ncclRmaPlugin", version, {kOldestRmaVersion, kNewestRmaVersion});
  if (!found.ok()) return found.status();
  return WrapRmaVersion(found->version, found->table, std::move(found->library));
}

template <class Table>
void RmaClient::TakeCommon(const Table& table) {
  table_.name = table.name;
  table_.init = table.init;
  table_.devices = table.devices;
  table_.getProperties = table.getProperties;
  table_.listen = table.listen;
  table_.connect = table.connect;
  table_.createContext = table.createContext;
  table_.regMrSym = table.regMrSym;
  table_.regMrSymDmaBuf = table.regMrSymDmaBuf;
  table_.deregMrSym = table.deregMrSym;
  table_.destroyContext = table.destroyContext;
  table_.closeColl = table.closeColl;
  table_.closeListen = table.closeListen;
  table_.iflush = table.iflush;
  table_.test = table.test;
  table_.rmaProgress = table.rmaProgress;
  table_.queryLastError = table.queryLastError;
  table_.finalize = table.finalize;
}

RmaClient::RmaClient(const ncclRma_v14_t& table, LibraryHandle library) : RmaClient(14, std::move(library)) {
  TakeCommon(table);
  old_ = table;
}

RmaClient::RmaClient(const ncclRma_v15_t& table, LibraryHandle library) : RmaClient(15, std::move(library)) {
  TakeCommon(table);
  table_.iput = table.iput;
  table_.iputSignal = table.iputSignal;
  table_.iget = table.iget;
}

RmaClient::RmaClient(const ncclRma_v16_t& table, LibraryHandle library) : RmaClient(16, std::move(library)) {
  table_ = table;
}

ncclResult_t RmaClient::GetRmaProperties(void* coll_comm, ncclRmaProperties_v16_t* props) {
  *props = {};
  return table_.getRmaProperties == nullptr ? ncclSuccess : table_.getRmaProperties(coll_comm, props);
}

ncclResult_t RmaClient::CreateContext(void* coll_comm, int count, int traffic_class, void** rma_ctx) {
  ncclRmaConfig_v16_t config = {count, traffic_class, 1};
  return table_.createContext(coll_comm, &config, rma_ctx);
}

ncclResult_t RmaClient::Iput(void* rma_ctx, int context, const RmaRange& range, uint32_t flags, void** request) {
  if (version_ == 14) {
    return old_.iput(rma_ctx, context, range.local_offset, range.local, range.bytes, range.remote_offset, range.remote,
                     range.rank, request);
  }
  return table_.iput(rma_ctx, context, range.local_offset, range.local, range.bytes, range.remote_offset, range.remote,
                     range.rank, flags, request);
}

ncclResult_t RmaClient::IputSignal(void* rma_ctx, int context, const RmaRange& range, const RmaSignal& signal,
                                   uint32_t flags, void** request) {
  if (version_ == 14) {
    return old_.iputSignal(rma_ctx, context, range.local_offset, range.local, range.bytes, range.remote_offset,
                           range.remote, range.rank, signal.offset, signal.region, signal.value, signal.op,
                           signal.strong, request);
  }
  return table_.iputSignal(rma_ctx, context, range.local_offset, range.local, range.bytes, range.remote_offset,
                           range.remote, range.rank, signal.offset, signal.region, signal.value, signal.op,
                           signal.strong, flags, request);
}

ncclResult_t RmaClient::Iget(void* rma_ctx, int context, const RmaRange& range, uint32_t flags, void** request) {
  if (version_ == 14) {
    return old_.iget(rma_ctx, context, range.remote_offset, range.remote, range.bytes, range.local_offset, range.local,
                     range.rank, request);
  }
  return table_.iget(rma_ctx, context, range.remote_offset, range.remote, range.bytes, range.local_offset, range.local,
                     range.rank, flags, request);
}

ncclResult_t RmaClient::Iflush(void* rma_ctx, int context, void* mhandle, uint32_t rank, void** request) {
  *request = nullptr;
  return table_.iflush == nullptr ? ncclSuccess : table_.iflush(rma_ctx, context, mhandle, rank, request);
}

ncclResult_t RmaClient::Progress(void* rma_ctx) {
  return table_.rmaProgress == nullptr ? ncclSuccess : table_.rmaProgress(rma_ctx);
}

ncclResult_t RmaClient::QueryLastError(void* rma_ctx, bool* has_error) {
  *has_error = false;
  return table_.queryLastError == nullptr ? ncclSuccess : table_.queryLastError(rma_ctx, has_error);
}

}  // namespace tcpx
