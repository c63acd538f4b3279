#include "tools/doctor/pairs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/counted.h"
#include "common/traffic_class.h"
#include "tools/doctor/channel.h"
#include "tools/doctor/packets.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr int kTimes = 20;
constexpr int kLargestPacket = 65535;
constexpr int kProbeMark = 46 << 2;  // ef

struct Pair {
  const PeerLink* here;
  const PeerLink* there;
  std::string text;      // "eth0 10.0.0.1 to eth0 10.0.0.2"
  SocketAddress target;  // the other doctor's port there
};

// What was found of each pair. The same note or problem of several pairs is one line.
class PairFindings {
 public:
  void Add(Grade grade, absl::string_view check, const Pair& pair, const std::string& text, std::string fix = "") {
    for (One& one : all_) {
      if (grade == Grade::kOk || one.grade != grade || one.check != check || one.text != text) continue;
      ++one.more;
      return;
    }
    all_.push_back({grade, std::string(check), pair.text, text, std::move(fix), 0});
  }

  void Write(Report* report) const {
    for (const One& one : all_) {
      const std::string others = one.more == 0 ? "" : absl::StrCat("; the same for ", Counted(one.more, "more pair"));
      report->Add(one.grade, one.check, absl::StrCat(one.pair, ": ", one.text, others), one.fix);
    }
  }

 private:
  struct One {
    Grade grade;
    std::string check;
    std::string pair;  // the first
    std::string text;
    std::string fix;
    int more;
  };
  std::vector<One> all_;
};

int MarkToTry(const Patient& patient) {
  const auto map = ParseTrafficClassMap(patient.options.traffic_class_map);
  const auto octet = ResolveTrafficClass(patient.options.traffic_class, map.value_or(TrafficClassMap()));
  return octet.ok() && *octet > 0 ? *octet : kProbeMark;
}

std::string MarkText(int octet) { return octet == 0 ? std::string("no mark") : absl::StrCat("dscp ", DscpOf(octet)); }

void JudgeMark(const Patient& patient, const Pair& pair, int mark, const PacketFacts& facts, PairFindings* findings) {
  const auto changed = [mark](int octet) { return DscpOf(octet) != DscpOf(mark); };
  if (!changed(facts.mark_there) && !changed(facts.mark_back)) {
    findings->Add(Grade::kOk, "mark", pair, MarkText(mark) + " is kept in both directions");
    return;
  }
  const bool wanted = !(patient.options.traffic_class == AskedClass());
  const std::string where = !changed(facts.mark_back)    ? "on the path there"
                            : !changed(facts.mark_there) ? "on the path back"
                                                         : "in both directions";
  const int seen = changed(facts.mark_there) ? facts.mark_there : facts.mark_back;
  findings->Add(
      wanted ? Grade::kProblem : Grade::kNote, "mark", pair,
      absl::StrCat(MarkText(mark), " is changed ", where, ", to ", MarkText(seen)),
      "have the switches trust DSCP on these ports; on the hosts look for nft, tc and the CNI's rules (tcpdump -v)");
}

// A packet that is too large for the path gets lost; the kernel must hear of it, or TCP's do as well.
void JudgeMtu(const Pair& pair, const PacketFacts& facts, PairFindings* findings, Between* between) {
  const int mine = std::min(pair.here->mtu, kLargestPacket);
  const int other = std::min(pair.there->mtu, kLargestPacket);
  // A veth takes somewhat more than its MTU.
  const int there = std::min({facts.there, mine, other});
  const int back = std::min({facts.back, mine, other});
  const int path = std::min(there, back);
  between->path_mtu = between->path_mtu == 0 ? path : std::min(between->path_mtu, path);
  const std::string text = absl::StrFormat("%d bytes pass (there %d, back %d; the interfaces have %d and %d)", path,
                                           there, back, mine, other);
  const std::string fix = path > 0
                              ? absl::StrFormat(
                                    "ip link set dev %s mtu %d on this host, and the same for %s on the other; or let "
                                    "the switches pass %d; sysctl -w net.ipv4.tcp_mtu_probing=1 until then",
                                    pair.here->name, path, pair.there->name, std::max(mine, other))
                              : "find what drops packets of 1200 bytes";
  if (mine != other) {
    findings->Add(Grade::kProblem, "mtu", pair, text + ": the mtu of the two hosts differs", fix);
  } else if (path < mine) {
    findings->Add(
        Grade::kProblem, "mtu", pair,
        text + (facts.kernel_there > facts.there ? ": larger ones are dropped silently" : ": the path is narrower"),
        fix);
  } else {
    findings->Add(Grade::kOk, "mtu", pair, text);
  }
}

void CheckPackets(const Patient& patient, const Pair& pair, PairFindings* findings, Between* between) {
  auto channel = Channel::Dial(pair.target, pair.here->address);
  if (!channel.ok()) return;
  const int mark = MarkToTry(patient);
  const auto facts = AskPackets(&*channel, std::min(std::max(pair.here->mtu, 1280), kLargestPacket),
                                std::min(std::max(pair.there->mtu, 1280), kLargestPacket), mark);
  if (!facts.ok() || !facts->answered) {
    findings->Add(Grade::kNote, "mtu", pair,
                  absl::StrCat("UDP does not pass, so path MTU and marks are unknown",
                               facts.ok() ? "" : absl::StrCat(" (", facts.status().message(), ")")),
                  "let UDP between the hosts pass while the doctor asks");
    return;
  }
  JudgeMtu(pair, *facts, findings, between);
  JudgeMark(patient, pair, mark, *facts, findings);
}

void ReportNotReached(const Pair& pair, const absl::Status& why, PairFindings* findings) {
  std::string text = absl::StrCat("not reachable (", why.message(), ")");
  // Where one of the two is not alone in its subnet, that has been said, and how to fix it.
  if (!pair.here->shares.empty() || !pair.there->shares.empty()) {
    findings->Add(Grade::kProblem, "pair", pair, text + ", with interfaces in one subnet",
                  "first do what the line about interfaces in one subnet says");
    return;
  }
  std::string fix =
      absl::StrCat("ip route get ", pair.there->address.HostString(), " from ", pair.here->address.HostString(),
                   "; firewalls; or leave the interface out with NCCL_SOCKET_IFNAME");
  if (pair.here->drops || pair.there->drops) {
    const char* const where = !pair.there->drops ? "here" : !pair.here->drops ? "there" : "at both ends";
    absl::StrAppend(&text, "; rp_filter=1 ", where,
                    " drops packets that come in by another interface than their answers leave by");
    fix = "sysctl -w net.ipv4.conf.all.rp_filter=2 on that host; " + fix;
  }
  findings->Add(Grade::kProblem, "pair", pair, text, fix);
}

void CheckPair(const Patient& patient, const Pair& pair, PairFindings* findings, Between* between) {
  ++between->pairs;
  auto channel = Channel::Dial(pair.target, pair.here->address);
  absl::StatusOr<Times> times = channel.ok() ? AskTimes(&*channel, kTimes) : channel.status();
  if (!times.ok()) {
    ReportNotReached(pair, times.status(), findings);
    return;
  }
  ++between->pairs_reached;
  if (between->rtt_us == 0 || times->rtt_us < between->rtt_us) {
    between->rtt_us = times->rtt_us;
    between->clock_offset_us = times->clock_offset_us;
  }
  findings->Add(Grade::kOk, "pair", pair, absl::StrFormat("reachable, round trip %.0f us", times->rtt_us));
  CheckPackets(patient, pair, findings, between);
}

}  // namespace

void CheckPairs(const Patient& patient, const PeerFacts& here, const PeerFacts& there, Report* report,
                Between* between) {
  PairFindings findings;
  for (const PeerLink& own : here.links) {
    for (const PeerLink& other : there.links) {
      const bool fits =
          own.address.family() == other.address.family() && own.address.IsLinkLocal() == other.address.IsLinkLocal();
      if (!fits || between->pairs >= kPairsMax) continue;
      Pair pair;
      pair.here = &own;
      pair.there = &other;
      pair.target = other.address;
      pair.target.set_port(static_cast<uint16_t>(patient.command.port));
      pair.target.set_scope(own.address.scope());
      pair.text =
          absl::StrCat(own.name, " ", own.address.HostString(), " to ", other.name, " ", other.address.HostString());
      CheckPair(patient, pair, &findings, between);
    }
  }
  findings.Write(report);
  if (between->pairs == 0) {
    report->Problem("pair", "no interface here and there has addresses of one family",
                    "correct NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY on both hosts");
  }
}

}  // namespace doctor
}  // namespace tcpx
