#include "bench/netns/wire/network.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tcpx {
namespace wire {
namespace {

// Flows that ended are not seen to end: forgotten with all the others when there are this many.
constexpr size_t kFlowsMax = 65536;

uint64_t SegmentBytes(const Piece& piece) { return piece.wire_bytes / static_cast<uint64_t>(piece.segments); }

}  // namespace

Network::Network(int ends, const Settings& settings, uint64_t seed)
    : seed_(seed), random_(seed), ways_(static_cast<size_t>(ends)) {
  Change(settings);
}

void Network::Change(const Settings& settings) {
  // Their flows choose anew, and what is under way on a path that goes is lost.
  if (settings.paths.size() != settings_.paths.size()) flows_.clear();
  settings_ = settings;
  for (Way& way : ways_) way.paths.resize(settings.paths.size());
}

Network::Flow* Network::FlowOf(const FlowKey& key, int to) {
  if (auto known = flows_.find(key); known != flows_.end()) return &known->second;
  if (flows_.size() >= kFlowsMax) flows_.clear();
  Flow flow;
  flow.path = FlowHash(key, seed_) % settings_.paths.size();
  ++ways_[static_cast<size_t>(to)].paths[flow.path].counters.flows;
  return &flows_.emplace(key, flow).first->second;
}

Network::Fate Network::Draw(const PathSettings& settings, Path* path) {
  if (path->loss.Lose(settings.loss, settings.loss_run, &random_)) return Fate::kLost;
  return settings.reorder > 0 && random_.Share() < settings.reorder ? Fate::kLate : Fate::kPass;
}

int Network::SegmentsInAPiece(const Arrival& arrival, const PathSettings& settings) const {
  uint64_t rate = settings.rate;
  if (rate == 0 || (settings_.flow_rate > 0 && settings_.flow_rate < rate)) rate = settings_.flow_rate;
  if (rate == 0) return std::numeric_limits<int>::max();
  const double bytes = static_cast<double>(settings_.piece_ns) * static_cast<double>(rate) / 8e9;
  const double each = arrival.frame.offload.gso_size + static_cast<double>(arrival.info.header_bytes);
  return std::max(1, static_cast<int>(std::min(bytes / each, 1e6)));
}

void Network::Arrive(int to, const Frame& frame, const PacketInfo& info, int64_t since, int64_t now) {
  const Arrival arrival{to, frame, info, since, now, FlowOf(info.flow, to)};
  Path& path = ways_[static_cast<size_t>(to)].paths[arrival.flow->path];
  const PathSettings& settings = settings_.paths[arrival.flow->path];
  const int segments = SegmentsOf(frame, info);
  if (settings.cut) {
    path.counters.cut += static_cast<uint64_t>(segments);
    return;
  }
  const int most = SegmentsInAPiece(arrival, settings);
  int first = 0;
  Fate fate = Draw(settings, &path);
  for (int next = 1; next <= segments; ++next) {
    const Fate next_fate = next < segments ? Draw(settings, &path) : fate;
    if (next < segments && next_fate == fate && next - first < most) continue;
    if (fate == Fate::kLost) {
      path.counters.lost += static_cast<uint64_t>(next - first);
    } else {
      Forward(arrival, first, next - first, fate == Fate::kLate);
    }
    first = next;
    fate = next_fate;
  }
}

void Network::Forward(const Arrival& arrival, int first, int count, bool late) {
  Transit* transit = NewTransit();
  transit->to = arrival.to;
  transit->path = arrival.flow->path;
  transit->late = late;
  Path& path = PathOf(*transit);
  const PathSettings& settings = SettingsOf(*transit);
  // Where a queue takes a part, it takes the first segments; an empty one takes any piece.
  const bool by_flow = settings_.flow_rate > 0;
  const uint64_t limit = by_flow ? FlowQueueOf(settings_, settings) : QueueOf(settings);
  const uint64_t backlog = by_flow ? arrival.flow->gate.Backlog(arrival.now, settings_.flow_rate)
                                   : path.gate.Backlog(arrival.now, settings.rate);
  transit->piece = CutPiece(arrival.frame, arrival.info, first, count);
  if (backlog > 0 && backlog + transit->piece.wire_bytes > limit) {
    const uint64_t room = limit > backlog ? (limit - backlog) / SegmentBytes(transit->piece) : 0;
    const int kept = std::min(count, static_cast<int>(room));
    path.counters.full += static_cast<uint64_t>(count - kept);
    if (kept == 0) {
      transit->piece = Piece();
      return free_transits_.push_back(transit);
    }
    transit->piece = CutPiece(arrival.frame, arrival.info, first, kept);
  }
  if (late) path.counters.late += static_cast<uint64_t>(transit->piece.segments);
  if (!by_flow) return PassPath(arrival.since, arrival.now, transit);
  Schedule(arrival.flow->gate.Pass(arrival.since, arrival.now, transit->piece.wire_bytes, settings_.flow_rate),
           Stage::kToPath, transit);
}

void Network::PassPath(int64_t since, int64_t now, Transit* transit) {
  Path& path = PathOf(*transit);
  const PathSettings& settings = SettingsOf(*transit);
  int64_t at = path.gate.Pass(since, now, transit->piece.wire_bytes, settings.rate) + settings.delay_ns;
  if (settings.jitter_ns > 0) {
    at += static_cast<int64_t>((2 * random_.Share() - 1) * static_cast<double>(settings.jitter_ns));
  }
  at = std::max(at, path.last_arrival);
  path.last_arrival = at;
  Schedule(transit->late ? at + settings.reorder_by_ns : at, Stage::kOut, transit);
}

void Network::Schedule(int64_t at, Stage stage, Transit* transit) {
  transit->stage = stage;
  events_.push({at, events_made_++, transit});
}

int64_t Network::NextDue() const { return events_.empty() ? std::numeric_limits<int64_t>::max() : events_.top().at; }

Network::Transit* Network::Advance(const Event& event) {
  Transit* transit = event.transit;
  if (transit->path >= settings_.paths.size()) {
    transit->path = 0;
    Drop(transit, &PathOf(*transit).counters.cut);
    return nullptr;
  }
  Path& path = PathOf(*transit);
  const PathSettings& settings = SettingsOf(*transit);
  if (settings.cut) {
    Drop(transit, &path.counters.cut);
    return nullptr;
  }
  if (transit->stage == Stage::kOut) return transit;
  const uint64_t backlog = path.gate.Backlog(event.at, settings.rate);
  if (backlog > 0 && backlog + transit->piece.wire_bytes > QueueOf(settings)) {
    Drop(transit, &path.counters.full);
  } else {
    PassPath(event.at, event.at, transit);
  }
  return nullptr;
}

bool Network::Depart(int64_t now, Departure* departure) {
  while (!events_.empty() && events_.top().at <= now) {
    const Event event = events_.top();
    events_.pop();
    Transit* transit = Advance(event);
    if (transit == nullptr) continue;
    Counters& counters = PathOf(*transit).counters;
    counters.segments += static_cast<uint64_t>(transit->piece.segments);
    counters.bytes += transit->piece.wire_bytes;
    departure->to = transit->to;
    departure->due = event.at;
    departure->piece = std::move(transit->piece);
    free_transits_.push_back(transit);
    return true;
  }
  return false;
}

Network::Transit* Network::NewTransit() {
  if (free_transits_.empty()) {
    transits_.push_back(std::make_unique<Transit>());
    free_transits_.push_back(transits_.back().get());
  }
  Transit* transit = free_transits_.back();
  free_transits_.pop_back();
  return transit;
}

void Network::Drop(Transit* transit, uint64_t* counter) {
  *counter += static_cast<uint64_t>(transit->piece.segments);
  transit->piece = Piece();
  free_transits_.push_back(transit);
}

}  // namespace wire
}  // namespace tcpx
