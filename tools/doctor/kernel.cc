// Congestion control, connection tracking and ports.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/nic/path_profile.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr char kIpv4[] = "/proc/sys/net/ipv4/";
constexpr char kNetfilter[] = "/proc/sys/net/netfilter/";
constexpr int64_t kIdleProbeSeconds = kIdleProbeNs / kSecond;
constexpr int64_t kFlowsWanted = 65536;
constexpr int64_t kPortsWanted = 2048;

// Whether a lane would be given it: the socket of a path is asked.
absl::Status TryCongestion(const std::string& name) {
  const absl::StatusOr<OwnedFd> fd = StreamSocket(AF_INET);
  if (!fd.ok()) return fd.status();
  return SetCongestion(fd->get(), name);
}

}  // namespace

void CheckCongestion(const Patient& patient, Report* report) {
  const std::vector<std::string> words = ReadWords(patient, absl::StrCat(kIpv4, "tcp_congestion_control"));
  const std::string system = words.empty() ? "unknown" : words[0];
  const std::string available =
      absl::StrJoin(ReadWords(patient, absl::StrCat(kIpv4, "tcp_available_congestion_control")), " ");
  const PathProfile path = MakePathProfile(patient.options, PathFacts());
  if (path.congestion.empty()) {
    report->Ok("congestion", absl::StrCat(system, ", the system's (available: ", available, ")"));
    return;
  }
  const absl::Status status = TryCongestion(path.congestion);
  if (status.ok()) {
    report->Ok("congestion", absl::StrCat(path.congestion, " (TCPX_CONGESTION)"));
    return;
  }
  report->Problem(
      "congestion",
      absl::StrCat("TCPX_CONGESTION is ", path.congestion, ", which the kernel refuses (", status.message(),
                   "; available: ", available, "): lanes have ", system),
      absl::StrCat("modprobe tcp_", path.congestion, "; sysctl -w net.ipv4.tcp_allowed_congestion_control='", available,
                   " ", path.congestion, "'"));
}

void CheckConntrack(const Patient& patient, Report* report) {
  const int64_t max = ReadNumber(patient, absl::StrCat(kNetfilter, "nf_conntrack_max"), -1);
  const int64_t count = ReadNumber(patient, absl::StrCat(kNetfilter, "nf_conntrack_count"), 0);
  if (max <= 0) {
    report->Ok("conntrack", "connections are not tracked here");
    return;
  }
  const std::string text = absl::StrFormat("%d of %d tracked connections are in use", count, max);
  const int64_t wanted = std::max<int64_t>(2 * max, 4 * kFlowsWanted);
  const std::string fix =
      absl::StrCat("sysctl -w net.netfilter.nf_conntrack_max=", wanted, "; or exempt the job's ports (nft: notrack)");
  if (count > max / 5 * 4) {
    report->Problem("conntrack", absl::StrCat(text, ": new lanes would be dropped when it is full"), fix);
  } else if (max < kFlowsWanted) {
    report->Note("conntrack", absl::StrCat(text, ": few for a host with many ranks"), fix);
  } else {
    report->Ok("conntrack", text);
  }
  const std::string timeout = absl::StrCat(kNetfilter, "nf_conntrack_tcp_timeout_established");
  const int64_t seconds = ReadNumber(patient, timeout, 432000);
  if (seconds > 2 * kIdleProbeSeconds) return;
  report->Problem("conntrack",
                  absl::StrFormat("an idle connection is forgotten after %d s, and idle lanes speak once in %d s",
                                  seconds, kIdleProbeSeconds),
                  "sysctl -w net.netfilter.nf_conntrack_tcp_timeout_established=432000");
}

void CheckPorts(const Patient& patient, Report* report) {
  const std::vector<std::string> words = ReadWords(patient, absl::StrCat(kIpv4, "ip_local_port_range"));
  if (words.size() == 2) {
    const int64_t ports = atoll(words[1].c_str()) - atoll(words[0].c_str()) + 1;
    const std::string text = absl::StrFormat("%d ports to connect from (%s to %s)", ports, words[0], words[1]);
    if (ports >= kPortsWanted) {
      report->Ok("port", text);
    } else {
      report->Problem("port", absl::StrCat(text, ": too few for the lanes of many ranks"),
                      "sysctl -w net.ipv4.ip_local_port_range='32768 60999'");
    }
  }
  const PortRange& range = patient.options.port_range;
  if (range.any()) {
    report->Ok("port", "the kernel chooses the ports to listen on (TCPX_PORT_RANGE is not set)");
    return;
  }
  const int ports = range.high - range.low + 1;
  int wanted = 0;  // one for each address of each process
  for (int i = 0; i < patient.devices.count(); ++i) {
    wanted += static_cast<int>(patient.devices.device(i).nics.size());
  }
  const int ranks = std::max(1, patient.cpu_facts.ranks_on_host);
  const std::string text = absl::StrFormat("TCPX_PORT_RANGE has %d ports, for %d ranks", ports, ranks);
  if (ports >= ranks) return report->Ok("port", absl::StrCat(text, " (", wanted, " addresses each)"));
  report->Problem("port", absl::StrCat(text, ": each rank listens on one of each address that it uses"),
                  absl::StrFormat("export TCPX_PORT_RANGE=%d-%d", range.low, std::min(65535, range.low + 4 * ranks)));
}

}  // namespace doctor
}  // namespace tcpx
