#include "net_socket/nic/lane_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>

#include "common/log.h"
#include "common/socket.h"

namespace tcpx {
namespace {

void Note(const absl::Status& status, const char* variable) {
  if (!status.ok()) TCPX_INFO("%s: %s; the lane goes on without", variable, std::string(status.message()));
}

// The way to an address of this host loses nothing and has no queue to spare: pacing, as bbr does it, only delays there
// (docs/performance.md). Built into every kernel and allowed to everyone (tcp_cong.c, Linux 6.18).
constexpr char kSameHostCongestion[] = "reno";

void ChooseBuffers(int fd, const Options& options, const LaneTraits& traits) {
  if (options.sndbuf >= 0 || options.rcvbuf >= 0) {
    Note(SetBuffers(fd, options.sndbuf, options.rcvbuf), "NCCL_SOCKET_SNDBUF/NCCL_SOCKET_RCVBUF");
  }
  // Wishes: a lower cap of the kernel is as good.
  if (options.sndbuf < 0) (void)SetBuffers(fd, traits.sndbuf, -1);
  if (BoundsReceiveBuffer(options, traits.same_host)) (void)SetBuffers(fd, -1, kSameHostBytes);
}

void ChooseCongestion(int fd, const Options& options, bool same_host) {
  if (!options.congestion.empty()) {
    Note(SetCongestion(fd, options.congestion), "TCPX_CONGESTION");
  } else if (same_host) {
    (void)SetCongestion(fd, kSameHostCongestion);
  }
}

void Mark(int fd, const LaneTraits& traits) {
  if (traits.traffic_class == kNoTrafficClass) return;
  Note(SetTrafficClass(fd, traits.family, traits.traffic_class), "traffic class");
  // Behind the class, which changes it.
  const absl::Status status = SetPriority(fd, PriorityOf(traits.traffic_class));
  if (status.ok() || (traits.notes != nullptr && traits.notes->told_of_priority.exchange(true))) return;
  TCPX_INFO("traffic class: %s; packets bear their DSCP all the same, but queues of this host by priority don't see it",
            std::string(status.message()));
}

}  // namespace

bool BoundsReceiveBuffer(const Options& options, bool same_host) {
  // bbr loses by it.
  const bool paces = options.congestion.compare(0, 3, "bbr") == 0;
  return options.rcvbuf < 0 && same_host && !paces;
}

void ConfigureLane(int fd, const Options& options, const LaneTraits& traits) {
  Note(SetNoDelay(fd), "TCP_NODELAY");
  ChooseBuffers(fd, options, traits);
  ChooseCongestion(fd, options, traits.same_host);
  if (options.pacing_mbps > 0)
    Note(SetPacing(fd, static_cast<uint64_t>(options.pacing_mbps) * 125000), "TCPX_PACING_MBPS");
  Mark(fd, traits);
  if (traits.bulk) {
    const int lowat = kBulkUnsentBytes;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));  // Linux 3.12
  }
}

}  // namespace tcpx
