#include "net_socket/plugin/context.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/log.h"

namespace tcpx {
namespace {

void AddTo(ContextStatistics* statistics, const Comm& comm) {
  const CommTally tally = comm.numbers().tally();
  CommTally* sum = comm.sends() ? &statistics->sent : &statistics->received;
  sum->messages += tally.messages;
  sum->bytes += tally.bytes;
  AddCounts(kConnectionCounters, tally.counts, &sum->counts);
}

// Empty where nothing happened.
std::string HealedText(const ConnectionCounts& sent, const ConnectionCounts& received) {
  const uint64_t events = sent.lost + sent.moved + sent.resumed + sent.health + received.lost + received.moved +
                          received.resumed + received.health;
  const std::string piloted =
      sent.added + sent.dropped == 0 ? "" : absl::StrFormat(", lanes added: %d, dropped: %d", sent.added, sent.dropped);
  if (events == 0) return piloted;
  const std::string healed = absl::StrFormat(
      ", lanes lost: %d sending, %d receiving; moved: %d; resumed: %d sending, %d receiving; health sockets back: %d "
      "dialled, %d accepted",
      sent.lost, received.lost, sent.moved, sent.resumed, received.resumed, sent.health, received.health);
  return piloted + healed;
}

}  // namespace

Context::Context(const ContextOptions& options, int octet, bool spread_errors)
    : api_version(options.api_version), communicator(std::make_shared<Communicator>()) {
  communicator->id = options.comm_id;
  communicator->log = options.log;
  communicator->profiler = options.profiler;
  communicator->traffic_class = octet;
  communicator->repeat_warnings = !has_finalize();
  communicator->has_finalize = has_finalize();
  communicator->one_sided = options.one_sided;
  // Before v11 a context is the process's: it can't fail with one of its communicators.
  if (has_finalize() && spread_errors) communicator->group = std::make_shared<FailureGroup>();
}

Context* RefusedContext() {
  static Context* const refused = new Context(ContextOptions(), kNoTrafficClass, false);
  return refused;
}

void Context::Add(Comm* comm) {
  comms_.insert(comm);
  ++closed_.connections;
}

void Context::Remove(Comm* comm) {
  if (comms_.erase(comm) == 0) return;
  AddTo(&closed_, *comm);
  const auto numbers = comm->numbers().latest();
  if (numbers.has_value()) totals_.Add(*numbers, true);
}

ContextStatistics Context::Statistics() const {
  ContextStatistics statistics = closed_;
  for (const Comm* comm : comms_) AddTo(&statistics, *comm);
  return statistics;
}

void Context::Release(TransportUse user) const {
  if (user.use_count() == 1) LogStatistics();
}

absl::Status Context::Failure() const {
  FailureGroup* const group = communicator->group.get();
  if (group == nullptr || !group->claimed()) return absl::OkStatus();
  (void)group->Logging();  // Waits for the line of the log that names the cause: the process may exit on the error.
  return absl::UnavailableError(absl::StrCat("another connection of the communicator failed: ", group->cause()));
}

void Context::LogStatistics() const {
  const ContextStatistics all = Statistics();
  if (all.connections == 0) return;
  const uint64_t slow = all.sent.counts.slow;
  TCPX_INFO_TO(communicator->log, "comm %x: %d connections, sent %d messages of %d bytes, received %d of %d%s%s%s",
               communicator->id, all.connections, all.sent.messages, all.sent.bytes, all.received.messages,
               all.received.bytes, TrafficClassSuffix(communicator->traffic_class),
               slow > 0 ? absl::StrFormat(", lanes that became slow: %d", slow) : "",
               HealedText(all.sent.counts, all.received.counts));
  if (!logs_table) return;
  for (const std::string& line : StatsTable(totals_)) {
    TCPX_INFO_TO(communicator->log, "comm %x: %s", communicator->id, line);
  }
}

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
  LogSink another = nullptr;
  for (const auto& [raw, other] : contexts_) {
    if (other->communicator->log == log) return;
    if (other->communicator->log != nullptr) another = other->communicator->log;
  }
  if (another != nullptr) SetLogSink(another);
}

void ContextTable::JoinGroup(Context* context) const {
  const Context* found = nullptr;
  for (const auto& [raw, other] : contexts_) {
    if (other->communicator->id != context->communicator->id || other->communicator->one_sided) continue;
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

// A GPU is only once in a communicator: contexts of the same one are as many GPUs, but for those of RMA tables. NCCL
// makes all of them before the first connects.
int ContextTable::GpuCount() const {
  int most = 1;
  absl::flat_hash_map<uint64_t, int> counts;
  for (const auto& [raw, context] : contexts_) {
    if (raw->has_finalize() && !raw->communicator->one_sided) most = std::max(most, ++counts[raw->communicator->id]);
  }
  return most;
}

ListenComm* OpenObjects::Add(std::unique_ptr<ListenComm> listen) {
  ListenComm* raw = listen.get();
  raw->context->listens.insert(raw);
  listens_[raw] = std::move(listen);
  return raw;
}

std::unique_ptr<ListenComm> OpenObjects::Take(ListenComm* listen) {
  auto found = listens_.find(listen);
  if (found == listens_.end()) return nullptr;
  std::unique_ptr<ListenComm> taken = std::move(found->second);
  listens_.erase(found);
  taken->context->listens.erase(listen);
  return taken;
}

void OpenObjects::CloseListens() {
  for (auto& [raw, listen] : listens_) listen->acceptor->CloseListen(listen->listening);
}

void OpenObjects::Add(Comm* comm, Owner owner) {
  owner.context->Add(comm);
  comms_[comm] = std::move(owner);
}

OpenObjects::Owner OpenObjects::Remove(Comm* comm) {
  auto found = comms_.find(comm);
  Owner owner = std::move(found->second);
  comms_.erase(found);
  owner.context->Remove(comm);
  delete comm;  // After the look-up: a comm that another thread enters now may get the same address.
  return owner;
}

}  // namespace tcpx
