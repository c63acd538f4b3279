#include "tools/doctor/between.h"

#include <netdb.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/build_info.h"
#include "common/counted.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/path_profile.h"
#include "tools/doctor/local_checks.h"
#include "tools/doctor/pairs.h"
#include "tools/doctor/stream.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr int kDevicePairsMax = 16;
constexpr int kShortMs = 100;

// Where the name leads; the first address that a doctor answers at.
absl::StatusOr<SocketAddress> FindDoctor(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &list);
  if (failed != 0) return absl::NotFoundError(absl::StrCat(host, ": ", gai_strerror(failed)));
  absl::Status last = absl::NotFoundError(host + ": no address");
  absl::StatusOr<SocketAddress> found = last;
  for (const addrinfo* at = list; at != nullptr && !found.ok(); at = at->ai_next) {
    const auto address = SocketAddress::FromSockaddr(at->ai_addr, at->ai_addrlen);
    if (!address.ok()) continue;
    const auto channel = Channel::Dial(*address, SocketAddress());
    last = channel.status();
    found = channel.ok() ? address : last;
  }
  freeaddrinfo(list);
  return found;
}

// Each stream has a process of its own, so that TCPX_LANES may differ.
absl::StatusOr<double> Stream(const SocketAddress& doctor, const FoundLibraries& found, int lanes, int own_device,
                              int other_device, bool sends, int ms) {
  const std::string line = InChild([&]() -> std::string {
    auto channel = Channel::Dial(doctor, SocketAddress());
    if (!channel.ok()) return absl::StrCat("error ", channel.status().message());
    const absl::Status asked = channel->Send(absl::StrFormat("tcpx_doctor 1 stream lanes=%d device=%d ms=%d role=%s",
                                                             lanes, other_device, ms, sends ? "receives" : "sends"));
    if (!asked.ok()) return absl::StrCat("error ", asked.message());
    const StreamOrder order = {found.plugin, found.version, lanes, own_device, sends, ms};
    const auto speed = RunStream(order, &*channel);
    return speed.ok() ? absl::StrCat("speed ", *speed) : absl::StrCat("error ", speed.status().message());
  });
  absl::string_view text = line;
  double speed = 0;
  if (absl::ConsumePrefix(&text, "speed ") && absl::SimpleAtod(text, &speed)) return speed;
  absl::ConsumePrefix(&text, "error ");
  return absl::UnavailableError(text);
}

// False: the two hosts would refuse each other.
bool CheckSecrets(const Patient& patient, const SocketAddress& doctor, Report* report) {
  auto channel = Channel::Dial(doctor, SocketAddress());
  const auto secrets = channel.ok() ? CompareSecrets(patient, &*channel) : channel.status();
  if (!secrets.ok()) {
    report->Problem("secret", absl::StrCat("the secrets could not be compared: ", secrets.status().message()),
                    "start the doctor on the other host again, with the same release on both");
    return true;
  }
  const char* const fix = "copy the file to both hosts, and set TCPX_SECRET_FILE on both";
  switch (*secrets) {
    case SecretsAre::kSame:
      report->Ok("secret", "both hosts have the same secret");
      return true;
    case SecretsAre::kNone:
      report->Ok("secret", "neither host has a secret");
      return true;
    case SecretsAre::kDifferent:
      report->Problem("secret", "the secrets of the two hosts differ: they would refuse each other", fix);
      return false;
    case SecretsAre::kOnlyHere:
      report->Problem("secret", "only this host has a secret (TCPX_SECRET_FILE): it would refuse the other", fix);
      return false;
    case SecretsAre::kOnlyThere:
      report->Problem("secret", "only the other host has a secret (TCPX_SECRET_FILE): it would refuse this one", fix);
      return false;
  }
  return true;
}

void CheckAddresses(const PeerFacts& here, const PeerFacts& there, Report* report) {
  if (here.mark == there.mark) {
    report->Note("address", "the other host is this one: all that follows is about loopback");
    return;
  }
  if (there.version != kVersion) {
    report->Note("address", absl::StrCat("the other doctor is of version ", there.version, ", this one of ", kVersion),
                 "install one release on all hosts");
  }
  const std::set<std::string> own(here.addresses.begin(), here.addresses.end());
  for (const std::string& address : there.addresses) {
    if (own.count(address) == 0) continue;
    const auto chosen = [&](const PeerFacts& facts) {
      return std::any_of(facts.links.begin(), facts.links.end(),
                         [&](const PeerLink& link) { return link.address.HostString() == address; });
    };
    const bool used = chosen(here) || chosen(there);
    report->Add(
        used ? Grade::kProblem : Grade::kOk, "address",
        absl::StrCat(address, " is on both hosts", used ? ": they would dial themselves" : ", and neither uses it"),
        used ? "leave the interface out with NCCL_SOCKET_IFNAME, or give one host another address" : "");
  }
}

// What the rounds of one number of flows gave.
struct FlowRounds {
  int flows = 0;
  std::vector<double> out;
  std::vector<double> in;
};

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Those that were measured in both directions.
std::vector<Flows> Summaries(const std::vector<FlowRounds>& all) {
  std::vector<Flows> flows;
  for (const FlowRounds& each : all) {
    const size_t rounds = std::min(each.out.size(), each.in.size());
    if (rounds == 0) continue;
    Flows one = {each.flows, MedianOf(each.out), MedianOf(each.in)};
    for (size_t i = 0; i < rounds && rounds > 1; ++i) {
      const double slower = std::min(each.out[i], each.in[i]);
      one.low_mbps = i == 0 ? slower : std::min(one.low_mbps, slower);
      one.high_mbps = std::max(one.high_mbps, slower);
    }
    flows.push_back(one);
  }
  return flows;
}

void ReportFailures(const std::map<std::string, std::vector<std::string>>& failures, int untried, Report* report) {
  for (const auto& [fix, texts] : failures) {
    const size_t more = texts.size() - 1;
    std::string others = more == 0 ? "" : absl::StrCat("; the same for ", Counted(more, "more pair"));
    if (more > 0 && untried > 0) absl::StrAppend(&others, ", and ", Counted(untried, "pair"), " not tried");
    report->Problem("flow", texts.front() + others, fix);
  }
}

// Each device here with each one there, as NCCL may join them; not the rest once two have failed alike: each failure
// takes as long as the plugin waits.
std::pair<int, int> CheckDevicePairs(const Patient& patient, const SocketAddress& doctor, const FoundLibraries& found,
                                     const PeerFacts& there, Report* report) {
  int devices_there = 0;
  for (const PeerLink& link : there.links) devices_there = std::max(devices_there, link.device + 1);
  const int pairs = std::min(kDevicePairsMax, patient.devices.count() * devices_there);
  std::pair<int, int> best = {-1, -1};
  double best_mbps = 0;
  std::map<std::string, std::vector<std::string>> failures;  // by what is to be done: one problem is one line
  int tried = 0;
  for (bool failed_alike = false; tried < pairs && !failed_alike; ++tried) {
    const int own = tried / devices_there;
    const int other = tried % devices_there;
    const std::string text =
        absl::StrFormat("device %d (%s) to device %d there", own, patient.devices.device(own).name, other);
    const auto speed = Stream(doctor, found, 0, own, other, true, kShortMs);
    if (!speed.ok()) {
      std::vector<std::string>& alike = failures[FixStream(*report, speed.status().message())];
      alike.push_back(absl::StrCat(text, ": the plugin does not connect: ", speed.status().message()));
      failed_alike = alike.size() == 2;
      continue;
    }
    report->Ok("flow", text + ": the plugin connects");
    if (*speed > best_mbps) best = {own, other};
    best_mbps = std::max(best_mbps, *speed);
  }
  ReportFailures(failures, pairs - tried, report);
  return best;
}

// "1 flow from here to HOST: ..."; what fails once would fail again, after as long a wait.
void ReportFailedStream(int flows, bool sends, const std::string& host, const absl::Status& why, Report* report) {
  const std::string from_to = sends ? absl::StrCat(" from here to ", host) : absl::StrCat(" from ", host, " to here");
  report->Problem("flow", absl::StrCat(Counted(flows, "flow"), from_to, ": ", why.message()),
                  FixStream(*report, why.message()));
}

// Both directions of each number of flows, round by round: what a neighbour does meanwhile hits all alike.
std::vector<Flows> MeasureFlows(const Patient& patient, const SocketAddress& doctor, const FoundLibraries& found,
                                std::pair<int, int> devices, Report* report) {
  std::vector<FlowRounds> all = {{1, {}, {}}, {4, {}, {}}, {16, {}, {}}};
  const int rounds = patient.command.milliseconds >= kAdviceMs ? 3 : 1;
  for (int round = 0; round < rounds; ++round) {
    for (FlowRounds& each : all) {
      const int lanes = each.flows == 1 ? 1 : each.flows + 1;  // lane 0 carries the small messages
      for (const bool sends : {true, false}) {
        const int ms = patient.command.milliseconds / rounds;
        const auto speed = Stream(doctor, found, lanes, devices.first, devices.second, sends, ms);
        if (!speed.ok()) {
          ReportFailedStream(each.flows, sends, patient.command.host, speed.status(), report);
          return Summaries(all);
        }
        (sends ? each.out : each.in).push_back(*speed);
      }
    }
  }
  return Summaries(all);
}

int AutoFlows(const Patient& patient, int device) {
  const PathProfile path = MakePathProfile(patient.options, PathFacts());
  const int lanes = LanesFor(patient.options, path, patient.devices.device(device).nics, 1, int64_t{1} << 40).lanes;
  return std::max(1, lanes - 1);
}

void CheckStreams(const Patient& patient, const SocketAddress& doctor, const PeerFacts& there, Report* report,
                  Between* between) {
  Report about_libraries;
  const FoundLibraries found = CheckLibraries(patient, &about_libraries);
  for (const Finding& finding : about_libraries.findings()) {
    if (finding.grade == Grade::kProblem) report->Problem(finding.check, finding.text, finding.fix);
  }
  if (found.plugin.empty() || between->pairs_reached == 0 || patient.command.milliseconds == 0) return;
  const std::pair<int, int> devices = CheckDevicePairs(patient, doctor, found, there, report);
  if (devices.first < 0) return;
  between->flows = MeasureFlows(patient, doctor, found, devices, report);
  JudgeFlows(between->flows, AutoFlows(patient, devices.first), patient.command.milliseconds, report);
}

// The kernel's bounds once more, with the round trip that was measured.
void CheckBuffersAgain(const Patient& patient, const Between& between, Report* report) {
  if (between.rtt_us == 0) return;
  Patient measured = patient;
  measured.command.rtt_us = std::max(1, static_cast<int>(between.rtt_us));
  Report buffers;
  CheckBuffers(measured, &buffers);
  for (const Finding& finding : buffers.findings()) {
    if (finding.grade == Grade::kProblem) report->Problem(finding.check, finding.text, finding.fix);
  }
}

}  // namespace

Between CheckBetween(const Patient& patient, Report* report) {
  Between between;
  const std::string& host = patient.command.host;
  const auto doctor = FindDoctor(host, patient.command.port);
  absl::StatusOr<PeerFacts> there = absl::UnavailableError(doctor.status().message());
  if (doctor.ok()) {
    auto channel = Channel::Dial(*doctor, SocketAddress());
    there = channel.ok() ? AskFacts(&*channel) : channel.status();
  }
  if (!there.ok()) {
    report->Problem(
        "reach", absl::StrCat(host, " port ", patient.command.port, ": no doctor answers: ", there.status().message()),
        absl::StrCat("tcpx_doctor listen --port ", patient.command.port, " on ", host,
                     "; open that port in firewalls between"));
    return between;
  }
  const PeerFacts here = OwnFacts(patient);
  report->Ok("reach", absl::StrCat("a doctor answers on ", there->host, " (", doctor->ToString(), ")"));
  CheckAddresses(here, *there, report);
  const bool secrets_fit = CheckSecrets(patient, *doctor, report);
  const bool parameters_fit = CompareParameters(here, *there, report);
  CheckSharedSubnets(here, report);
  if (here.mark != there->mark) CheckSharedSubnets(*there, report);
  CheckPairs(patient, here, *there, report, &between);
  if (between.rtt_us > 0) JudgeClock(between.clock_offset_us, report);
  CheckBuffersAgain(patient, between, report);
  if (secrets_fit && parameters_fit) {
    CheckStreams(patient, *doctor, *there, report, &between);
  } else {
    report->Note("flow", "no streams were tried: the two hosts would refuse each other");
  }
  return between;
}

std::string SummaryLine(const Between& between, const Report& report) {
  double out = 0;
  double in = 0;
  for (const Flows& flows : between.flows) {
    out = std::max(out, flows.out_mbps);
    in = std::max(in, flows.in_mbps);
  }
  std::string text;
  for (const Finding& finding : report.findings()) {
    if (finding.grade == Grade::kProblem && text.empty()) text = finding.text;
  }
  return absl::StrFormat("summary rtt_us=%.0f mtu=%d out_mbps=%.0f in_mbps=%.0f problems=%d text=%s\n", between.rtt_us,
                         between.path_mtu, out, in, report.Count(Grade::kProblem), text);
}

}  // namespace doctor
}  // namespace tcpx
