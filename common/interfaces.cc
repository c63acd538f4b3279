#include "common/interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace tcpx {
namespace {

// `spec`: as NCCL_SOCKET_IFNAME.
bool ChosenBy(absl::string_view spec, absl::string_view name) {
  const bool negated = absl::ConsumePrefix(&spec, "^");
  const bool exact = absl::ConsumePrefix(&spec, "=");
  int wanted = 0;
  bool listed = false;
  for (absl::string_view entry : absl::StrSplit(spec, ',')) {
    entry = entry.substr(0, entry.find(':'));  // the port has no meaning here
    if (entry.empty() || ++wanted > kMaxInterfaces) continue;
    listed |= exact ? name == entry : absl::StartsWith(name, entry);
  }
  return (listed || wanted == 0) != negated;  // as NCCL: an empty list means every interface
}

int WantedFamily(const std::string& family) {
  if (family == "AF_INET") return AF_INET;
  return family == "AF_INET6" ? AF_INET6 : AF_UNSPEC;
}

// True exactly when the address could be used at all, whatever its name.
bool Usable(const Interface& candidate, int wanted_family) {
  const int family = candidate.address.family();
  if (!candidate.runs()) return false;
  if (family != AF_INET && family != AF_INET6) return false;
  if (wanted_family != AF_UNSPEC && family != wanted_family) return false;
  return family != AF_INET6 || !candidate.address.IsLoopback();
}

bool Has(const std::vector<Interface>& list, const std::string& name) {
  return std::any_of(list.begin(), list.end(), [&](const Interface& one) { return one.name == name; });
}

// The first address of each interface that `wanted` accepts.
template <typename Predicate>
std::vector<Interface> Collect(const std::vector<Interface>& usable, int max, Predicate wanted) {
  std::vector<Interface> found;
  for (const Interface& candidate : usable) {
    if (static_cast<int>(found.size()) >= max) break;
    if (!Has(found, candidate.name) && wanted(candidate)) found.push_back(candidate);
  }
  return found;
}

std::vector<Interface> CollectByName(const std::vector<Interface>& usable, int max, absl::string_view spec) {
  return Collect(usable, max, [&](const Interface& candidate) { return ChosenBy(spec, candidate.name); });
}

// At most one interface: the first in the subnet of the rendezvous address.
std::vector<Interface> CollectBySubnet(const std::vector<Interface>& usable, int max, const std::string& comm_id) {
  const absl::StatusOr<SocketAddress> remote = SocketAddress::Parse(comm_id);
  if (comm_id.size() <= 1 || !remote.ok()) return {};
  return Collect(usable, std::min(max, 1), [&](const Interface& candidate) {
    return candidate.prefix_bits > 0 && candidate.address.SamePrefix(*remote, candidate.prefix_bits) &&
           candidate.address.scope() == remote->scope();
  });
}

// Hosts of many containers have a veth for each.
constexpr size_t kSkippedNamedMax = 32;

// Why no address of an interface was chosen; empty: others come first.
const char* ReasonSkipped(const std::vector<Interface>& all, const std::string& name, const InterfaceFilter& filter) {
  bool up = false;
  bool usable = false;
  for (const Interface& one : all) {
    if (one.name != name) continue;
    up |= one.runs();
    usable |= Usable(one, WantedFamily(filter.family));
  }
  if (!up) return ", down";
  if (!usable)
    return WantedFamily(filter.family) == AF_UNSPEC ? ", no usable address" : ", no address of NCCL_SOCKET_FAMILY";
  const bool left_out = filter.ifname_spec.size() > 1 && !ChosenBy(filter.ifname_spec, name);
  return left_out ? ", left out by NCCL_SOCKET_IFNAME" : "";
}

int PrefixBits(const sockaddr* netmask) {
  if (netmask == nullptr) return 0;
  const bool v4 = netmask->sa_family == AF_INET;
  const uint8_t* bytes = v4 ? reinterpret_cast<const uint8_t*>(&reinterpret_cast<const sockaddr_in*>(netmask)->sin_addr)
                            : reinterpret_cast<const sockaddr_in6*>(netmask)->sin6_addr.s6_addr;
  int bits = 0;
  for (size_t i = 0; i < (v4 ? sizeof(in_addr) : sizeof(in6_addr)); ++i) bits += __builtin_popcount(bytes[i]);
  return bits;
}

const Interface* FindWith(const std::vector<Interface>& all, const SocketAddress& address) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&address](const Interface& one) { return one.address.SameHostAddress(address); });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

bool Interface::runs() const { return (flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0; }

std::vector<Interface> SelectInterfaces(const std::vector<Interface>& all, const InterfaceFilter& filter, int max) {
  const int family = WantedFamily(filter.family);
  std::vector<Interface> usable;
  std::copy_if(all.begin(), all.end(), std::back_inserter(usable),
               [&](const Interface& candidate) { return Usable(candidate, family); });
  if (filter.ifname_spec.size() > 1) return CollectByName(usable, max, filter.ifname_spec);
  std::vector<Interface> found = CollectByName(usable, max, "ib");
  if (found.empty()) found = CollectBySubnet(usable, max, filter.comm_id);
  for (const char* spec : {"^docker,lo,virbr", "docker", "lo", "virbr"}) {
    if (found.empty()) found = CollectByName(usable, max, spec);
  }
  return found;
}

std::optional<Interface> OtherFamilyOf(const Interface& chosen, const std::vector<Interface>& all,
                                       const InterfaceFilter& filter) {
  const int family = WantedFamily(filter.family);
  for (const Interface& one : all) {
    const bool other = one.name == chosen.name && one.address.family() != chosen.address.family();
    if (other && Usable(one, family) && !one.address.IsLinkLocal()) return one;
  }
  return std::nullopt;
}

std::string SkippedInterfaces(const std::vector<Interface>& all, const std::vector<Interface>& chosen,
                              const InterfaceFilter& filter, const std::string& sysfs_root) {
  std::vector<std::string> texts;
  std::vector<Interface> seen = chosen;
  int more = 0;
  for (const Interface& one : all) {
    if (Has(seen, one.name)) continue;
    seen.push_back(one);
    if (texts.size() == kSkippedNamedMax) {
      ++more;
      continue;
    }
    texts.push_back(absl::StrCat(one.name, " (", InterfaceKind(one.name, one.flags, sysfs_root),
                                 HasLinkLocalOnly(all, one.name) ? ", link-local only" : "",
                                 ReasonSkipped(all, one.name, filter), ")"));
  }
  if (more > 0) texts.push_back(absl::StrCat("and ", more, " more"));
  return absl::StrJoin(texts, ", ");
}

absl::StatusOr<std::vector<Interface>> SystemInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return ErrnoStatus(errno, "getifaddrs");
  std::vector<Interface> all;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const auto address = SocketAddress::FromSockaddr(entry->ifa_addr, sizeof(sockaddr_in6));
    if (!address.ok()) continue;  // no IPv4 or IPv6 address
    all.push_back(
        {entry->ifa_name, if_nametoindex(entry->ifa_name), *address, entry->ifa_flags, PrefixBits(entry->ifa_netmask)});
  }
  freeifaddrs(list);
  return all;
}

std::vector<SocketAddress> LocalAddresses() {
  std::vector<SocketAddress> addresses;
  for (const Interface& one : SystemInterfaces().value_or(std::vector<Interface>())) addresses.push_back(one.address);
  return addresses;
}

std::string InterfaceWith(const SocketAddress& address) {
  const auto all = SystemInterfaces();
  const Interface* const found = all.ok() ? FindWith(*all, address) : nullptr;
  return found == nullptr ? "" : found->name;
}

std::string DownInterfaceOf(const SocketAddress& local) {
  const auto all = SystemInterfaces();
  if (!all.ok()) return "";
  const Interface* const found = FindWith(*all, local);
  if (found == nullptr) return absl::StrCat("with ", local.HostString());
  return found->runs() ? "" : found->name;
}

std::string InterfaceStates::Down(const SocketAddress& local, int64_t now_ns) {
  MutexLock lock(mutex_);
  const auto [found, is_new] = states_.try_emplace(local.HostString());
  State& state = found->second;
  if (is_new || now_ns - state.looked_ns >= kKeptNs) state = {look_(local), now_ns};
  return state.down;
}

std::string ResolveCommId(const std::string& comm_id) {
  const size_t colon = comm_id.rfind(':');
  if (comm_id.size() <= 1 || colon == std::string::npos || SocketAddress::Parse(comm_id).ok()) return comm_id;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(comm_id.substr(0, colon).c_str(), comm_id.substr(colon + 1).c_str(), &hints, &list) != 0) {
    return comm_id;
  }
  const absl::StatusOr<SocketAddress> first = SocketAddress::FromSockaddr(list->ai_addr, list->ai_addrlen);
  freeaddrinfo(list);
  return first.ok() ? first->ToString() : comm_id;
}

}  // namespace tcpx
