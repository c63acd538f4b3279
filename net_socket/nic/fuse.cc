#include "net_socket/nic/fuse.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "nccl/plugin_api.h"

namespace tcpx {
namespace {

std::string Names(const std::vector<Interface>& interfaces) {
  return absl::StrJoin(interfaces, ", ", [](std::string* out, const Interface& one) { out->append(one.name); });
}

int Find(const std::vector<Interface>& chosen, absl::string_view name) {
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// The group's members; on failure `*reason` says why there are none.
std::vector<int> ReadGroup(absl::string_view group, const std::vector<Interface>& chosen,
                           const std::vector<bool>& taken, std::string* reason) {
  std::vector<int> members;
  std::vector<Interface> interfaces;
  for (absl::string_view name : absl::StrSplit(group, '+')) {
    const int found = Find(chosen, name);
    if (found < 0) {
      *reason = absl::StrCat("'", name, "' is not among the interfaces in use (", Names(chosen),
                             "): correct the name, or let NCCL_SOCKET_IFNAME choose it too");
      return {};
    }
    if (taken[static_cast<size_t>(found)]) {
      *reason = absl::StrCat("'", name, "' is in another group already");
      return {};
    }
    members.push_back(found);
    interfaces.push_back(chosen[static_cast<size_t>(found)]);
  }
  *reason = members.size() < 2 ? "a group is two interfaces or more, such as eth1+eth2" : WhyNotFused(interfaces);
  return reason->empty() ? members : std::vector<int>();
}

}  // namespace

std::string WhyNotFused(const std::vector<Interface>& members) {
  if (members.size() > static_cast<size_t>(kNicsMax)) {
    return absl::StrCat(members.size(), " interfaces are too many: a device has ", kNicsMax, " at most");
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (Find(members, members[i].name) != static_cast<int>(i)) {
      return absl::StrCat("'", members[i].name, "' is there twice");
    }
    if (members[i].address.family() != members[0].address.family()) {
      return absl::StrCat(members[0].name, " (", members[0].address.HostString(), ") and ", members[i].name, " (",
                          members[i].address.HostString(),
                          ") have addresses of different families: set NCCL_SOCKET_FAMILY");
    }
  }
  return "";
}

std::vector<std::vector<int>> PlanFusion(const std::string& spec, const std::vector<Interface>& chosen,
                                         std::vector<std::string>* warnings) {
  std::vector<bool> taken(chosen.size(), false);
  std::vector<std::vector<int>> devices;
  for (absl::string_view group : absl::StrSplit(spec, ',', absl::SkipEmpty())) {
    std::string reason;
    std::vector<int> members = ReadGroup(group, chosen, taken, &reason);
    if (members.empty()) {
      warnings->push_back(absl::StrCat("TCPX_FUSE: ", group, " is not fused: ", reason));
      continue;
    }
    for (int member : members) taken[static_cast<size_t>(member)] = true;
    devices.push_back(std::move(members));
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!taken[i]) devices.push_back({static_cast<int>(i)});
  }
  std::sort(devices.begin(), devices.end(), [](const std::vector<int>& a, const std::vector<int>& b) {
    return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
  });
  return devices;
}

}  // namespace tcpx
