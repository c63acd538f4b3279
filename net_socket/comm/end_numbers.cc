#include "net_socket/comm/end_numbers.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/interfaces.h"
#include "common/socket.h"
#include "net_socket/comm/redialler.h"
#include "net_socket/comm/runtime.h"

namespace tcpx {
namespace {

uint64_t Span0(int64_t from_ns, int64_t to_ns) { return to_ns > from_ns ? static_cast<uint64_t>(to_ns - from_ns) : 0; }

constexpr int kReadAttempts = 100;

}  // namespace

void TransferTimes::Refused() {
  if (refused_ns_ == 0) refused_ns_ = MonotonicNanos();
}

int64_t TransferTimes::Begin(bool timed) {
  timed |= turn_++ % kTimedEvery == 0;
  const int64_t now = std::max<int64_t>(timed ? MonotonicNanos() : CoarseMonotonicNanos(), frontier_ns_);
  latest_ns_ = now;
  if (posted_++ == 0) {
    const Change change(this);
    const int64_t refused = refused_ns_ == 0 ? now : std::clamp<int64_t>(refused_ns_, frontier_ns_, now);
    idle_ns_.Add(Span0(frontier_ns_, refused));
    no_credit_ns_.Add(Span0(refused, now));
    frontier_ns_ = now;
    idle_ = false;
  }
  refused_ns_ = 0;
  return timed ? now : 0;
}

void TransferTimes::End(const Span& span) {
  const bool timed = span.begun_ns != 0;
  const int64_t from = frontier_ns_;
  const int64_t now = std::max(timed ? MonotonicNanos() : CoarseMonotonicNanos(), from);
  const size_t kind = span.bulk ? 1 : 0;
  sizes_[kind].Add(span.bytes);
  if (timed) durations_[kind].Add(Span0(span.begun_ns, now));
  const int64_t done = span.done_ns == 0 ? now : std::clamp(span.done_ns, from, now);
  const int64_t heard = !receives_ ? from : span.first_ns == 0 ? done : std::clamp(span.first_ns, from, done);
  const Change change(this);
  unheard_ns_.Add(Span0(from, heard));
  moving_ns_.Add(Span0(heard, done));
  untested_ns_.Add(Span0(done, now));
  frontier_ns_ = now;
  if (--posted_ == 0) idle_ = true;
}

bool TransferTimes::Read(State* state) const {
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    const uint32_t version = version_.load(std::memory_order_acquire);
    state->waits = {idle_ns_, no_credit_ns_, unheard_ns_, moving_ns_, untested_ns_};
    state->frontier_ns = frontier_ns_;
    state->idle = idle_;
    state->refused = refused_ns_ != 0;
    if (version % 2 == 0 && version_.load(std::memory_order_relaxed) == version) return true;
  }
  return false;
}

// The stretch that is not over yet is guessed from the present state.
WaitNumbers TransferTimes::WaitsUntil(int64_t now_ns, const Flight& flight, bool uncalled, OpenWait* open) const {
  State state;
  if (!Read(&state)) return state.waits;
  if (open->from_ns != state.frontier_ns) {
    open->from_ns = open->looked_ns = state.frontier_ns;
    open->guessed = {};
  }
  const uint64_t more = Span0(open->looked_ns, now_ns);
  open->looked_ns = std::max(open->looked_ns, now_ns);
  open->calls = calls_;
  WaitNumbers* const guessed = &open->guessed;
  if (state.idle) {
    (state.refused ? guessed->no_credit_ns : guessed->idle_ns) += more;
  } else if (flight.messages == 0) {
    guessed->untested_ns += more;
  } else if (receives_ && !flight.total_known) {
    guessed->unheard_ns += more;
    if (uncalled) open->uncalled_unheard_ns += more;
  } else {
    guessed->moving_ns += more;
    if (uncalled) open->uncalled_moving_ns += more;
  }
  WaitNumbers all = state.waits;
  all.idle_ns += guessed->idle_ns;
  all.no_credit_ns += guessed->no_credit_ns;
  all.unheard_ns += guessed->unheard_ns;
  all.moving_ns += guessed->moving_ns;
  all.untested_ns += guessed->untested_ns;
  const uint64_t unheard = std::min(all.unheard_ns, open->uncalled_unheard_ns);
  const uint64_t moving = std::min(all.moving_ns, open->uncalled_moving_ns);
  all.unheard_ns -= unheard;
  all.moving_ns -= moving;
  all.uncalled_ns = unheard + moving;
  return all;
}

void EndNumbers::Join(const Tie& tie) {
  StatsHub* const hub = setup_->runtime->stats;
  if (hub == nullptr) return;
  times_ = std::make_unique<TransferTimes>(!setup_->sends(), MonotonicNanos());
  stats_ = hub->Join(tie.To<NumbersSource>(this), [this](ConnectionNumbers* numbers) { Describe(numbers); });
}

void EndNumbers::Leave() {
  if (stats_ == nullptr) return;
  setup_->runtime->stats->Leave(stats_, [this](ConnectionNumbers* numbers) { ReadCounts(numbers); });
}

void EndNumbers::NoteCaller() {
  caller_ = __builtin_thread_pointer();
  caller_id_.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_relaxed);
}

CommTally EndNumbers::tally() const {
  ConnectionCounts counts = failure_->healing().tally();
  if (setup_->redialler != nullptr) counts.dialled = setup_->redialler->dialled();
  counts.slow = progress_->slow_lanes();
  return {messages(), bytes_[0] + bytes_[1], counts};
}

std::optional<ConnectionNumbers> EndNumbers::latest() const {
  if (stats_ == nullptr) return std::nullopt;
  return stats_->numbers();
}

void EndNumbers::Describe(ConnectionNumbers* numbers) const {
  std::set<std::string> interfaces;
  std::map<std::string, std::string> with;  // Few addresses are many lanes', and each costs a list of all.
  for (const LaneSocket& lane : setup_->lanes) {
    numbers->lanes.emplace_back();
    numbers->lanes.back().open = lane.fd.valid();
    if (!lane.fd.valid()) continue;  // It may be opened.
    const auto [name, is_new] = with.try_emplace(lane.local.HostString());
    if (is_new) name->second = InterfaceWith(lane.local);
    interfaces.insert(name->second.empty() ? "unknown" : name->second);
    numbers->lanes.back().local = lane.local.ToString();
    numbers->lanes.back().peer = lane.peer.ToString();
  }
  numbers->communicator = setup_->communicator->id;
  numbers->connection = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(setup_->connection_id.data()), setup_->connection_id.size() / 2));
  numbers->device = setup_->device;
  numbers->sends = setup_->sends();
  numbers->interfaces = absl::StrJoin(interfaces, "+");
  numbers->peer_host = setup_->lanes[0].peer.HostString();
}

// The link is held, as it is where the reactor looks.
void EndNumbers::ReadNumbers(ConnectionNumbers* numbers) {
  const uint64_t activity = setup_->activity->count();
  if (idle_ && activity == seen_ && numbers->messages[0] + numbers->messages[1] == messages()) {
    numbers->waits = times_->WaitsUntil(MonotonicNanos(), Flight(), false, &numbers->open_wait);
    return;
  }
  ReadCounts(numbers);
  ReadVerdict(numbers);
  seen_ = activity;
  idle_ = numbers->posted == 0 && !numbers->failed && numbers->cause.empty();
  for (const LaneNumbers& lane : numbers->lanes) idle_ = idle_ && !lane.lost && lane.tcp.unacked_bytes == 0;
}

// The verdict in the log line if the connection has failed; else that of a stall; else that of a slow lane.
void EndNumbers::ReadVerdict(ConnectionNumbers* numbers) const {
  const WaitRoot& root = progress_->probe().root();
  Verdict verdict = progress_->slow();
  std::string why = VerdictPrefix(verdict);
  if (failure_->failed()) {
    verdict = failure_->verdict();
    why = failure_->line();
  } else if (root.known()) {
    verdict.cause = root.cause;
    verdict.culprit = root.culprit;
    why = progress_->probe().Why();
  }
  const bool known = verdict.cause != Cause::kNone;
  numbers->cause = known ? CauseName(verdict.cause) : "";
  numbers->culprit = known ? verdict.culprit : "";
  numbers->why = known ? why : "";
}

void EndNumbers::ReadCounts(ConnectionNumbers* numbers) {
  const Flight flight = end_->FlightNow();
  // What is posted when a connection fails is never tested to its end, and waits for nobody.
  if (!failure_->failed()) {
    const bool uncalled = flight.messages > 0 && times_->calls() == numbers->open_wait.calls && HasWorkForCaller();
    numbers->waits = times_->WaitsUntil(MonotonicNanos(), flight, uncalled, &numbers->open_wait);
  }
  numbers->caller = caller();
  numbers->gpu = gpu_.load(std::memory_order_relaxed);
  numbers->posted = flight.messages;
  numbers->failed = failure_->failed();
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t messages = messages_[i].load(std::memory_order_acquire);
    if (numbers->messages[i] != messages) {
      numbers->sizes[i] = times_->sizes(i == 1);
      numbers->durations[i] = times_->durations(i == 1);
    }
    numbers->messages[i] = messages;
    numbers->bytes[i] = bytes_[i].load(std::memory_order_relaxed);
  }
  const ConnectionCounts before = std::exchange(numbers->counts, tally().counts);
  // They have other sockets now.
  const bool others = numbers->counts.resumed != before.resumed || numbers->counts.added != before.added;
  for (int i = 0; i < setup_->lane_count(); ++i) {
    LaneNumbers* const lane = &numbers->lanes[static_cast<size_t>(i)];
    if (others && !table().absent(i)) NameLane(i, lane);
    ReadLane(i, lane);
  }
}

// A request is under way.
bool EndNumbers::HasWorkForCaller() const {
  if (setup_->sends()) return setup_->runtime->pool == nullptr;
  for (int i = 0; i < setup_->lane_count(); ++i) {
    if (table().absent(i)) continue;
    if (UnreadBytes(setup_->lane_fd(i)) > 0 || end_->lanes()->holds(i)) return true;
  }
  return false;
}

void EndNumbers::NameLane(int index, LaneNumbers* lane) const {
  const auto local = LocalAddress(setup_->lane_fd(index));
  const auto peer = PeerAddress(setup_->lane_fd(index));
  if (local.ok()) lane->local = local->ToString();
  if (peer.ok()) lane->peer = peer->ToString();
}

void EndNumbers::ReadLane(int index, LaneNumbers* lane) const {
  const LaneCounts* const counts = end_->lanes()->counts(index);
  if (counts == nullptr) return;
  const uint64_t bytes_before = lane->bytes;
  static_cast<LaneSums&>(*lane) = counts->Now();
  lane->open = !table().absent(index);
  if (lane->open && lane->local.empty()) NameLane(index, lane);  // It was opened just now.
  lane->pace_bytes_per_second = lane->open ? end_->lanes()->pace(index) : 0;
  const bool lost = table().lost(index);
  // The kernel has nothing new to tell of a lane that did nothing, nor of one that is closed.
  const bool quiet = lane->read && lane->bytes == bytes_before && lane->tcp.unacked_bytes == 0 && lane->lost == lost;
  lane->lost = lost;
  if (lane->open && !quiet) ReadTcpNumbers(setup_->lane_fd(index), lane);
  if (!lane->open) lane->tcp.unacked_bytes = 0;
}

}  // namespace tcpx
