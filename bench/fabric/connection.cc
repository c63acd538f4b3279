#include "bench/fabric/connection.h"

#include <algorithm>
#include <cmath>

#include "bench/fabric/draw.h"
#include "common/clock.h"
#include "net_socket/message/wire.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/send/stripe.h"

namespace tcpx {
namespace fabric {
namespace {

// The payload's part of a frame of 9014 bytes with preamble, headers and timestamps.
constexpr double kPayload = 8948.0 / 9038.0;
constexpr int64_t kEmptyUs = 100;
// An attempt to explore lasts as long, and a trial to spread has paused a lane by then.
constexpr int64_t kTrialNs = 500 * kMillisecond;

}  // namespace

Connection::Connection(const Ends& ends, const Policy& policy, uint64_t seed, int limiter, Process* process,
                       const Topology* topology)
    : ends_(ends),
      kind_(policy.kind),
      seed_(seed),
      limiter_(limiter),
      process_(process),
      topology_(topology),
      open_(&process->budget),
      rates_(RatesFor(policy, seed)),
      lanes_(static_cast<size_t>(kind_ == Policy::Kind::kPilot ? kLanesPilotedMax - 1 : policy.lanes)) {
  const int first = FirstLanes(policy);
  for (size_t i = 0; i < static_cast<size_t>(first); ++i) {
    Dial(i);
    if (topology_->queues()) lanes_[i].round_trips.least_us = kEmptyUs;  // Nothing is sent yet.
  }
  dials_ = 0;
}

int Connection::FirstLanes(const Policy& policy) const {
  if (policy.lanes > 0) return policy.lanes;
  Nic nic;
  nic.hardware.speed_mbps = static_cast<int>(topology_->spec().nic / kMbit);
  nic.hardware.speed_source = topology_->spec().blind ? SpeedSource::kVirtual : SpeedSource::kKernel;
  return LanesFor(Options(), PathProfile(), {nic}, 1, process_->budget.left()).lanes - 1;
}

LaneRates::Settings Connection::RatesFor(const Policy& policy, uint64_t seed) {
  LaneRates::Settings settings;
  const bool piloted = kind_ == Policy::Kind::kPilot;
  settings.lanes.lanes = FirstLanes(policy);
  settings.lanes.lanes_max = piloted ? kLanesPilotedMax - 1 : policy.lanes;
  settings.lanes.piloted = settings.has_pilot = piloted;
  settings.lanes.seed = seed;
  settings.ordered = [this] { ordered_ = true; };
  settings.may_open = [this] { return LaneBudget::MayOpen(process_->budget.left(), process_->busy.Count(now_ns_)); };
  settings.brought = [this](uint64_t bytes) { return process_->busy.Brought(bytes); };
  return settings;
}

void Connection::Dial(size_t lane) {
  Lane& at = lanes_[lane];
  if (!at.open) open_lanes_.insert(std::lower_bound(open_lanes_.begin(), open_lanes_.end(), lane), lane);
  at.open = true;
  at.route = Flow();
  topology_->Route(ends_.from, ends_.to, ends_.rail, Draw(seed_, static_cast<uint64_t>(dials_), lane), &at.route);
  DrawLuck(lane);
  at.pace.Restart();
  at.round_trips = {};
  rates_.Set(static_cast<int>(lane), 0);
  open_.Open(lane);
  ++dials_;
}

void Connection::CarryOut(const LaneOrder& order) {
  const size_t lane = static_cast<size_t>(order.lane);
  if (order.kind == LaneOrder::Kind::kClose) {
    lanes_[lane].open = false;
    open_lanes_.erase(std::remove(open_lanes_.begin(), open_lanes_.end(), lane), open_lanes_.end());
    rates_.Closed(order.lane);
    return;
  }
  Dial(lane);
  lanes_[lane].came = true;
  opened_ns_ = now_ns_;
}

// What it tries has paused a lane, or has just opened one.
bool Connection::Tries() const {
  return now_ns_ - opened_ns_ < kTrialNs ||
         std::any_of(open_lanes_.begin(), open_lanes_.end(), [this](size_t lane) { return !Flows(lane); });
}

void Connection::AddFlows(double room, std::vector<Flow>* flows) {
  first_flow_ = flows->size();
  for (size_t i : open_lanes_) {
    if (!Flows(i)) continue;
    Flow flow = lanes_[i].route;
    if (equal_parts()) {
      flow.cap = std::min(flow.cap, rate_ * room / static_cast<double>(lanes_.size()));
    } else if (limiter_ >= 0) {
      flow.Cross(limiter_);
    }
    flows->push_back(flow);
  }
}

void Connection::TakeShares(const std::vector<Flow>& flows, bool last) {
  capacity_ = 0;
  double least = kUnlimited, count = 0;
  size_t at = first_flow_;
  for (size_t i : open_lanes_) {
    if (!Flows(i)) continue;
    const Flow& flow = flows[at++];
    lanes_[i].rate = flow.rate;
    lanes_[i].full = limiter_ < 0 || flow.bottleneck != limiter_;
    See(flow, last, &lanes_[i].round_trips);
    capacity_ += flow.rate;
    least = std::min(least, flow.rate);
    ++count;
  }
  if (equal_parts()) capacity_ = count * least;
}

// A flow that is new finds what the others have in the queue.
void Connection::See(const Flow& flow, bool last, LanePolicy::RoundTrips* round_trips) const {
  if (!topology_->queues() || kind_ != Policy::Kind::kPilot) return;
  if (last) round_trips->now_us = kEmptyUs + topology_->WaitUs(flow, true);
  if (round_trips->least_us == 0) round_trips->least_us = kEmptyUs + topology_->WaitUs(flow, false);
}

void Connection::Move(double seconds, double noise) {
  if (kind_ != Policy::Kind::kPilot) return;  // Nobody looks.
  const double part = capacity_ > 0 ? rate_ / capacity_ : 0;
  for (size_t i : open_lanes_) {
    if (Flows(i)) lanes_[i].acked += lanes_[i].rate * part * seconds * noise * kPayload;
  }
}

bool Connection::Look(int64_t now_ns, bool freeze) {
  if (kind_ != Policy::Kind::kPilot) return false;
  now_ns_ = now_ns;
  frozen_ = frozen_ || (freeze && !Tries());
  for (size_t i : open_lanes_) {
    Lane& lane = lanes_[i];
    const int id = static_cast<int>(i);
    if (lane.came) rates_.Opened(id);
    lane.came = false;
    if (!Flows(i)) continue;
    process_->busy.Note(now_ns, &lane.busy_span);
    LaneRates::Seen seen;
    seen.full = lane.full && rate_ >= 0.97 * capacity_;
    seen.held = seen.full ? lane.pace.held_max() : 0;
    seen.acked = static_cast<uint64_t>(lane.acked);
    seen.round_trips = lane.round_trips;
    lane.pace.Sample(now_ns, seen.acked + static_cast<uint64_t>(seen.held), seen.held, true);
    rates_.Set(id, lane.pace.bytes_per_second());
    if (!frozen_) rates_.Looked(id, now_ns, seen);
  }
  if (!ordered_) return false;
  ordered_ = false;
  for (const LaneOrder& order : rates_.TakeOrders()) CarryOut(order);
  return true;
}

double Connection::Tail(double bytes) const {
  double tail = 0;
  for (size_t i : open_lanes_) {
    if (equal_parts() || !Flows(i) || lanes_[i].rate <= 0) continue;
    // As Striper::Pull, once little is left: the least.
    const size_t least =
        kind_ == Policy::Kind::kPilot ? static_cast<size_t>(lanes_[i].pace.chunk_least()) : size_t{64} << 10;
    const size_t chunk = Striper::ChunkBytes(static_cast<size_t>(bytes), 0, least, size_t{512} << 10);
    tail = std::max(tail, static_cast<double>(chunk) / lanes_[i].rate / 2);
  }
  return tail;
}

void Connection::SetLuck(uint64_t draw, double sigma) {
  luck_ = draw;
  sigma_ = sigma;
  for (size_t i : open_lanes_) DrawLuck(i);
}

void Connection::DrawLuck(size_t lane) {
  lanes_[lane].route.weight = static_cast<double>(static_cast<float>(std::exp(sigma_ * Normal(seed_, luck_, lane))));
}

}  // namespace fabric
}  // namespace tcpx
