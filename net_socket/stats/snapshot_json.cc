#include "net_socket/stats/snapshot_json.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/build_info.h"
#include "common/escape.h"

namespace tcpx {
namespace {

// An object of JSON: writes members with their commas.
class Object {
 public:
  explicit Object(std::string* out) : out_(out) { out_->push_back('{'); }
  ~Object() { out_->push_back('}'); }

  std::string* Member(absl::string_view name) {
    absl::StrAppend(out_, first_ ? "" : ",", "\"", name, "\":");
    first_ = false;
    return out_;
  }
  void Text(absl::string_view name, absl::string_view value) { absl::StrAppend(Member(name), JsonText(value)); }
  template <typename T>
  void Number(absl::string_view name, T value) {
    absl::StrAppend(Member(name), value);
  }
  template <typename Counters, typename Counts>
  void Numbers(const Counters& counters, const Counts& counts) {
    for (const auto& counter : counters) {
      if (counter.json != nullptr) Number(counter.json, counts.*counter.member);
    }
  }
  void Flag(absl::string_view name, bool value) { absl::StrAppend(Member(name), value ? "true" : "false"); }

 private:
  std::string* const out_;
  bool first_ = true;
};

void Histogram(const LogHistogramValues& values, std::string* out) {
  const char* comma = "";
  out->push_back('[');
  for (int i = 0; i < kLogBuckets; ++i) {
    const uint64_t count = values.buckets[static_cast<size_t>(i)];
    if (count == 0) continue;
    absl::StrAppend(out, comma, "[", uint64_t{1} << i, ",", count, "]");
    comma = ",";
  }
  out->push_back(']');
}

void Lane(size_t index, const LaneNumbers& lane, std::string* out) {
  Object object(out);
  object.Number("lane", index);
  object.Flag("open", lane.open);
  object.Text("local", lane.local);
  object.Text("peer", lane.peer);
  object.Flag("lost", lane.lost);
  object.Numbers(kLaneCounters, lane);
  object.Number("pace_bytes_per_second", lane.pace_bytes_per_second);
  object.Text("congestion", lane.tcp.congestion);
  object.Number("dscp", lane.tcp.dscp);
  object.Number("rtt_us", lane.tcp.rtt_us);
  object.Number("rtt_min_us", lane.tcp.rtt_min_us);
  object.Number("delivery_bytes_per_second", lane.tcp.delivery_bytes_per_second);
  object.Number("unacked_bytes", lane.tcp.unacked_bytes);
  object.Numbers(kTcpCounters, lane.tcp);
}

void Class(const ConnectionNumbers& connection, size_t kind, std::string* out) {
  Object object(out);
  object.Number("messages", connection.messages[kind]);
  object.Number("bytes", connection.bytes[kind]);
  Histogram(connection.sizes[kind], object.Member("sizes"));
  Histogram(connection.durations[kind], object.Member("durations_ns"));
  object.Number("p50_ns", connection.durations[kind].Quantile(0.5));
  object.Number("p99_ns", connection.durations[kind].Quantile(0.99));
}

void BlockedTimes(const BlockedNumbers& blocked, std::string* out) {
  Object object(out);
  for (size_t i = 0; i < kBlockedKinds; ++i) {
    object.Number(absl::StrCat(BlockedCause(i), ".", BlockedReason(i)), blocked[i]);
  }
}

void Verdict(const ConnectionNumbers& connection, std::string* out) {
  Object object(out);
  object.Text("cause", connection.cause);
  object.Text("culprit", connection.culprit);
  object.Text("text", connection.why);
}

// Without those that never had a socket.
void Lanes(const std::vector<LaneNumbers>& lanes, std::string* out) {
  const char* comma = "";
  out->push_back('[');
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (!lanes[i].open && !lanes[i].read) continue;
    out->append(std::exchange(comma, ","));
    Lane(i, lanes[i], out);
  }
  out->push_back(']');
}

void Connection(const ConnectionNumbers& connection, std::string* out) {
  Object object(out);
  object.Text("connection", connection.connection);
  object.Text("communicator", absl::StrFormat("0x%x", connection.communicator));
  object.Text("gpu", GpuName(connection.gpu));
  object.Text("direction", connection.sends ? "send" : "receive");
  object.Number("device", connection.device);
  object.Text("interfaces", connection.interfaces);
  object.Text("peer", connection.peer_host);
  object.Flag("failed", connection.failed);
  object.Number("posted", connection.posted);
  if (!connection.cause.empty()) Verdict(connection, object.Member("verdict"));
  object.Numbers(kConnectionCounters, connection.counts);
  Class(connection, 0, object.Member("express"));
  Class(connection, 1, object.Member("bulk"));
  BlockedTimes(connection.blocked, object.Member("blocked_ns"));
  Lanes(connection.lanes, object.Member("lanes"));
}

void Process(const ProcessNumbers& process, std::string* out) {
  Object object(out);
  object.Text("host", process.host);
  object.Number("pid", process.pid);
  object.Text("mark", process.mark);
  object.Number("uid", process.uid);
  object.Text("slurm_job_id", process.slurm_job_id);
  absl::StrAppendFormat(object.Member("started_unix"), "%.3f", process.started_unix);
}

void Rma(const RmaNumbers& rma, std::string* out) {
  Object object(out);
  object.Number("groups", rma.groups);
  object.Numbers(kRmaCounters, rma);
  object.Number("under_way", rma.under_way);
  object.Number("under_way_max", rma.under_way_max);
}

void Threads(const std::vector<ThreadTimes>& threads, std::string* out) {
  out->push_back('[');
  for (size_t i = 0; i < threads.size(); ++i) {
    if (i > 0) out->push_back(',');
    Object object(out);
    object.Number("id", threads[i].id);
    object.Text("name", threads[i].name);
    object.Number("cpu_ns", threads[i].cpu_ns);
    object.Number("no_cpu_ns", threads[i].no_cpu_ns);
  }
  out->push_back(']');
}

}  // namespace

std::string SnapshotJson(const Snapshot& snapshot) {
  std::string out;
  {
    Object object(&out);
    object.Number("tcpx_snapshot", kSnapshotFormat);
    object.Text("version", kVersion);
    Process(snapshot.process, object.Member("process"));
    absl::StrAppendFormat(object.Member("now_unix"), "%.3f", snapshot.now_unix);
    object.Number("now_ns", snapshot.now_ns);
    object.Number("looks", snapshot.looks);
    object.Number("stats_cpu_ns", snapshot.collection_ns);
    Threads(snapshot.threads, object.Member("threads"));
    if (snapshot.rma.groups > 0) Rma(snapshot.rma, object.Member("rma"));
    std::string* const connections = object.Member("connections");
    connections->push_back('[');
    for (size_t i = 0; i < snapshot.connections.size(); ++i) {
      if (i > 0) connections->push_back(',');
      Connection(snapshot.connections[i], connections);
    }
    connections->push_back(']');
  }
  out.push_back('\n');
  return out;
}

}  // namespace tcpx
