#include "nccl/client/rma_client.h"

namespace tcpx {
namespace {

template <class Table>
std::unique_ptr<RmaClient> WrapRma(FoundTable found) {
  return std::make_unique<RmaClient>(*static_cast<const Table*>(found.table), std::move(found.library));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RmaClient>> RmaClient::Open(const std::string& path, int version) {
  auto found = OpenTable(path, "ncclRmaPlugin", version, kOldestRmaVersion, kNewestRmaVersion);
  if (!found.ok()) return found.status();
  constexpr std::unique_ptr<RmaClient> (*kWrap[])(FoundTable) = {WrapRma<ncclRma_v14_t>, WrapRma<ncclRma_v15_t>,
                                                                 WrapRma<ncclRma_v16_t>};
  return kWrap[found->version - kOldestRmaVersion](*std::move(found));
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
  return Call(old_.iput, table_.iput, flags, request, rma_ctx, context, range.local_offset, range.local, range.bytes,
              range.remote_offset, range.remote, range.rank);
}

ncclResult_t RmaClient::IputSignal(void* rma_ctx, int context, const RmaRange& range, const RmaSignal& signal,
                                   uint32_t flags, void** request) {
  return Call(old_.iputSignal, table_.iputSignal, flags, request, rma_ctx, context, range.local_offset, range.local,
              range.bytes, range.remote_offset, range.remote, range.rank, signal.offset, signal.region, signal.value,
              signal.op, signal.strong);
}

ncclResult_t RmaClient::Iget(void* rma_ctx, int context, const RmaRange& range, uint32_t flags, void** request) {
  return Call(old_.iget, table_.iget, flags, request, rma_ctx, context, range.remote_offset, range.remote, range.bytes,
              range.local_offset, range.local, range.rank);
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
