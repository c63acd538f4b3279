#include "bench/nccl_bench/nccl_log.h"

#include <ctype.h>
#include <strings.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tcpx {
namespace nccl_bench {
namespace {

// What follows `marker`, up to one of `ends`; empty without the marker.
std::string WordAfter(absl::string_view line, absl::string_view marker, absl::string_view ends) {
  const size_t at = line.find(marker);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = line.substr(at + marker.size());
  return std::string(rest.substr(0, rest.find_first_of(ends)));
}

uint64_t NumberAfter(absl::string_view line, absl::string_view marker) {
  uint64_t value = 0;
  return absl::SimpleAtoi(WordAfter(line, marker, " ,;"), &value) ? value : 0;
}

// "sent 3 messages of 4096 bytes, received 3 of 4096".
void ReadClosingLine(absl::string_view line, TransportLog* log) {
  const size_t at = line.find("sent ");
  if (at == absl::string_view::npos) return;
  const absl::string_view sent = line.substr(at);
  const size_t received_at = sent.find(", received ");
  if (!absl::StrContains(sent, " messages of ") || received_at == absl::string_view::npos) return;
  ++log->byte_lines;
  log->bytes += NumberAfter(sent, " messages of ") + NumberAfter(sent.substr(received_at), " of ");
}

bool SameNet(const std::string& a, const std::string& b) { return strcasecmp(a.c_str(), b.c_str()) == 0; }

}  // namespace

TransportLog ParseNcclLog(absl::string_view text) {
  TransportLog log;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string network = WordAfter(line, "Using network ", " \r");
    if (!network.empty()) log.networks.insert(network);
    const std::string channel_net = WordAfter(line, " via NET/", "/");
    if (!channel_net.empty()) {
      log.channel_nets.insert(channel_net);
      ++log.net_channels;
    } else if (absl::StrContains(line, "Channel ") && absl::StrContains(line, " via ")) {
      ++log.other_channels;
    }
    ReadClosingLine(line, &log);
  }
  return log;
}

absl::Status JudgeTransport(const TransportLog& log, const std::string& net, bool needs_channels) {
  std::set<std::string> all = log.networks;
  all.insert(log.channel_nets.begin(), log.channel_nets.end());
  if (all.empty()) return absl::FailedPreconditionError("NCCL's log names no network");
  for (const std::string& used : all) {
    if (!SameNet(used, net)) {
      return absl::FailedPreconditionError(
          absl::StrCat("NCCL's log names the network ", absl::StrJoin(all, " and "), ", not only ", net));
    }
  }
  if (needs_channels && log.net_channels == 0) {
    return absl::FailedPreconditionError(absl::StrCat("no channel ran over ", net, ": NCCL's log has ",
                                                      log.other_channels, " channels over memory instead"));
  }
  if (needs_channels && log.byte_lines > 0 && log.bytes == 0) {
    return absl::FailedPreconditionError(absl::StrCat("the counters of ", net, " say that no byte moved"));
  }
  return absl::OkStatus();
}

std::string DescribeTransport(const TransportLog& log, const std::string& net) {
  const std::string bytes =
      log.byte_lines > 0 ? absl::StrCat(log.bytes, " bytes moved") : "no byte counters in the log";
  return absl::StrCat(net, ": ", log.net_channels, " channels, ", bytes);
}

}  // namespace nccl_bench
}  // namespace tcpx
