#include "tools/doctor/link_facts.h"

#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_join.h"
#include "common/fd.h"

namespace tcpx {
namespace doctor {
namespace {

struct NamedOffload {
  const char* name;
  unsigned command;
};
constexpr NamedOffload kOffloads[] = {{"tso", ETHTOOL_GTSO},
                                      {"gso", ETHTOOL_GGSO},
                                      {"gro", ETHTOOL_GGRO},
                                      {"rx", ETHTOOL_GRXCSUM},
                                      {"tx", ETHTOOL_GTXCSUM}};

ifreq RequestFor(const std::string& ifname) {
  ifreq request = {};
  strncpy(request.ifr_name, ifname.c_str(), sizeof(request.ifr_name) - 1);
  return request;
}

bool AskDriver(int fd, const std::string& ifname, void* question) {
  ifreq request = RequestFor(ifname);
  request.ifr_data = static_cast<char*>(question);
  return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

void ReadChannels(int fd, const std::string& ifname, LinkFacts* facts) {
  ethtool_channels channels = {};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (!AskDriver(fd, ifname, &channels)) return;
  facts->queues = static_cast<int>(channels.combined_count + std::max(channels.rx_count, channels.tx_count));
  facts->queues_max = static_cast<int>(channels.max_combined + std::max(channels.max_rx, channels.max_tx));
}

// The text of one attribute of an answer to RTM_GETLINK.
std::string TextAttribute(const nlmsghdr* answer, unsigned short type) {
  const auto* link = static_cast<const ifinfomsg*>(NLMSG_DATA(answer));
  auto left = static_cast<int>(IFLA_PAYLOAD(answer));
  for (const rtattr* at = IFLA_RTA(link); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    const auto* text = static_cast<const char*>(RTA_DATA(at));
    if (at->rta_type == type) return std::string(text, strnlen(text, RTA_PAYLOAD(at)));
  }
  return "";
}

std::string ReadQdisc(const std::string& ifname) {
  const OwnedFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  struct {
    nlmsghdr header;
    ifinfomsg link;
  } question = {};
  question.header.nlmsg_len = NLMSG_LENGTH(sizeof(ifinfomsg));
  question.header.nlmsg_type = RTM_GETLINK;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.link.ifi_index = static_cast<int>(if_nametoindex(ifname.c_str()));
  if (!fd.valid() || question.link.ifi_index == 0) return "";
  if (send(fd.get(), &question, sizeof(question), 0) < 0) return "";
  alignas(nlmsghdr) std::array<char, 32768> answer;
  const ssize_t bytes = recv(fd.get(), answer.data(), answer.size(), 0);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (bytes < 0 || !NLMSG_OK(header, static_cast<size_t>(bytes)) || header->nlmsg_type != RTM_NEWLINK) return "";
  return TextAttribute(header, IFLA_QDISC);
}

}  // namespace

LinkFacts ReadLinkFacts(const std::string& ifname) {
  LinkFacts facts;
  const OwnedFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return facts;
  ifreq request = RequestFor(ifname);
  if (ioctl(fd.get(), SIOCGIFMTU, &request) == 0) facts.mtu = request.ifr_mtu;
  ethtool_drvinfo driver = {};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (AskDriver(fd.get(), ifname, &driver)) facts.driver.assign(driver.driver, strnlen(driver.driver, 32));
  for (const NamedOffload& offload : kOffloads) {
    ethtool_value value = {};
    value.cmd = offload.command;
    const bool known = AskDriver(fd.get(), ifname, &value);
    facts.offloads.push_back({offload.name, known ? std::optional<bool>(value.data != 0) : std::nullopt});
  }
  ReadChannels(fd.get(), ifname, &facts);
  facts.qdisc = ReadQdisc(ifname);
  return facts;
}

std::string OffloadsOff(const LinkFacts& facts, bool is_virtual) {
  std::vector<const char*> off;
  for (const Offload& offload : facts.offloads) {
    const bool normal = is_virtual && strcmp(offload.name, "gro") == 0;
    if (offload.on.has_value() && !*offload.on && !normal) off.push_back(offload.name);
  }
  return absl::StrJoin(off, ", ");
}

}  // namespace doctor
}  // namespace tcpx
