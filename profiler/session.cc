#include "profiler/session.h"

#include <unistd.h>

#include <atomic>
#include <climits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/params.h"

namespace tcpx {
namespace {

// NCCL's logger of the latest first communicator.
std::atomic<ncclDebugLogger_t> g_logger{nullptr};

void ForwardLog(LogLevel level, uint64_t subsystem, const char* file, int line, const char* text) {
  const ncclDebugLogger_t logger = g_logger.load(std::memory_order_acquire);
  if (logger != nullptr) logger(static_cast<ncclDebugLogLevel>(level), subsystem, file, line, "%s", text);
}

struct Kind {
  const char* name;
  int mask;
};

constexpr Kind kKinds[] = {
    {"api", ncclProfileGroupApi | ncclProfileCollApi | ncclProfileP2pApi | ncclProfileKernelLaunch},
    {"coll",
     ncclProfileGroup | ncclProfileColl | ncclProfileP2p | ncclProfileCeColl | ncclProfileCeSync | ncclProfileCeBatch},
    {"proxy", ncclProfileProxyOp | ncclProfileProxyStep},
    {"net", ncclProfileNetPlugin},
    {"gpu", ncclProfileKernelCh},
    {"control", ncclProfileProxyCtrl},
};

// What all communicators share, from the first to the last.
struct Shared {
  Mutex mutex;
  int sessions TCPX_GUARDED_BY(mutex) = 0;
  // Whole while there is a session, which is whenever NCCL calls.
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Chain> chain;
  std::atomic<int> own_mask{0};
  int chain_mask = 0;  // the other profiler writes it when it likes, as NCCL has it
  std::atomic<int*> nccl_mask{nullptr};
};

Shared& TheShared() {
  static Shared shared;
  return shared;
}

int ChainMask(Shared* shared) { return __atomic_load_n(&shared->chain_mask, __ATOMIC_RELAXED); }

// The other profiler may change its mind.
void ShowMask(Shared* shared) {
  int* const mask = shared->nccl_mask.load(std::memory_order_relaxed);
  const int wanted = shared->own_mask.load(std::memory_order_relaxed) | ChainMask(shared);
  if (__atomic_load_n(mask, __ATOMIC_RELAXED) != wanted) __atomic_store_n(mask, wanted, __ATOMIC_RELAXED);
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "host";
  return name;
}

void StartTrace(const Options& options, const CommunicatorFacts& facts, Shared* shared) {
  Recorder::Settings settings;
  settings.sample = options.trace_sample;
  settings.bytes_max = static_cast<uint64_t>(options.trace_bytes);
  settings.process = absl::StrCat("rank ", facts.rank, ", ", HostName(), ", pid ", getpid());
  if (!options.trace_dir.empty()) {
    settings.path = absl::StrCat(options.trace_dir, "/tcpx-trace.", HostName(), ".", getpid(), ".json");
  }
  shared->recorder = std::make_unique<Recorder>(settings);
  const absl::StatusOr<int> kinds = ParseEventKinds(options.trace_events);
  if (!kinds.ok()) TCPX_WARN("%s", kinds.status().message());
  shared->own_mask = shared->recorder->records() ? kinds.value_or(*ParseEventKinds(Options().trace_events)) : 0;
  if (shared->recorder->records()) TCPX_INFO("the timeline of this rank goes to %s", settings.path);
}

void StartChain(const Options& options, int version, Shared* shared) {
  if (options.profiler_chain.empty()) return;
  absl::StatusOr<std::unique_ptr<Chain>> chain = Chain::Load(options.profiler_chain, version);
  if (!chain.ok()) {
    TCPX_WARN("TCPX_PROFILER_CHAIN: no other profiler: %s", chain.status().message());
    return;
  }
  shared->chain = *std::move(chain);
  TCPX_INFO("events go on to profiler %s by version %d", shared->chain->name(), shared->chain->version());
}

void StartAll(int version, const CommunicatorFacts& facts, Shared* shared) {
  g_logger.store(facts.logger, std::memory_order_release);
  SetLogSink(facts.logger != nullptr ? &ForwardLog : nullptr);
  std::vector<std::string> warnings;
  const Options options = LoadOptions(nullptr, &warnings);
  // The network plugin tells of the others.
  for (const std::string& warning : warnings) {
    if (absl::StrContains(warning, "TCPX_TRACE_") || absl::StrContains(warning, "TCPX_PROFILER_")) {
      TCPX_WARN("%s", warning);
    }
  }
  StartTrace(options, facts, shared);
  StartChain(options, version, shared);
  if (options.trace_dir.empty() && options.profiler_chain.empty()) {
    TCPX_INFO("the profiler does nothing: TCPX_TRACE_DIR names no folder for a timeline");
  }
}

}  // namespace

absl::StatusOr<int> ParseEventKinds(absl::string_view list) {
  int mask = 0;
  for (const absl::string_view name : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
    const int before = mask;
    for (const Kind& kind : kKinds) {
      if (name == kind.name || name == "all") mask |= kind.mask;
    }
    if (mask == before && name != "all") {
      return absl::InvalidArgumentError(
          absl::StrCat("TCPX_TRACE_EVENTS: ", name, " is none of api, coll, proxy, net, gpu, control, all"));
    }
  }
  return mask;
}

ncclResult_t Session::Begin(void** context, int* mask, int version, const CommunicatorFacts& facts) {
  Shared& shared = TheShared();
  MutexLock lock(shared.mutex);
  if (shared.sessions++ == 0) StartAll(version, facts, &shared);
  shared.nccl_mask = mask;
  auto* const session = new Session;
  std::string name = facts.name != nullptr && facts.name[0] != '\0' ? facts.name : absl::StrCat(absl::Hex(facts.id));
  session->communicator_ = shared.recorder->AddCommunicator(name);
  if (shared.chain != nullptr) {
    const ncclResult_t result = shared.chain->Init(&session->chained_, &shared.chain_mask, facts);
    if (result != ncclSuccess) TCPX_WARN("profiler %s failed to start: %d", shared.chain->name(), result);
  }
  ShowMask(&shared);
  *context = session;
  return ncclSuccess;
}

ncclResult_t Session::End(Session* session) {
  Shared& shared = TheShared();
  MutexLock lock(shared.mutex);
  ncclResult_t result = ncclSuccess;
  if (shared.chain != nullptr) result = shared.chain->Finalize(session->chained_);
  delete session;
  if (--shared.sessions > 0) return result;
  shared.recorder.reset();
  shared.chain.reset();
  shared.chain_mask = 0;
  SetLogSink(nullptr);
  return result;
}

template <typename Descriptor>
ncclResult_t Session::Start(void** handle, const Descriptor& event) {
  Shared& shared = TheShared();
  Recorder& recorder = *shared.recorder;
  const auto type = static_cast<int>(event.type);
  const bool chained = shared.chain != nullptr && (ChainMask(&shared) & type) != 0;
  const bool own = (shared.own_mask.load(std::memory_order_relaxed) & type) != 0;
  *handle = recorder.Start(communicator_, FactsOf(event), MonotonicNanos(), own, chained);
  if (shared.chain != nullptr) ShowMask(&shared);
  if (!chained || *handle == nullptr) return ncclSuccess;
  Descriptor theirs = event;
  theirs.parentObj = recorder.Chained(event.parentObj);
  if constexpr (!std::is_same_v<Descriptor, ncclProfilerEventDescr_v4_t>) {
    if (event.type == ncclProfileColl) theirs.coll.parentGroup = recorder.Chained(event.coll.parentGroup);
    if (event.type == ncclProfileP2p) theirs.p2p.parentGroup = recorder.Chained(event.p2p.parentGroup);
  }
  void* other = nullptr;
  const ncclResult_t result = shared.chain->Start(chained_, &other, theirs);
  recorder.SetChained(*handle, other);
  return result;
}

template ncclResult_t Session::Start(void**, const ncclProfilerEventDescr_v4_t&);
template ncclResult_t Session::Start(void**, const ncclProfilerEventDescr_v5_t&);
template ncclResult_t Session::Start(void**, const ncclProfilerEventDescr_v6_t&);

ncclResult_t Session::Stop(void* handle) {
  Shared& shared = TheShared();
  if (handle == nullptr) return ncclSuccess;
  void* const other = shared.chain != nullptr ? shared.recorder->Chained(handle) : nullptr;
  shared.recorder->Stop(handle, MonotonicNanos());
  return other != nullptr ? shared.chain->Stop(other) : ncclSuccess;
}

ncclResult_t Session::Note(void* handle, ncclProfilerEventState_t state, ncclProfilerEventStateArgs_v5_t* args) {
  Shared& shared = TheShared();
  if (handle == nullptr) return ncclSuccess;
  shared.recorder->Note(handle, state, args, MonotonicNanos());
  void* const other = shared.chain != nullptr ? shared.recorder->Chained(handle) : nullptr;
  return other != nullptr ? shared.chain->Note(other, state, args) : ncclSuccess;
}

}  // namespace tcpx
