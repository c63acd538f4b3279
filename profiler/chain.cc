#include "profiler/chain.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

constexpr uint64_t kTypesOfV5 = ncclProfileCeColl - 1;
constexpr uint64_t kTypesOfV4 = ncclProfileGroupApi - 1;

// False: the older version has no such event.
template <typename Descriptor>
bool Convert(const Descriptor& from, Descriptor* to) {
  *to = from;
  return true;
}

bool Convert(const ncclProfilerEventDescr_v6_t& from, ncclProfilerEventDescr_v5_t* to) {
  static_assert(sizeof(from) == sizeof(*to), "v6 only adds members to the union");
  if ((from.type & ~kTypesOfV5) != 0) return false;
  memcpy(to, &from, sizeof(*to));
  return true;
}

bool Convert(const ncclProfilerEventDescr_v5_t& from, ncclProfilerEventDescr_v4_t* to) {
  if ((from.type & ~kTypesOfV4) != 0) return false;
  *to = {};
  to->type = static_cast<uint8_t>(from.type);
  to->parentObj = from.parentObj;
  to->rank = from.rank;
  switch (from.type) {
    // The parent of v5 is a call of the application, which v4 does not have.
    case ncclProfileColl:
      to->parentObj = from.coll.parentGroup;
      static_assert(sizeof(to->coll) == offsetof(ncclProfilerColl_v5_t, parentGroup), "v5 adds the group to the end");
      memcpy(&to->coll, &from.coll, sizeof(to->coll));
      break;
    case ncclProfileP2p:
      to->parentObj = from.p2p.parentGroup;
      static_assert(sizeof(to->p2p) == offsetof(ncclProfilerP2p_v5_t, parentGroup), "v5 adds the group to the end");
      memcpy(&to->p2p, &from.p2p, sizeof(to->p2p));
      break;
    case ncclProfileProxyOp:
      to->proxyOp = from.proxyOp;
      break;
    case ncclProfileProxyStep:
      to->proxyStep = from.proxyStep;
      break;
    case ncclProfileKernelCh:
      to->kernelCh = from.kernelCh;
      break;
    case ncclProfileNetPlugin:
      to->netPlugin = from.netPlugin;
      break;
    default:
      break;
  }
  return true;
}

bool Convert(const ncclProfilerEventDescr_v6_t& from, ncclProfilerEventDescr_v4_t* to) {
  ncclProfilerEventDescr_v5_t between;
  return Convert(from, &between) && Convert(between, to);
}

// An older NCCL's events for a newer profiler: never, because Load asks for older versions only.
template <typename From, typename To>
bool Convert(const From&, To*) {
  return false;
}

template <int kOfTable, typename DescriptorOfTable>
struct Facts {
  static constexpr int kNumber = kOfTable;
  using Descriptor = DescriptorOfTable;
};
template <typename Table>
struct Version;
template <>
struct Version<ncclProfiler_v4_t> : Facts<4, ncclProfilerEventDescr_v4_t> {};
template <>
struct Version<ncclProfiler_v5_t> : Facts<5, ncclProfilerEventDescr_v5_t> {};
template <>
struct Version<ncclProfiler_v6_t> : Facts<6, ncclProfilerEventDescr_v6_t> {};

template <typename TablePointer>
using VersionOf = Version<std::remove_pointer_t<TablePointer>>;

}  // namespace

absl::StatusOr<std::unique_ptr<Chain>> Chain::Load(const std::string& path, int version) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  void* const v6 = version >= 6 ? dlsym(library, "ncclProfiler_v6") : nullptr;
  void* const v5 = version >= 5 ? dlsym(library, "ncclProfiler_v5") : nullptr;
  void* const v4 = dlsym(library, "ncclProfiler_v4");
  Table table = static_cast<ncclProfiler_v4_t*>(v4);
  if (v5 != nullptr) table = static_cast<ncclProfiler_v5_t*>(v5);
  if (v6 != nullptr) table = static_cast<ncclProfiler_v6_t*>(v6);
  if (v4 == nullptr && v5 == nullptr && v6 == nullptr) {
    dlclose(library);
    return absl::NotFoundError(absl::StrCat(path, " has no ncclProfiler_v4 to ncclProfiler_v", version));
  }
  return std::unique_ptr<Chain>(new Chain(library, table));
}

Chain::~Chain() { dlclose(library_); }

const char* Chain::name() const {
  return std::visit([](auto* table) { return table->name; }, table_);
}

int Chain::version() const {
  return std::visit([](auto* table) { return VersionOf<decltype(table)>::kNumber; }, table_);
}

ncclResult_t Chain::Init(void** context, int* mask, const CommunicatorFacts& facts) {
  return std::visit(
      [&](auto* table) {
        if constexpr (VersionOf<decltype(table)>::kNumber == 4) {
          return table->init(context, mask, facts.name, facts.id, facts.nodes, facts.ranks, facts.rank, facts.logger);
        } else {
          return table->init(context, facts.id, mask, facts.name, facts.nodes, facts.ranks, facts.rank, facts.logger);
        }
      },
      table_);
}

template <typename Descriptor>
ncclResult_t Chain::Start(void* context, void** handle, const Descriptor& event) {
  return std::visit(
      [&](auto* table) {
        typename VersionOf<decltype(table)>::Descriptor converted;
        if (!Convert(event, &converted)) return ncclSuccess;
        return table->startEvent(context, handle, &converted);
      },
      table_);
}

template ncclResult_t Chain::Start(void*, void**, const ncclProfilerEventDescr_v4_t&);
template ncclResult_t Chain::Start(void*, void**, const ncclProfilerEventDescr_v5_t&);
template ncclResult_t Chain::Start(void*, void**, const ncclProfilerEventDescr_v6_t&);

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
