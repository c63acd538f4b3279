#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/build_info.h"
#include "common/escape.h"
#include "net_socket/stats/snapshot.h"

namespace tcpx {
namespace {

// An array of JSON: writes the commas between items.
class Array {
 public:
  explicit Array(std::string* out, char open = '[', char close = ']') : out_(out), close_(close) {
    out_->push_back(open);
  }
  ~Array() { out_->push_back(close_); }

  // Where the next item goes.
  std::string* Item() {
    out_->append(std::exchange(comma_, ","));
    return out_;
  }

 private:
  std::string* const out_;
  const char close_;
  const char* comma_ = "";
};

class Object : private Array {
 public:
  explicit Object(std::string* out) : Array(out, '{', '}') {}

  std::string* Member(absl::string_view name) {
    std::string* const out = Item();
    absl::StrAppend(out, "\"", name, "\":");
    return out;
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
};

void Histogram(const LogHistogramValues& values, std::string* out) {
  Array array(out);
  for (size_t i = 0; i < kLogBuckets; ++i) {
    if (values.buckets[i] == 0) continue;
    absl::StrAppend(array.Item(), "[", uint64_t{1} << i, ",", values.buckets[i], "]");
  }
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
    object.Number(absl::StrCat(kBlockedWords[i].cause, ".", kBlockedWords[i].reason), blocked[i]);
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
  Array array(out);
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i].open || lanes[i].read) Lane(i, lanes[i], array.Item());
  }
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
  Array array(out);
  for (const ThreadTimes& thread : threads) {
    Object object(array.Item());
    object.Number("id", thread.id);
    object.Text("name", thread.name);
    object.Number("cpu_ns", thread.cpu_ns);
    object.Number("no_cpu_ns", thread.no_cpu_ns);
  }
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
    Array connections(object.Member("connections"));
    for (const ConnectionNumbers& connection : snapshot.connections) Connection(connection, connections.Item());
  }
  out.push_back('\n');
  return out;
}

}  // namespace tcpx
