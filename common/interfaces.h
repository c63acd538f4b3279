// interfaces.h: which network interfaces become devices, by NCCL's rules, and what the kernel says about each.
//
// Purpose: the same NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY and NCCL_COMM_ID choose the same interfaces here as in
//          NCCL's own socket transport.
// Threads: any; no state but that of InterfaceStates.
// Units:   speed in Mbit/s, nanoseconds of MonotonicNanos.
// Errors:  the local kernel's. An interface that vanishes meanwhile reads as virtual, at the default speed.
// Source:  the rules as of NCCL 2.28.3 (IFF_RUNNING required; virbr* searched last); 16 interfaces at most, and
//          10000 Mbit/s where the kernel knows none, as NCCL's socket transport.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace tcpx {

inline constexpr int kMaxInterfaces = 16;
inline constexpr int kDefaultSpeedMbps = 10000;

// One address of one interface; an interface with several addresses appears several times.
struct Interface {
  std::string name;
  unsigned index = 0;
  SocketAddress address;
  unsigned flags = 0;   // IFF_* of net/if.h
  int prefix_bits = 0;  // of the netmask, for the subnet rule
  bool runs() const;    // up, and with a carrier
};

// The three variables, as they are in the environment; empty is unset.
struct InterfaceFilter {
  std::string ifname_spec;  // NCCL_SOCKET_IFNAME
  std::string family;       // NCCL_SOCKET_FAMILY
  std::string comm_id;      // NCCL_COMM_ID; a host's name must have gone through ResolveCommId, else it chooses nothing
};

// Pure. At most `max` interfaces, one address each, in the order of `all`.
std::vector<Interface> SelectInterfaces(const std::vector<Interface>& all, const InterfaceFilter& filter,
                                        int max = kMaxInterfaces);

// Pure. The first address that the chosen interface has of the other family; none where it has none that reaches beyond
// its link, or where NCCL_SOCKET_FAMILY leaves it out.
std::optional<Interface> OtherFamilyOf(const Interface& chosen, const std::vector<Interface>& all,
                                       const InterfaceFilter& filter);

// All IPv4 and IPv6 addresses of all interfaces, in the order of getifaddrs(3). IPv6 link-local ones are scoped.
absl::StatusOr<std::vector<Interface>> SystemInterfaces();

// Every address of this host, to tell whether a peer is on it. Empty when the kernel won't say.
std::vector<SocketAddress> LocalAddresses();

// The interface of this host that has the address: "eth0"; empty: none, as far as the kernel tells.
std::string InterfaceWith(const SocketAddress& address);

// The interface with this address where it is down or has no carrier; "with ADDRESS" where none has it; empty: it runs,
// or the kernel does not tell.
std::string DownInterfaceOf(const SocketAddress& local);

// DownInterfaceOf, asked at most once a second for each address: thousands of connections wonder at the same moment,
// and each answer is a list of all addresses of the host.
class InterfaceStates {
 public:
  static constexpr int64_t kKeptNs = kSecond;
  using Look = std::function<std::string(const SocketAddress&)>;

  explicit InterfaceStates(Look look = DownInterfaceOf) : look_(std::move(look)) {}

  std::string Down(const SocketAddress& local, int64_t now_ns);

 private:
  struct State {
    std::string down;
    int64_t looked_ns = 0;
  };

  const Look look_;
  Mutex mutex_;
  std::map<std::string, State> states_ TCPX_GUARDED_BY(mutex_);  // by address
};

// NCCL_COMM_ID with its host's name looked up: "node7:4410" -> "10.0.0.7:4410". May block on the resolver, as NCCL
// does; numeric text comes back as it is, and so does what can't be resolved.
std::string ResolveCommId(const std::string& comm_id);

// Where a speed is from.
enum class SpeedSource {
  kKernel,     // a card's driver, or what bond, vlan and bridge sum up
  kVirtual,    // a number that says nothing: veth, virtio
  kAssumed,    // the kernel knows none: kDefaultSpeedMbps
  kParameter,  // the user
};

struct InterfaceHardware {
  int speed_mbps = kDefaultSpeedMbps;
  SpeedSource speed_source = SpeedSource::kKernel;
  int vendor = 0;          // of PCI (or virtio); 0 is unknown
  std::string pci_path;    // real path of the PCI device; empty for every other kind
  bool is_virtual = true;  // true exactly when the interface belongs to no device
  std::string pci_bus_id;  // last component of pci_path, "0000:3b:00.0"; empty with it
  int numa_node = -1;      // -1 is unknown
};

// `sysfs_root` is "/sys" outside tests.
InterfaceHardware ReadHardware(const std::string& sysfs_root, const std::string& ifname);

// For log lines: "loopback", "docker bridge", "bridge", "bond", "vlan", "tunnel", "veth pair", "virtual" or "physical".
std::string InterfaceKind(const std::string& name, unsigned flags, const std::string& sysfs_root);

// True exactly when the interface has no address that reaches beyond its link. `all` is SystemInterfaces', here and
// below.
bool HasLinkLocalOnly(const std::vector<Interface>& all, const std::string& name);

// What an operator should know about a chosen interface, such as "has link-local addresses only", and the variables
// that choose another; mostly empty.
std::string InterfaceCaution(const std::vector<Interface>& all, const Interface& chosen, const std::string& sysfs_root);

// The interfaces that SelectInterfaces left out, with the reason unless others come first: "docker0 (docker bridge),
// veth7 (veth pair, link-local only, down)". Empty when there are none.
std::string SkippedInterfaces(const std::vector<Interface>& all, const std::vector<Interface>& chosen,
                              const InterfaceFilter& filter, const std::string& sysfs_root);

}  // namespace tcpx
