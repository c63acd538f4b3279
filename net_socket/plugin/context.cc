#include "net_socket/plugin/context.h"

#include "absl/strings/str_format.h"
#include "common/log.h"

namespace tcpx {
namespace {

void AddTo(ContextStatistics* statistics, const Comm& comm) {
  const CommTally tally = comm.tally();
  CommTally* sum = comm.sends() ? &statistics->sent : &statistics->received;
  sum->messages += tally.messages;
  sum->bytes += tally.bytes;
  sum->slow_lanes += tally.slow_lanes;
}

}  // namespace

void Context::Add(Comm* comm) {
  comms_.insert(comm);
  ++closed_.connections;
}

void Context::Remove(Comm* comm) {
  if (comms_.erase(comm) > 0) AddTo(&closed_, *comm);
}

ContextStatistics Context::Statistics() const {
  ContextStatistics statistics = closed_;
  for (const Comm* comm : comms_) AddTo(&statistics, *comm);
  return statistics;
}

void Context::LogStatistics() const {
  const ContextStatistics all = Statistics();
  if (all.connections == 0) return;
  const uint64_t slow = all.sent.slow_lanes;
  TCPX_INFO_TO(options.log, "comm %x: %d connections, sent %d messages of %d bytes, received %d of %d%s%s",
               options.comm_id, all.connections, all.sent.messages, all.sent.bytes, all.received.messages,
               all.received.bytes, TrafficClassSuffix(traffic_class),
               slow > 0 ? absl::StrFormat(", lanes that became slow: %d", slow) : "");
}

}  // namespace tcpx
