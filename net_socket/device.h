// device.h: the network interfaces that NCCL sees as devices.
//
// Purpose: found once, by NCCL's rules (common/interfaces.h), and described for getProperties.
//
// Threads: immutable after Find. Lifetime: names and paths live as long as the table, which lives until unload.
// Units:   Mbit/s, microseconds, bytes.
// Errors:  Find gives an empty table and one WARN where no interface fits.
#ifndef TCPX_NET_SOCKET_DEVICE_H_
#define TCPX_NET_SOCKET_DEVICE_H_

#include <string>
#include <vector>

#include "common/interfaces.h"
#include "common/params.h"
#include "nccl/plugin_api.h"

namespace tcpx {

struct Device {
  int index = 0;
  Interface interface;
  InterfaceHardware hardware;
  int max_receives = 1;
};

// Most members of a grouped receive: TCPX_MAX_RECVS, else 8 where GPU memory is announced and 1 otherwise. Peers share
// a connection only with PXN, which needs GPU pointers (NCCL 2.12 to 2.30); without it groups would cost credits for
// nothing. `pointer_support`: bits of MemoryType.
int MaxReceives(const Options& options, int pointer_support);

class DeviceTable {
 public:
  // `sysfs_root` is "/sys" outside tests.
  static DeviceTable Find(const Options& options, const std::string& sysfs_root);

  int count() const { return static_cast<int>(devices_.size()); }
  const Device& device(int index) const { return devices_[static_cast<size_t>(index)]; }
  DeviceProperties Properties(int index) const;

 private:
  std::vector<Device> devices_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_DEVICE_H_
