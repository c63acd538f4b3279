#include "tools/doctor/greeting.h"

#include <sys/socket.h>
#include <time.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/build_info.h"
#include "common/params.h"
#include "common/this_host.h"
#include "net_socket/nic/routing.h"
#include "tools/doctor/link_facts.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr size_t kLinksMax = 128;

int64_t WallNanos() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * kSecond + now.tv_nsec;
}

std::string LinkLine(const PeerLink& link) {
  // The scope of a link-local address means nothing on the other host.
  std::string host = link.address.HostString();
  host.resize(std::min(host.find('%'), host.size()));
  return absl::StrCat("link device=", link.device, " name=", link.name, " address=", host, " bits=", link.prefix_bits,
                      " mtu=", link.mtu, " speed=", link.speed_mbps, " shares=", link.shares, " drops=", link.drops);
}

PeerLink LinkOf(const Patient& patient, int device, const Nic& nic) {
  const Interface& interface = nic.interface;
  PeerLink link = {device,
                   interface.name,
                   interface.address,
                   interface.prefix_bits,
                   ReadLinkFacts(interface.name).mtu,
                   nic.hardware.speed_mbps,
                   /*shares=*/"",
                   /*drops=*/false};
  const ArpRules rules = ReadArpRules(patient.root + "/proc", interface.name);
  link.drops = interface.address.family() == AF_INET && rules.rp_filter == 1;
  if (KeepsToItself(interface, rules)) return link;
  link.shares = absl::StrJoin(SharersOfSubnet(interface, patient.interfaces), "+");
  return link;
}

// What parameters were changed to, each as one word.
std::map<std::string, std::string> ChangedParameters(const Options& options) {
  std::map<std::string, std::string> changed;
  for (const Parameter& parameter : Parameters()) {
    std::string value = ValueOf(parameter, options);
    // Where the secret lies is for nobody who asks.
    if (value == DefaultText(parameter) || absl::string_view(parameter.name) == "TCPX_SECRET_FILE") continue;
    value.erase(std::remove_if(value.begin(), value.end(), [](unsigned char c) { return !absl::ascii_isgraph(c); }),
                value.end());
    changed[parameter.name] = value;
  }
  return changed;
}

}  // namespace

PeerFacts OwnFacts(const Patient& patient) {
  PeerFacts facts;
  facts.host = HostName();
  facts.version = kVersion;
  facts.mark = absl::StrCat(absl::Hex(HostMark()));
  for (int i = 0; i < patient.devices.count(); ++i) {
    const Device& device = patient.devices.device(i);
    for (const auto* nics : {&device.nics, &device.other_nics}) {
      for (const Nic& nic : *nics) facts.links.push_back(LinkOf(patient, i, nic));
    }
  }
  for (const Interface& one : patient.interfaces) {
    const SocketAddress& address = one.address;
    if (!address.IsLoopback() && !address.IsLinkLocal()) facts.addresses.push_back(address.HostString());
  }
  facts.addresses.resize(std::min(facts.addresses.size(), kLinksMax));
  facts.links.resize(std::min(facts.links.size(), kLinksMax));
  facts.parameters = ChangedParameters(patient.options);
  return facts;
}

absl::Status SendFacts(const Patient& patient, Channel* channel) {
  const PeerFacts facts = OwnFacts(patient);
  std::vector<std::string> lines = {
      absl::StrCat("facts host=", facts.host, " version=", facts.version, " mark=", facts.mark)};
  lines.push_back(absl::StrCat("addresses all=", absl::StrJoin(facts.addresses, ",")));
  for (const PeerLink& link : facts.links) lines.push_back(LinkLine(link));
  for (const auto& [name, value] : facts.parameters) {
    lines.push_back(absl::StrCat("parameter name=", name, " value=", value));
  }
  lines.push_back("end");
  return channel->Send(absl::StrJoin(lines, "\n"));
}

absl::StatusOr<PeerFacts> AskFacts(Channel* channel) {
  PeerFacts facts;
  absl::StatusOr<std::string> line = channel->Ask("tcpx_doctor 1 facts");
  for (size_t count = 0; line.ok() && *line != "end"; line = channel->Receive(), ++count) {
    const Fields fields = ParseFields(*line);
    if (count > 2 * kLinksMax) return absl::UnavailableError("the other side is no doctor: its answer is too long");
    if (count == 0 && !absl::StartsWith(*line, "facts ")) return absl::UnavailableError(*line);
    if (count == 0) {
      facts.host = TextOf(fields, "host");
      facts.version = TextOf(fields, "version");
      facts.mark = TextOf(fields, "mark");
    } else if (absl::StartsWith(*line, "addresses ")) {
      facts.addresses = absl::StrSplit(TextOf(fields, "all"), ',', absl::SkipEmpty());
    } else if (absl::StartsWith(*line, "parameter ")) {
      facts.parameters[TextOf(fields, "name")] = TextOf(fields, "value");
    } else if (const auto address = SocketAddress::Parse(TextOf(fields, "address")); address.ok()) {
      facts.links.push_back({static_cast<int>(NumberOf(fields, "device", 0)), TextOf(fields, "name"), *address,
                             static_cast<int>(NumberOf(fields, "bits", 0)),
                             static_cast<int>(NumberOf(fields, "mtu", 0)),
                             static_cast<int>(NumberOf(fields, "speed", 0)), TextOf(fields, "shares"),
                             NumberOf(fields, "drops", 0) != 0});
    }
  }
  if (!line.ok()) return line.status();
  return facts;
}

absl::Status AnswerTimes(Channel* channel) {
  for (;;) {
    const absl::Status sent = channel->Send(absl::StrCat("time ns=", WallNanos()));
    if (!sent.ok()) return sent;
    const auto line = channel->Receive();
    if (!line.ok() || *line != "again") return line.status();
  }
}

absl::StatusOr<Times> AskTimes(Channel* channel, int count) {
  Times best;
  for (int i = 0; i < count; ++i) {
    const int64_t began = MonotonicNanos();
    const int64_t wall = WallNanos();
    const auto line = channel->Ask(i == 0 ? "tcpx_doctor 1 times" : "again");
    if (!line.ok()) return line.status();
    const double rtt_us = static_cast<double>(MonotonicNanos() - began) / 1000;
    const int64_t there = NumberOf(ParseFields(*line), "ns", 0);
    if (i > 0 && (best.rtt_us == 0 || rtt_us < best.rtt_us)) {  // the first one also started a process
      best.rtt_us = rtt_us;
      best.clock_offset_us = static_cast<double>(there - wall) / 1000 - rtt_us / 2;
    }
  }
  return best;
}

}  // namespace doctor
}  // namespace tcpx
