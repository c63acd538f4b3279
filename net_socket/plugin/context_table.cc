#include "net_socket/plugin/context_table.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/log.h"

namespace tcpx {

void ContextTable::OfferLog(LogSink log) const {
  if (log != nullptr || contexts_.empty()) SetLogSink(log);
}

Context* ContextTable::Add(std::unique_ptr<Context> context) {
  Context* raw = context.get();
  contexts_[raw] = std::move(context);
  if (!raw->has_finalize()) legacy_ = raw;
  return raw;
}

void ContextTable::Remove(Context* context) {
  const LogSink log = context->communicator->log;
  if (context == legacy_) legacy_ = nullptr;
  contexts_.erase(context);
  ReplaceLog(log);
}

void ContextTable::ReplaceLog(LogSink gone) const {
  LogSink another = nullptr;
  for (const auto& [raw, context] : contexts_) {
    if (context->communicator->log == gone) return;
    if (context->communicator->log != nullptr) another = context->communicator->log;
  }
  if (another != nullptr) SetLogSink(another);
}

void ContextTable::JoinGroup(Context* context) const {
  const Context* found = nullptr;
  for (const auto& [raw, other] : contexts_) {
    if (other->communicator->id != context->communicator->id || other->one_sided) continue;
    if (found == nullptr || other->made_by == context->made_by) found = raw;
  }
  if (found == nullptr) return;
  context->communicator->group = found->communicator->group;
  if (context->communicator->traffic_class == kNoTrafficClass) {
    context->communicator->traffic_class = found->communicator->traffic_class;
  }
}

bool ContextTable::ShowsReceiveHint() const {
  return std::any_of(contexts_.begin(), contexts_.end(),
                     [](const auto& entry) { return entry.second->api_version >= 9; });
}

// A GPU is only once in a communicator: contexts of the same one are as many GPUs. NCCL makes all of them before the
// first connects.
int ContextTable::GpuCount() const {
  int most = 1;
  absl::flat_hash_map<uint64_t, int> counts;
  for (const auto& [raw, context] : contexts_) {
    if (raw->has_finalize() && !raw->one_sided) most = std::max(most, ++counts[raw->communicator->id]);
  }
  return most;
}

}  // namespace tcpx
