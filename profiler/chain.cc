#include "profiler/chain.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

// The events that v4, v5 and v6 have.
constexpr uint64_t kTypes[] = {ncclProfileGroupApi - 1, ncclProfileCeColl - 1, ~uint64_t{0}};

void Narrow(const ncclProfilerEventDescr_v6_t& from, ncclProfilerEventDescr_v6_t* to) { *to = from; }

void Narrow(const ncclProfilerEventDescr_v6_t& from, ncclProfilerEventDescr_v4_t* to) {
  *to = {};
  to->type = static_cast<uint8_t>(from.type);
  to->parentObj = from.parentObj;
  to->rank = from.rank;
  static_assert(sizeof(*to) == offsetof(ncclProfilerEventDescr_v4_t, coll) + sizeof(to->coll), "coll is the largest");
  memcpy(&to->coll, &from.coll, sizeof(to->coll));
  // The parent of v5 is a call of the application, which v4 does not have.
  if (from.type == ncclProfileColl) to->parentObj = from.coll.parentGroup;
  if (from.type == ncclProfileP2p) to->parentObj = from.p2p.parentGroup;
}

template <typename Descriptor>
ncclResult_t StartNarrowed(ncclResult_t (*start)(void*, void**, Descriptor*), void* context, void** handle,
                           const ncclProfilerEventDescr_v6_t& event) {
  Descriptor narrowed;
  Narrow(event, &narrowed);
  return start(context, handle, &narrowed);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chain>> Chain::Load(const std::string& path, int version) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  for (int older = version; older >= 4; --older) {
    void* const symbol = dlsym(library, absl::StrCat("ncclProfiler_v", older).c_str());
    if (symbol == nullptr) continue;
    Table table = static_cast<ncclProfiler_v4_t*>(symbol);
    if (older >= 5) table = static_cast<ncclProfiler_v5_t*>(symbol);
    return std::unique_ptr<Chain>(new Chain(library, older, table));
  }
  dlclose(library);
  return absl::NotFoundError(absl::StrCat(path, " has no ncclProfiler_v4 to ncclProfiler_v", version));
}

Chain::~Chain() { dlclose(library_); }

const char* Chain::name() const {
  return std::visit([](auto* table) { return table->name; }, table_);
}

ncclResult_t Chain::Init(void** context, int* mask, const CommunicatorFacts& facts) {
  return std::visit(
      [&](auto* table) {
        if constexpr (std::is_same_v<decltype(table), ncclProfiler_v4_t*>) {
          return table->init(context, mask, facts.name, facts.id, facts.nodes, facts.ranks, facts.rank, facts.logger);
        } else {
          return table->init(context, facts.id, mask, facts.name, facts.nodes, facts.ranks, facts.rank, facts.logger);
        }
      },
      table_);
}

ncclResult_t Chain::Start(void* context, void** handle, const ncclProfilerEventDescr_v6_t& event) {
  if ((event.type & ~kTypes[version_ - 4]) != 0) return ncclSuccess;  // It has no such event.
  return std::visit([&](auto* table) { return StartNarrowed(table->startEvent, context, handle, event); }, table_);
}

ncclResult_t Chain::Stop(void* handle) {
  return std::visit([&](auto* table) { return table->stopEvent(handle); }, table_);
}

ncclResult_t Chain::Note(void* handle, ncclProfilerEventState_t state, ncclProfilerEventStateArgs_v5_t* args) {
  return std::visit([&](auto* table) { return table->recordEventState(handle, state, args); }, table_);
}

ncclResult_t Chain::Finalize(void* context) {
  return std::visit([&](auto* table) { return table->finalize(context); }, table_);
}

}  // namespace tcpx
