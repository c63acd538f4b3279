// What the kernel says of interfaces and addresses, taken apart and heard.
#include "common/link_watch.h"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/deadline.h"
#include "tests/support/own_network.h"

namespace tcpx {
namespace {

std::string Attribute(uint16_t type, const std::string& data) {
  rtattr head{};
  head.rta_type = type;
  head.rta_len = static_cast<uint16_t>(sizeof(head) + data.size());
  std::string all(reinterpret_cast<const char*>(&head), sizeof(head));
  all += data;
  all.resize(RTA_ALIGN(all.size()));
  return all;
}

template <typename Body>
std::string Message(uint16_t type, const Body& body, const std::string& attributes) {
  nlmsghdr head{};
  head.nlmsg_type = type;
  head.nlmsg_len = static_cast<uint32_t>(NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(body)) + attributes.size());
  std::string all(reinterpret_cast<const char*>(&head), sizeof(head));
  all.append(reinterpret_cast<const char*>(&body), sizeof(body));
  all.resize(NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(body)));
  return all + attributes;
}

std::string LinkMessage(uint16_t type, const std::string& name) {
  return Message(type, ifinfomsg{}, Attribute(IFLA_MTU, std::string(4, 'x')) + Attribute(IFLA_IFNAME, name + '\0'));
}

std::string AddressMessage(uint16_t type, int family, const std::string& attributes) {
  ifaddrmsg body{};
  body.ifa_family = static_cast<uint8_t>(family);
  return Message(type, body, attributes);
}

std::string Text(const std::string& datagram) {
  std::string text;
  for (const LinkNews& one : ParseLinkNews(datagram.data(), datagram.size())) {
    text += (one.address.valid() ? one.address.HostString() : one.name) + " ";
  }
  return text;
}

TEST(LinkWatchTest, NamesAndAddresses) {
  const std::string own("\x0a\x01\x00\x02", 4);
  const std::string far("\x0a\x01\x00\x03", 4);
  std::string six(16, '\0');
  six[0] = '\xfd';
  six[15] = 7;
  const std::string all =
      LinkMessage(RTM_NEWLINK, "eth0") + LinkMessage(RTM_DELLINK, "eth17") + LinkMessage(RTM_NEWROUTE, "none") +
      AddressMessage(RTM_DELADDR, AF_INET, Attribute(IFA_ADDRESS, far) + Attribute(IFA_LOCAL, own)) +
      AddressMessage(RTM_NEWADDR, AF_INET6, Attribute(IFA_ADDRESS, six)) +
      AddressMessage(RTM_NEWADDR, AF_INET6, Attribute(IFA_ADDRESS, own)) + LinkMessage(RTM_NEWLINK, "eth1");
  EXPECT_EQ("eth0 eth17 10.1.0.2 fd00::7 eth1 ", Text(all));
}

// No length in it leads out of it: the sanitizers look on.
TEST(LinkWatchTest, CutShortAndWrongLengths) {
  const std::string whole = LinkMessage(RTM_NEWLINK, "eth0") +
                            AddressMessage(RTM_DELADDR, AF_INET, Attribute(IFA_LOCAL, std::string(4, '\x0a')));
  for (size_t length = 0; length <= whole.size(); ++length) {
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_LE(ParseLinkNews(part.data(), part.size()).size(), 2u);
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (char value : {'\x00', '\x01', '\x03', '\x7f', '\xff'}) {
      std::vector<char> wrong(whole.begin(), whole.end());
      wrong[at] = value;
      EXPECT_LE(ParseLinkNews(wrong.data(), wrong.size()).size(), 2u);
    }
  }
}

bool SetFlags(const char* name, int flags) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, name);
  request.ifr_flags = static_cast<short>(flags);
  const bool set = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return set;
}

TEST(LinkWatchTest, HearsOfItsOwnHost) {
  if (!InOwnNetwork()) GTEST_SKIP() << "no network of its own";
  LinkWatch watch;
  EXPECT_EQ(-1, watch.fd());
  ASSERT_TRUE(watch.Open().ok());
  std::vector<LinkNews> news;
  EXPECT_TRUE(watch.Read(&news));
  EXPECT_TRUE(news.empty());
  for (const bool up : {false, true}) {
    ASSERT_TRUE(SetFlags("lo", IFF_LOOPBACK | (up ? IFF_UP : 0)));
    news.clear();
    const Deadline deadline(60);
    const auto is_lo = [](const LinkNews& one) { return one.name == "lo"; };
    while (std::none_of(news.begin(), news.end(), is_lo)) {
      EXPECT_TRUE(watch.Read(&news));
      ASSERT_TRUE(deadline.Yield());
    }
  }
  watch.Close();
  EXPECT_EQ(-1, watch.fd());
}

// More than it holds while nobody reads.
TEST(LinkWatchTest, SaysThatSomeWereDropped) {
  if (!InOwnNetwork()) GTEST_SKIP() << "no network of its own";
  LinkWatch watch;
  ASSERT_TRUE(watch.Open().ok());
  const int least = 1;
  ASSERT_EQ(0, setsockopt(watch.fd(), SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(SetFlags("lo", IFF_LOOPBACK));
    ASSERT_TRUE(SetFlags("lo", IFF_LOOPBACK | IFF_UP));
  }
  std::vector<LinkNews> news;
  EXPECT_FALSE(watch.Read(&news));
  EXPECT_TRUE(watch.Read(&news));
}

}  // namespace
}  // namespace tcpx
