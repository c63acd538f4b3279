// The exported tables of libnccl-profiler-tcpx.so, and what all communicators share.
//
// Purpose: begins the trace, tcpx-trace.HOST.MARK.json (this_host.h), with the first communicator and ends it with
//          the last one; hands each event to the recorder and to the profiler after this one.
// Threads: Begin and End by any, one at a time for a communicator; the rest by several at once.
// Units:   nanoseconds of MonotonicNanos.
// Lifetime: exit without End writes what is over and ends the trace, while NCCL's threads may still call; dlclose
//          after the last End leaves nothing. A handle that comes after the last End finds nothing. In a forked child
//          all does nothing, and the trace stays its parent's.
// Errors:  a trace or a profiler that can't be had is one WARN; Begin succeeds all the same, and the job runs.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/params.h"
#include "common/this_host.h"
#include "profiler/chain.h"
#include "profiler/recorder.h"

namespace tcpx {
namespace {

// NCCL's logger of the latest first communicator.
std::atomic<ncclDebugLogger_t> g_logger{nullptr};

void ForwardLog(LogLevel level, uint64_t subsystem, const char* file, int line, const char* text) {
  const ncclDebugLogger_t logger = g_logger.load(std::memory_order_acquire);
  if (logger != nullptr) logger(static_cast<ncclDebugLogLevel>(level), subsystem, file, line, "%s", text);
}

// The activation mask of a list of kinds; all of them for "all".
absl::StatusOr<int> ParseEventKinds(absl::string_view list) {
  int mask = 0;
  for (const absl::string_view name : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
    const int before = mask;
    for (const EventType& type : kEventTypes) {
      if (name == type.kind || name == "all") mask |= static_cast<int>(type.bit);
    }
    if (mask == before && name != "all") {
      return absl::InvalidArgumentError(
          absl::StrCat("TCPX_TRACE_EVENTS: ", name, " is none of api, coll, proxy, net, gpu, control, all"));
    }
  }
  return mask;
}

// What there is from the first communicator to the last.
struct Running {
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Chain> chain;  // may be null
};

// What all communicators share.
struct Shared {
  Mutex mutex;
  int sessions TCPX_GUARDED_BY(mutex) = 0;
  bool prepared TCPX_GUARDED_BY(mutex) = false;  // for forks
  std::atomic<Running*> running{nullptr};
  std::atomic<int> calls{0};  // that may use what `running` names
  std::atomic<int> own_mask{0};
  int chain_mask = 0;  // the other profiler writes it when it likes, as NCCL has it
  std::atomic<int*> nccl_mask{nullptr};
};

std::atomic<bool> g_forked{false};

// Never destroyed: at exit NCCL's threads may be inside. It holds no memory of its own while there is no session.
Shared& TheShared() {
  alignas(Shared) static char memory[sizeof(Shared)];
  static Shared* const shared = new (memory) Shared;
  return *shared;
}

// Keeps what it names for the length of a call; null after the last communicator and in a forked child.
class Call {
 public:
  Call() : shared_(TheShared()) {
    // Counted before it looks, and Retire looks after its store: one of both sees the other.
    shared_.calls.fetch_add(1);
    if (!Forked()) running_ = shared_.running.load();
  }
  ~Call() { shared_.calls.fetch_sub(1); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  static bool Forked() { return g_forked.load(std::memory_order_relaxed); }
  explicit operator bool() const { return running_ != nullptr; }
  Recorder& recorder() const { return *running_->recorder; }
  Chain* chain() const { return running_->chain.get(); }

 private:
  Shared& shared_;
  Running* running_ = nullptr;
};

// Waits for the calls that are under way.
void Retire(Shared* shared) TCPX_REQUIRES(shared->mutex) {
  const std::unique_ptr<Running> running(shared->running.exchange(nullptr));
  while (shared->calls.load() != 0) sched_yield();
}

void DisableInForkedChild() {
  g_forked.store(true, std::memory_order_relaxed);
  CloseAllOwnedFdsInChild();
  SetLogSink(nullptr);  // NCCL's logger has a lock that another thread may have held at the fork.
}

// Runs at dlclose and at exit. A thread that begins or ends a communicator right now keeps the trace without its end,
// which can be read too.
__attribute__((destructor)) void EndTraceAtExit() {
  if (Call::Forked()) return;
  Shared& shared = TheShared();
  if (!shared.mutex.try_lock()) return;
  MutexLock lock(shared.mutex, std::adopt_lock);
  const Running* const running = shared.running.load();
  if (running != nullptr) running->recorder->EndTrace();
}

int ChainMask(Shared* shared) { return __atomic_load_n(&shared->chain_mask, __ATOMIC_RELAXED); }

// The other profiler may change its mind.
void ShowMask(Shared* shared) {
  int* const mask = shared->nccl_mask.load(std::memory_order_relaxed);
  const int wanted = shared->own_mask.load(std::memory_order_relaxed) | ChainMask(shared);
  if (__atomic_load_n(mask, __ATOMIC_RELAXED) != wanted) __atomic_store_n(mask, wanted, __ATOMIC_RELAXED);
}

// The size of a rank's timeline, both files together.
constexpr uint64_t kTraceBytes = 256 << 20;

std::unique_ptr<Recorder> StartTrace(const Options& options, const CommunicatorFacts& facts, Shared* shared) {
  std::string host = HostName();
  if (host.empty()) host = "host";
  Recorder::Settings settings;
  settings.sample = options.trace_sample;
  settings.bytes_max = kTraceBytes;
  settings.process = absl::StrCat("rank ", facts.rank, ", ", host, ", pid ", getpid());
  if (!options.trace_dir.empty()) {
    settings.path = absl::StrCat(options.trace_dir, "/tcpx-trace.", host, ".", ProcessMark(), ".json");
  }
  auto recorder = std::make_unique<Recorder>(settings);
  const absl::StatusOr<int> kinds = ParseEventKinds(options.trace_events);
  if (!kinds.ok()) TCPX_WARN("%s", kinds.status().message());
  shared->own_mask = recorder->records() ? kinds.value_or(*ParseEventKinds(Options().trace_events)) : 0;
  if (recorder->records()) TCPX_INFO("the timeline of this rank goes to %s", settings.path);
  return recorder;
}

// Null: there is none.
std::unique_ptr<Chain> StartChain(const Options& options, int version) {
  if (options.profiler_chain.empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<Chain>> chain = Chain::Load(options.profiler_chain, version);
  if (!chain.ok()) {
    TCPX_WARN("TCPX_PROFILER_CHAIN: no other profiler: %s", chain.status().message());
    return nullptr;
  }
  TCPX_INFO("events go on to profiler %s by version %d", (*chain)->name(), (*chain)->version());
  return *std::move(chain);
}

// The network plugin tells of the others.
const char* GetOwnParameter(const char* name) {
  const bool own = absl::StartsWith(name, "TCPX_TRACE_") || absl::StartsWith(name, "TCPX_PROFILER_");
  return own ? getenv(name) : nullptr;
}

void StartAll(int version, const CommunicatorFacts& facts, Shared* shared) TCPX_REQUIRES(shared->mutex) {
  // glibc forgets the handler when the library is unloaded.
  if (!shared->prepared) pthread_atfork(nullptr, nullptr, &DisableInForkedChild);
  shared->prepared = true;
  g_logger.store(facts.logger, std::memory_order_release);
  SetLogSink(facts.logger != nullptr ? &ForwardLog : nullptr);
  std::vector<std::string> warnings;
  const Options options = LoadOptions(&GetOwnParameter, &warnings);
  for (const std::string& warning : warnings) TCPX_WARN("%s", warning);
  auto running = std::make_unique<Running>();
  running->recorder = StartTrace(options, facts, shared);
  running->chain = StartChain(options, version);
  shared->running.store(running.release());
  if (options.trace_dir.empty() && options.profiler_chain.empty()) {
    TCPX_INFO("the profiler does nothing: TCPX_TRACE_DIR names no folder for a timeline");
  }
}

// False: this communicator is none of the other profiler's.
bool BeginChained(Chain* chain, const CommunicatorFacts& facts, Shared* shared, void** context) {
  if (chain == nullptr) return false;
  const int mask = ChainMask(shared);
  const ncclResult_t result = chain->Init(context, &shared->chain_mask, facts);
  if (result == ncclSuccess) return true;
  TCPX_WARN("profiler %s failed to start: %d", chain->name(), result);
  __atomic_store_n(&shared->chain_mask, mask, __ATOMIC_RELAXED);
  return false;
}

// A communicator.
struct Session {
  uint32_t communicator = 0;
  bool has_chain = false;   // the other profiler knows of it
  void* chained = nullptr;  // the other profiler's context
};

ncclResult_t Begin(void** context, int* mask, int version, const CommunicatorFacts& facts) {
  auto* const session = new Session;
  *context = session;
  if (Call::Forked()) {
    *mask = 0;
    return ncclSuccess;
  }
  Shared& shared = TheShared();
  MutexLock lock(shared.mutex);
  if (shared.sessions++ == 0) StartAll(version, facts, &shared);
  shared.nccl_mask = mask;
  const Call call;
  std::string name = facts.name != nullptr && facts.name[0] != '\0' ? facts.name : absl::StrCat(absl::Hex(facts.id));
  session->communicator = call.recorder().AddCommunicator(name);
  session->has_chain = BeginChained(call.chain(), facts, &shared, &session->chained);
  ShowMask(&shared);
  return ncclSuccess;
}

ncclResult_t InitV4(void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks, int rank,
                    ncclDebugLogger_t logger) {
  return Begin(context, mask, 4, {id, name, nodes, ranks, rank, logger});
}

template <int kVersion>
ncclResult_t Init(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
                  ncclDebugLogger_t logger) {
  return Begin(context, mask, kVersion, {id, name, nodes, ranks, rank, logger});
}

ncclResult_t End(void* context) {
  const std::unique_ptr<Session> session(static_cast<Session*>(context));
  if (Call::Forked()) return ncclSuccess;
  Shared& shared = TheShared();
  MutexLock lock(shared.mutex);
  ncclResult_t result = ncclSuccess;
  Running& running = *shared.running.load();
  if (session->has_chain) result = running.chain->Finalize(session->chained);
  running.recorder->EndCommunicator(session->communicator);
  if (--shared.sessions > 0) return result;
  Retire(&shared);
  shared.chain_mask = 0;
  SetLogSink(nullptr);
  return result;
}

ncclResult_t StartWidened(const Session& session, void** handle, const ncclProfilerEventDescr_v6_t& event) {
  *handle = nullptr;
  const Call call;
  if (!call) return ncclSuccess;
  Shared& shared = TheShared();
  Recorder& recorder = call.recorder();
  const auto type = static_cast<int>(event.type);
  const bool chained = session.has_chain && (ChainMask(&shared) & type) != 0;
  const bool own = (shared.own_mask.load(std::memory_order_relaxed) & type) != 0;
  *handle = recorder.Start(session.communicator, FactsOf(event), MonotonicNanos(), own, chained);
  if (session.has_chain) ShowMask(&shared);
  if (!chained || *handle == nullptr) return ncclSuccess;
  ncclProfilerEventDescr_v6_t theirs = event;
  theirs.parentObj = recorder.Chained(event.parentObj);
  if (event.type == ncclProfileColl) theirs.coll.parentGroup = recorder.Chained(event.coll.parentGroup);
  if (event.type == ncclProfileP2p) theirs.p2p.parentGroup = recorder.Chained(event.p2p.parentGroup);
  void* other = nullptr;
  const ncclResult_t result = call.chain()->Start(session.chained, &other, theirs);
  recorder.SetChained(*handle, other);
  return result;
}

template <typename Descriptor>
ncclResult_t Start(void* context, void** handle, Descriptor* event) {
  return StartWidened(*static_cast<Session*>(context), handle, Widened(*event));
}

ncclResult_t Stop(void* handle) {
  if (handle == nullptr) return ncclSuccess;
  const Call call;
  if (!call) return ncclSuccess;
  void* const other = call.chain() != nullptr ? call.recorder().Chained(handle) : nullptr;
  call.recorder().Stop(handle, MonotonicNanos());
  return other != nullptr ? call.chain()->Stop(other) : ncclSuccess;
}

ncclResult_t Note(void* handle, ncclProfilerEventState_t state, ncclProfilerEventStateArgs_v5_t* args) {
  if (handle == nullptr) return ncclSuccess;
  const Call call;
  if (!call) return ncclSuccess;
  call.recorder().Note(handle, state, args, MonotonicNanos());
  void* const other = call.chain() != nullptr ? call.recorder().Chained(handle) : nullptr;
  return other != nullptr ? call.chain()->Note(other, state, args) : ncclSuccess;
}

}  // namespace
}  // namespace tcpx

extern "C" {

#pragma GCC visibility push(default)
ncclProfiler_v4_t ncclProfiler_v4 = {"tcpx", tcpx::InitV4, tcpx::Start, tcpx::Stop, tcpx::Note, tcpx::End};
ncclProfiler_v5_t ncclProfiler_v5 = {"tcpx", tcpx::Init<5>, tcpx::Start, tcpx::Stop, tcpx::Note, tcpx::End};
ncclProfiler_v6_t ncclProfiler_v6 = {"tcpx", tcpx::Init<6>, tcpx::Start, tcpx::Stop, tcpx::Note, tcpx::End};
#pragma GCC visibility pop

}  // extern "C"
