#include "bench/net_bench/loop.h"

#include <sched.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/clock.h"

namespace tcpx {
namespace bench {

Loop::Loop(const LoopOrder& order, Link* link, SlotRing* send_slots, SlotRing* receive_slots, Position* position)
    : order_(order), send_slots_(send_slots), receive_slots_(receive_slots), position_(position) {
  connections_.resize(static_cast<size_t>(order.connections));
  for (size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].send.channel = link->sends()[i];
    connections_[i].receive.channel = link->receives()[i];
  }
  if (order.messages > 0) open_ = order.connections * (int{order.sends} + int{order.receives});
}

absl::Status Loop::Run(LoopResult* result) {
  result_ = result;
  result->gaps_ns.clear();
  if (order_.stamp) result->gaps_ns.reserve(order_.messages);
  const int64_t start = MonotonicNanos();
  last_stamp_ns_ = start;
  while (open_ > 0 && status_.ok()) {
    bool moved = false;
    for (int i = 0; i < order_.connections; ++i) moved |= Pass(i);
    if (!moved && order_.yield) sched_yield();
  }
  result->elapsed_ns = MonotonicNanos() - start;
  return status_;
}

bool Loop::Pass(int connection) {
  bool moved = false;
  if (order_.sends) moved |= PostSends(connection);
  if (order_.receives) moved |= PostReceives(connection);
  if (order_.sends) moved |= TestSends(connection);
  if (order_.receives) moved |= TestReceives(connection);
  return moved;
}

uint64_t Loop::SendLimit(const Connection& connection) const {
  uint64_t limit = std::min(order_.messages, connection.send.done + static_cast<uint64_t>(order_.window));
  if (order_.gate == Gate::kPing) limit = std::min(limit, connection.receive.done + 1);
  if (order_.gate == Gate::kEcho) limit = std::min(limit, connection.receive.done);
  return limit;
}

bool Loop::PostSends(int connection) {
  Connection& c = connections_[static_cast<size_t>(connection)];
  const uint64_t limit = SendLimit(c);
  bool moved = false;
  while (c.send.posted < limit) {
    uint8_t* data = send_slots_->Slot(connection, static_cast<int>(c.send.posted % order_.window));
    if (order_.check) FillPattern(Identity(order_.rank, connection, c.send.posted), data, order_.bytes);
    const Step step = c.send.channel->Post(data, order_.bytes);
    if (step == Step::kFailed) Fail(connection, c.send.posted, "isend", c.send.channel->Failure());
    if (step != Step::kDone) break;
    ++c.send.posted;
    moved = true;
    if (order_.one_isend_per_pass) break;
  }
  return moved;
}

bool Loop::PostReceives(int connection) {
  Connection& c = connections_[static_cast<size_t>(connection)];
  const uint64_t limit = std::min(order_.messages, c.receive.done + static_cast<uint64_t>(order_.window));
  bool moved = false;
  while (c.receive.posted < limit) {
    uint8_t* data = receive_slots_->Slot(connection, static_cast<int>(c.receive.posted % order_.window));
    const Step step = c.receive.channel->Post(data, order_.bytes);
    if (step == Step::kFailed) Fail(connection, c.receive.posted, "irecv", c.receive.channel->Failure());
    if (step != Step::kDone) break;
    ++c.receive.posted;
    moved = true;
  }
  return moved;
}

bool Loop::TestSends(int connection) {
  Side& side = connections_[static_cast<size_t>(connection)].send;
  bool moved = false;
  while (side.done < side.posted) {
    size_t bytes = 0;
    const Step step = side.channel->Test(&bytes);
    if (step == Step::kFailed) Fail(connection, side.done, "test of an isend", side.channel->Failure());
    if (step != Step::kDone) break;
    ++side.done;
    moved = true;
    Finished(connection, side);
    if (order_.one_isend_per_pass) break;
  }
  return moved;
}

bool Loop::TestReceives(int connection) {
  Side& side = connections_[static_cast<size_t>(connection)].receive;
  bool moved = false;
  while (side.done < side.posted) {
    size_t bytes = 0;
    const Step step = side.channel->Test(&bytes);
    if (step == Step::kFailed) Fail(connection, side.done, "test of an irecv", side.channel->Failure());
    if (step != Step::kDone || !Accept(connection, side.done, bytes)) break;
    ++side.done;
    moved = true;
    Finished(connection, side);
    if (order_.one_isend_per_pass) break;
  }
  return moved;
}

void Loop::Finished(int connection, const Side& side) {
  position_->At(static_cast<uint32_t>(connection), side.done);
  if (side.done == order_.messages) --open_;
}

bool Loop::Accept(int connection, uint64_t message, size_t bytes) {
  if (order_.stamp && connection == 0) {
    const int64_t now = MonotonicNanos();
    result_->gaps_ns.push_back(now - last_stamp_ns_);
    last_stamp_ns_ = now;
  }
  if (bytes != order_.bytes) {
    Fail(connection, message, "test of an irecv",
         absl::StrCat("the plugin reports ", bytes, " bytes, ", order_.bytes, " were sent"));
    return false;
  }
  if (!order_.check) return true;
  const absl::Status verdict = VerifyMessage(connection, message, bytes);
  if (!verdict.ok()) Fail(connection, message, "check", std::string(verdict.message()));
  return verdict.ok();
}

absl::Status Loop::VerifyMessage(int connection, uint64_t message, size_t bytes) const {
  const int slot = static_cast<int>(message % order_.window);
  const uint8_t* data = receive_slots_->Slot(connection, slot);
  const MessageIdentity identity = Identity(order_.peer_rank, connection, message);
  const size_t wrong = VerifyPattern(identity, data, bytes);
  if (wrong != kNoDifference) {
    return absl::DataLossError(
        absl::StrCat("byte ", wrong, " of ", bytes, " is ", data[wrong], " instead of ", PatternByte(identity, wrong)));
  }
  return receive_slots_->CheckGuards(connection, slot, bytes);
}

void Loop::Fail(int connection, uint64_t message, const char* what, const std::string& why) {
  position_->At(static_cast<uint32_t>(connection), message);
  if (status_.ok()) {
    status_ = absl::UnknownError(absl::StrCat(what, ": ", why, " (", position_->Describe(), ")"));
  }
}

MessageIdentity Loop::Identity(uint32_t sender, int connection, uint64_t message) const {
  MessageIdentity identity;
  identity.seed = order_.seed;
  identity.connection = static_cast<uint32_t>(connection);
  identity.sender = sender;
  identity.message = message;
  return identity;
}

}  // namespace bench
}  // namespace tcpx
