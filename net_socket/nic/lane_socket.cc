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

void SetBuffersOf(int fd, const PathProfile& profile) {
  const PathProfile::Buffer& send = profile.send_buffer;
  const PathProfile::Buffer& receive = profile.receive_buffer;
  if (send.asked || receive.asked) {
    Note(SetBuffers(fd, send.asked ? send.bytes : -1, receive.asked ? receive.bytes : -1),
         "NCCL_SOCKET_SNDBUF/NCCL_SOCKET_RCVBUF");
  }
  // Wishes: a lower cap of the kernel is as good.
  (void)SetBuffers(fd, send.asked ? -1 : send.bytes, receive.asked ? -1 : receive.bytes);
}

void SetCongestionOf(int fd, const PathProfile& profile) {
  if (profile.congestion.empty()) return;
  const absl::Status status = SetCongestion(fd, profile.congestion);
  if (profile.congestion_asked) Note(status, "TCPX_CONGESTION");
}

void Mark(int fd, const PathProfile& profile, LaneNotes* notes) {
  if (profile.traffic_class == kNoTrafficClass) return;
  Note(SetTrafficClass(fd, profile.family, profile.traffic_class), "traffic class");
  // Behind the class, which changes it.
  const absl::Status status = SetPriority(fd, PriorityOf(profile.traffic_class));
  if (status.ok() || (notes != nullptr && notes->told_of_priority.exchange(true))) return;
  TCPX_INFO("traffic class: %s; packets bear their DSCP all the same, but queues of this host by priority don't see it",
            std::string(status.message()));
}

}  // namespace

bool LaneNotes::First(const std::string& text) {
  MutexLock lock(mutex_);
  return said_.insert(text).second;
}

std::optional<LeaveBy> LaneNotes::KnownWay(const std::string& path) const {
  MutexLock lock(mutex_);
  const auto found = ways_.find(path);
  return found == ways_.end() ? std::nullopt : std::optional<LeaveBy>(found->second);
}

void LaneNotes::LearnWay(const std::string& path, LeaveBy way) {
  MutexLock lock(mutex_);
  ways_[path] = way;
}

void ConfigureLane(int fd, const PathProfile& profile, LaneNotes* notes) {
  Note(SetNoDelay(fd), "TCP_NODELAY");
  Note(SetIdleProbes(fd), "keepalive");
  SetBuffersOf(fd, profile);
  SetCongestionOf(fd, profile);
  if (profile.pacing > 0) Note(SetPacing(fd, profile.pacing), "TCPX_PACING_MBPS");
  Mark(fd, profile, notes);
  if (profile.unsent_mark.has_value()) {
    const int mark = *profile.unsent_mark;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &mark, sizeof(mark));  // Linux 3.12
  }
}

}  // namespace tcpx
