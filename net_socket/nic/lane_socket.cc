#include "net_socket/nic/lane_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/socket.h"

namespace tcpx {
namespace {

// Says that the kernel refused something, once for all lanes: a WARN where it was `asked` for.
void Tell(const absl::Status& status, bool asked, const char* what, LaneNotes* notes) {
  if (status.ok()) return;
  const std::string text = absl::StrCat(what, ": ", status.message(), "; lanes go on without");
  if (notes != nullptr && !notes->First(text)) return;
  if (asked) TCPX_WARN("%s", text);
  if (!asked) TCPX_INFO("%s", text);
}

void SetBuffersOf(int fd, const PathProfile& profile, LaneNotes* notes) {
  const PathProfile::Buffer& send = profile.send_buffer;
  const PathProfile::Buffer& receive = profile.receive_buffer;
  Tell(SetBuffers(fd, send.asked ? send.bytes : -1, receive.asked ? receive.bytes : -1), true,
       "NCCL_SOCKET_SNDBUF/NCCL_SOCKET_RCVBUF", notes);
  // Wishes: a lower cap of the kernel is as good.
  (void)SetBuffers(fd, send.asked ? -1 : send.bytes, receive.asked ? -1 : receive.bytes);
}

void Mark(int fd, const PathProfile& profile, LaneNotes* notes) {
  if (profile.traffic_class == kNoTrafficClass) return;
  Tell(SetTrafficClass(fd, profile.family, profile.traffic_class), true, "traffic class", notes);
  // After the class, which changes it.
  const absl::Status status = SetPriority(fd, PriorityOf(profile.traffic_class));
  if (status.ok() || (notes != nullptr && !notes->First("priority"))) return;
  TCPX_INFO("traffic class: %s; packets bear their DSCP all the same, but queues of this host by priority don't see it",
            std::string(status.message()));
}

}  // namespace

void ConfigureLane(int fd, const PathProfile& profile, LaneNotes* notes) {
  Tell(SetNoDelay(fd), false, "TCP_NODELAY", notes);
  Tell(SetIdleProbes(fd), false, "keepalive", notes);
  SetBuffersOf(fd, profile, notes);
  if (!profile.congestion.empty()) {
    const absl::Status status = SetCongestion(fd, profile.congestion);
    if (profile.congestion_asked) Tell(status, true, "TCPX_CONGESTION", notes);
  }
  if (profile.pacing > 0) Tell(SetPacing(fd, profile.pacing), true, "TCPX_PACING_MBPS", notes);
  Mark(fd, profile, notes);
  if (profile.unsent_mark.has_value()) {
    const int mark = *profile.unsent_mark;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &mark, sizeof(mark));  // Linux 3.12
  }
}

}  // namespace tcpx
