#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/build_info.h"
#include "net_socket/stats/snapshot.h"

namespace tcpx {
namespace {

// Without those of counters.h.
constexpr MetricFamily kFamilies[] = {
    {"tcpx_build_info", "gauge", "1, and the version of the plugin."},
    {"tcpx_communicator_info", "gauge", "1 for each communicator with open connections, its id and its GPU."},
    {"tcpx_start_time_seconds", "gauge", "When the plugin started, in seconds since 1970."},
    {"tcpx_connections", "gauge", "Connections that are open."},
    {"tcpx_connections_opened_total", "counter", "Connections that were ever made."},
    {"tcpx_connections_failed_total", "counter", "Connections that ended with an error."},
    {"tcpx_messages_under_way", "gauge", "Messages that are posted and not reported done."},
    {"tcpx_sent_messages_total", "counter", "Messages sent, by class."},
    {"tcpx_sent_bytes_total", "counter", "Payload of messages sent, by class."},
    {"tcpx_received_messages_total", "counter", "Messages received, by class."},
    {"tcpx_received_bytes_total", "counter", "Payload of messages received, by class."},
    {"tcpx_lanes", "gauge", "Lanes that are open, by congestion control and DSCP."},
    {"tcpx_blocked_seconds_total", "counter", "Time of connections, by who they waited for and why."},
    {"tcpx_rma_under_way", "gauge", "One-sided operations that are posted and not reported done."},
    {"tcpx_rma_under_way_max", "gauge", "The most that one group has had under way."},
    {"tcpx_rtt_seconds", "gauge", "The longest smoothed round trip of a lane."},
    {"tcpx_rtt_min_seconds", "gauge", "The shortest round trip that a lane has seen."},
    {"tcpx_delivery_rate_bytes_per_second", "gauge", "What the kernel last measured, summed over lanes."},
    {"tcpx_unacked_bytes", "gauge", "Bytes that the kernel has and the peer has not acknowledged."},
    {"tcpx_message_bytes", "histogram", "Sizes of messages."},
    {"tcpx_transfer_seconds", "histogram", "Time from isend or irecv to the test that said done."},
    {"tcpx_thread_cpu_seconds_total", "counter", "CPU that threads have used."},
    {"tcpx_thread_no_cpu_seconds_total", "counter", "Time in which threads could have run and had no CPU."},
    {"tcpx_stats_cpu_seconds_total", "counter", "CPU that these statistics have used."},
    {"tcpx_lane_bytes_total", "counter", "Bytes in the stream of a lane (TCPX_STATS_LANES)."},
    {"tcpx_lane_retransmitted_segments_total", "counter", "Segments of a lane that were sent again."},
    {"tcpx_lane_rtt_seconds", "gauge", "The smoothed round trip of a lane."},
    {"tcpx_lane_delivery_rate_bytes_per_second", "gauge", "What the kernel last measured on a lane."},
    {"tcpx_lane_busy_seconds_total", "counter", "Time in which a lane had data that was not acknowledged."},
    {"tcpx_lane_window_limited_seconds_total", "counter", "Busy time of a lane with the peer's window closed."},
    {"tcpx_lanes_left_out", "gauge", "Lanes that found no place among the series of lanes."},
};

constexpr const char* kClasses[] = {"express", "bulk"};
constexpr const char* kDirections[] = {"receive", "send"};

// One more label, after a comma. A collector drops a whole file for one that is no UTF-8, and others name hosts and
// interfaces.
std::string Label(absl::string_view name, absl::string_view value) {
  std::string label = absl::StrCat(",", name, "=\"");
  for (const char c : value) {
    if (c == '\n') {
      label += "\\n";
    } else if (c < 0x20 || c > 0x7e) {
      label += '?';
    } else {
      if (c == '"' || c == '\\') label += '\\';
      label += c;
    }
  }
  return label + '"';
}

double Seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }
double FromMicros(uint64_t us) { return static_cast<double>(us) * 1e-6; }

// All digits of a count; of other numbers only the digits that are known.
std::string Number(double value) {
  if (value == static_cast<double>(static_cast<int64_t>(value))) return absl::StrCat(static_cast<int64_t>(value));
  return absl::StrFormat("%.12g", value);
}

// Collects the samples of each family, which must be together.
class Writer {
 public:
  explicit Writer(const ProcessNumbers& process)
      : common_(absl::StrCat(Label("node", process.host), Label("pid", process.mark),
                             Label("slurm_job_id", process.slurm_job_id))
                    .substr(1)) {}

  template <typename Value>
  void Add(const char* family, absl::string_view labels, Value value, const char* suffix = "") {
    absl::StrAppend(&samples_[family], family, suffix, "{", common_, labels, "} ", Number(static_cast<double>(value)),
                    "\n");
  }
  template <typename Counters, typename Counts>
  void AddCounters(const Counters& counters, absl::string_view labels, const Counts& counts, bool sends) {
    for (const auto& counter : counters) {
      if (counter.metric == nullptr || (counter.ends == CountedAt::kSenders && !sends)) continue;
      Add(counter.metric, labels, static_cast<double>(counts.*counter.member) * counter.unit);
    }
  }
  void AddHistogram(const char* family, absl::string_view labels, const LogHistogramValues& values, int first, int last,
                    double unit) {
    uint64_t seen = 0;
    for (int i = 0; i < kLogBuckets; ++i) {
      seen += values.buckets[static_cast<size_t>(i)];
      if (i < first || i > last) continue;
      const double bound = static_cast<double>(uint64_t{1} << i) * unit;
      Add(family, absl::StrCat(labels, Label("le", Number(bound))), seen, "_bucket");
    }
    Add(family, absl::StrCat(labels, Label("le", "+Inf")), seen, "_bucket");
    Add(family, labels, static_cast<double>(values.sum) * unit, "_sum");
    Add(family, labels, seen, "_count");
  }
  std::string Text() const {
    std::string text;
    for (const MetricFamily& family : MetricFamilies()) {
      const auto found = samples_.find(family.name);
      if (found == samples_.end()) continue;
      absl::StrAppend(&text, "# HELP ", family.name, " ", family.help, "\n# TYPE ", family.name, " ", family.type, "\n",
                      found->second);
    }
    return text;
  }

 private:
  const std::string common_;
  std::map<std::string, std::string> samples_;
};

void AddTraffic(const std::string& labels, const DirectionTotals& sum, bool sends, Writer* out) {
  for (size_t i = 0; i < 2; ++i) {
    const std::string classed = absl::StrCat(labels, Label("class", kClasses[i]));
    out->Add(sends ? "tcpx_sent_messages_total" : "tcpx_received_messages_total", classed, sum.messages[i]);
    out->Add(sends ? "tcpx_sent_bytes_total" : "tcpx_received_bytes_total", classed, sum.bytes[i]);
  }
}

void AddLanes(const std::string& labels, const DirectionTotals& sum, bool sends, Writer* out) {
  for (const auto& [kind, count] : sum.lanes) {
    out->Add("tcpx_lanes",
             absl::StrCat(labels, Label("congestion", kind.first), Label("dscp", absl::StrCat(kind.second))), count);
  }
  for (size_t i = 0; i < kBlockedKinds; ++i) {
    if (sum.blocked[i] == 0) continue;
    out->Add("tcpx_blocked_seconds_total",
             absl::StrCat(labels, Label("cause", kBlockedWords[i].cause), Label("reason", kBlockedWords[i].reason)),
             Seconds(sum.blocked[i]));
  }
  out->AddCounters(kLaneCounters, labels, sum.stream, sends);
  out->AddCounters(kConnectionCounters, labels, sum.counts, sends);
  out->AddCounters(kTcpCounters, labels, sum.tcp, sends);
  if (!sends) return;
  out->Add("tcpx_delivery_rate_bytes_per_second", labels, sum.delivery_bytes_per_second);
  out->Add("tcpx_unacked_bytes", labels, sum.unacked_bytes);
  if (sum.rtt_us > 0) out->Add("tcpx_rtt_seconds", labels, FromMicros(sum.rtt_us));
  if (sum.rtt_min_us > 0) out->Add("tcpx_rtt_min_seconds", labels, FromMicros(sum.rtt_min_us));
}

void AddPeers(const Totals& totals, Writer* out) {
  for (const auto& [key, directions] : totals.map()) {
    for (size_t sends = 0; sends < 2; ++sends) {
      const DirectionTotals& sum = directions[sends];
      if (sum.opened == 0) continue;
      const std::string peer = absl::StrCat(Label("device", key.interfaces), Label("peer", key.peer_host));
      const std::string labels = absl::StrCat(peer, Label("direction", kDirections[sends]));
      out->Add("tcpx_connections", labels, sum.open);
      out->Add("tcpx_connections_opened_total", labels, sum.opened);
      out->Add("tcpx_connections_failed_total", labels, sum.failed);
      out->Add("tcpx_messages_under_way", labels, sum.posted);
      AddTraffic(peer, sum, sends != 0, out);
      AddLanes(labels, sum, sends != 0, out);
    }
  }
}

// By device, direction and class.
void AddHistograms(const Totals& totals, Writer* out) {
  std::map<std::string, std::pair<LogHistogramValues, LogHistogramValues>> sums;
  for (const auto& [key, directions] : totals.map()) {
    for (size_t sends = 0; sends < 2; ++sends) {
      for (size_t i = 0; i < 2; ++i) {
        const std::string labels = absl::StrCat(Label("device", key.interfaces), Label("direction", kDirections[sends]),
                                                Label("class", kClasses[i]));
        sums[labels].first.Add(directions[sends].sizes[i]);
        sums[labels].second.Add(directions[sends].durations[i]);
      }
    }
  }
  for (const auto& [labels, values] : sums) {
    out->AddHistogram("tcpx_message_bytes", labels, values.first, 6, 30, 1);          // 64 B to 1 GiB
    out->AddHistogram("tcpx_transfer_seconds", labels, values.second, 10, 36, 1e-9);  // 1 us to 69 s
  }
}

void AddEachLane(const Snapshot& snapshot, Writer* out) {
  int count = 0;
  for (const ConnectionNumbers& connection : snapshot.connections) {
    for (size_t i = 0; i < connection.lanes.size(); ++i) {
      const LaneNumbers& lane = connection.lanes[i];
      if (!lane.open || count++ >= kLaneSeriesMax) continue;
      const std::string labels = absl::StrCat(
          Label("device", connection.interfaces), Label("peer", connection.peer_host),
          Label("direction", kDirections[connection.sends ? 1 : 0]), Label("connection", connection.connection),
          Label("lane", absl::StrCat(i)), Label("local", lane.local), Label("remote", lane.peer));
      out->Add("tcpx_lane_bytes_total", labels, lane.bytes);
      out->Add("tcpx_lane_retransmitted_segments_total", labels, lane.tcp.retransmits);
      out->Add("tcpx_lane_rtt_seconds", labels, FromMicros(lane.tcp.rtt_us));
      if (!connection.sends) continue;
      out->Add("tcpx_lane_delivery_rate_bytes_per_second", labels, lane.tcp.delivery_bytes_per_second);
      out->Add("tcpx_lane_busy_seconds_total", labels, FromMicros(lane.tcp.busy_us));
      out->Add("tcpx_lane_window_limited_seconds_total", labels, FromMicros(lane.tcp.window_limited_us));
    }
  }
  out->Add("tcpx_lanes_left_out", "", count > kLaneSeriesMax ? count - kLaneSeriesMax : 0);
}

// Where a GPU is known, connections of the same communicator that have none yet say nothing.
void AddCommunicators(const Totals& totals, Writer* out) {
  for (const auto& [id, gpus] : totals.communicators()) {
    for (const int gpu : gpus) {
      if (gpu < 0 && gpus.size() > 1) continue;
      out->Add("tcpx_communicator_info",
               absl::StrCat(Label("id", absl::StrFormat("0x%x", id)), Label("gpu", GpuName(gpu))), 1);
    }
  }
}

void AddThreads(const std::vector<ThreadTimes>& threads, Writer* out) {
  std::map<std::string, ThreadUse> sums;
  for (const ThreadTimes& thread : threads) {
    sums[thread.name].cpu_ns += thread.cpu_ns;
    sums[thread.name].no_cpu_ns += thread.no_cpu_ns;
  }
  for (const auto& [name, use] : sums) {
    out->Add("tcpx_thread_cpu_seconds_total", Label("thread", name), Seconds(use.cpu_ns));
    out->Add("tcpx_thread_no_cpu_seconds_total", Label("thread", name), Seconds(use.no_cpu_ns));
  }
}

void AddRma(const RmaNumbers& rma, Writer* out) {
  if (rma.groups == 0) return;
  out->AddCounters(kRmaCounters, "", rma, true);
  out->Add("tcpx_rma_under_way", "", rma.under_way);
  out->Add("tcpx_rma_under_way_max", "", rma.under_way_max);
}

}  // namespace

std::vector<MetricFamily> MetricFamilies() {
  std::vector<MetricFamily> families(std::begin(kFamilies), std::end(kFamilies));
  const auto add = [&](const auto& counters) {
    for (const auto& counter : counters) {
      if (counter.metric != nullptr) families.push_back({counter.metric, "counter", counter.help});
    }
  };
  add(kLaneCounters);
  add(kConnectionCounters);
  add(kTcpCounters);
  add(kRmaCounters);
  return families;
}

std::string PrometheusText(const Snapshot& snapshot, bool lanes) {
  Writer out(snapshot.process);
  out.Add("tcpx_build_info", Label("version", kVersion), 1);
  out.Add("tcpx_start_time_seconds", "", snapshot.process.started_unix);
  out.Add("tcpx_stats_cpu_seconds_total", "", Seconds(snapshot.collection_ns));
  AddCommunicators(snapshot.totals, &out);
  AddPeers(snapshot.totals, &out);
  AddHistograms(snapshot.totals, &out);
  AddThreads(snapshot.threads, &out);
  AddRma(snapshot.rma, &out);
  if (lanes) AddEachLane(snapshot, &out);
  return out.Text();
}

}  // namespace tcpx
