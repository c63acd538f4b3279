#include "net_socket/connect/own_address.h"

#include <algorithm>
#include <climits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tcpx {
namespace {

// Others in use that a prefix of this name leaves out, too: "eth1" and eth10.
std::vector<std::string> AlsoLeftOut(const std::vector<Interface>& used, const std::string& name) {
  std::vector<std::string> names;
  for (const Interface& each : used) {
    const bool known = std::find(names.begin(), names.end(), each.name) != names.end();
    if (each.name != name && absl::StartsWith(each.name, name) && !known) names.push_back(each.name);
  }
  return names;
}

}  // namespace

std::string OwnAddressAdvice(const std::vector<Interface>& all, const InterfaceFilter& filter,
                             const std::string& name) {
  const std::string& spec = filter.ifname_spec;
  if (name.empty()) return "Name the interface that connects the hosts in NCCL_SOCKET_IFNAME, on all ranks";
  const std::vector<Interface> used = SelectInterfaces(all, filter, INT_MAX);
  const bool is_used =
      std::any_of(used.begin(), used.end(), [&name](const Interface& each) { return each.name == name; });
  if (!is_used) {
    return absl::StrCat("This host does not use ", name,
                        spec.empty() ? "" : absl::StrCat(" (NCCL_SOCKET_IFNAME=", spec, ")"),
                        ", and the peer uses an interface with the same address, whatever its name: set "
                        "NCCL_SOCKET_IFNAME there so that it leaves it out");
  }
  if (!spec.empty() && !absl::StartsWith(spec, "^")) {
    return absl::StrCat("NCCL_SOCKET_IFNAME=", spec,
                        " chooses it: name only interfaces that connect the hosts, on all ranks");
  }
  std::string without = spec.empty() ? "^docker,lo" : spec;
  const bool there = spec.empty() && (absl::StartsWith(name, "docker") || absl::StartsWith(name, "lo"));
  if (!there) absl::StrAppend(&without, ",", name);
  const bool exact = absl::StartsWith(without, "^=");
  const std::vector<std::string> also = exact || there ? std::vector<std::string>() : AlsoLeftOut(used, name);
  return absl::StrCat("Leave that interface out on all ranks (NCCL_SOCKET_IFNAME=", without,
                      also.empty() ? "" : absl::StrCat(", which leaves out ", absl::StrJoin(also, ", "), " too"),
                      "), or name the one that connects them");
}

absl::Status OwnAddressFailure(const SocketAddress& peer, const InterfaceFilter& filter, const std::string& why) {
  const std::string name = InterfaceWith(peer);
  const auto all = SystemInterfaces();
  return absl::UnavailableError(
      absl::StrCat("connect to ", peer.ToString(), ": this address is also one of this host's own (",
                   name.empty() ? "its interface is unknown" : name,
                   "), so it leads here and not to the peer, which is another host or container. ",
                   OwnAddressAdvice(all.ok() ? *all : std::vector<Interface>(), filter, name), ". The result: ", why));
}

}  // namespace tcpx
