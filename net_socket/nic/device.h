// device.h: the network interfaces that NCCL sees as devices.
//
// Purpose: found once, by NCCL's rules (common/interfaces.h), and described for getProperties. A fused device has
//          several interfaces and spreads the lanes of each connection over them: TCPX_FUSE makes such devices at the
//          start, in the place of their members (device_params.h); makeVDevice later, in addition to them, as NCCL
//          wants it.
// Threads: as the plugin's control calls, one at a time; a Device never changes. Lifetime: devices, names and paths
//          stay where they are as long as the table, which lives until unload.
// Units:   Mbit/s, microseconds, bytes.
// Errors:  Find gives an empty table and one WARN where no interface fits. Fuse: kInvalidArgument, with the reason.
// Source:  pciPath, names and children as NCCL 2.28 to 2.30 merges NICs.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/interfaces.h"
#include "common/params.h"
#include "nccl/plugin_api.h"

namespace tcpx {

// One network interface.
struct Nic {
  Interface interface;
  InterfaceHardware hardware;
  bool ties = false;  // sockets towards its own subnet, which others of this host share, belong to it (routing.h)
};

struct Device {
  int index = 0;
  std::string name;             // "eth1", and "eth1+eth2" of a fused one
  std::vector<Nic> nics;        // one; several of a fused device, which all have addresses of one family
  std::vector<Nic> other_nics;  // the same by their addresses of the other family, as far as they have such
  std::vector<int> children;    // the devices that makeVDevice fused; empty for every other one
  int max_receives = 1;

  bool fused() const { return nics.size() > 1; }
  // The one whose address handles carry.
  const Nic& first() const { return nics.front(); }
  bool HasFamily(int family) const { return NicsFor(family).front().interface.address.family() == family; }
  // Those to dial an address of that family by. Where none has one it is `nics`: routes may lead there all the same.
  const std::vector<Nic>& NicsFor(int family) const;
  // The sum over all interfaces.
  int speed_mbps() const;
};
// Most members of a grouped receive: TCPX_MAX_RECVS, else 8 where GPU memory is announced and 1 otherwise. Peers share
// a connection only with PXN, which needs GPU pointers (NCCL 2.12 to 2.30); without it groups would cost credits for
// nothing. `pointer_support`: bits of MemoryType.
int MaxReceives(const Options& options, int pointer_support);

class DeviceTable {
 public:
  // `sysfs_root` is "/sys" outside tests. `gpu`: GPU memory is announced too.
  static DeviceTable Find(const Options& options, const std::string& sysfs_root, bool gpu = false);

  int count() const { return static_cast<int>(devices_.size()); }
  const Device& device(int index) const { return devices_[static_cast<size_t>(index)]; }
  DeviceProperties Properties(int index) const;

  // Adds the device that joins `children`, which stay, and gives its index. Each child has a PCI path (NCCL takes all
  // others for ports of one card, and loses what is made of them) and was not made by Fuse.
  absl::StatusOr<int> Fuse(absl::Span<const int> children);

 private:
  const Device& Add(Device device);
  absl::Status CheckChild(int child) const;

  std::deque<Device> devices_;
  int pointer_support_ = static_cast<int>(MemoryType::kHost);
};

}  // namespace tcpx
