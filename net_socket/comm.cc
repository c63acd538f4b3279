#include "net_socket/comm.h"

#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "common/log.h"
#include "common/socket.h"
#include "net_socket/linger.h"

namespace tcpx {

Comm::Comm(ConnectionSetup setup) : setup_(std::move(setup)) {}

Comm::~Comm() = default;

absl::Status Comm::status() const {
  std::lock_guard<std::mutex> lock(status_mutex_);
  return status_;
}

std::string Comm::Describe(int lane) const {
  const LaneSocket& socket = setup_.lanes[lane];
  return absl::StrFormat("comm %x %s device %d lane %d of %d, %s to %s", setup_.comm_id, role(), setup_.device, lane,
                         lane_count(), socket.local.ToString(), socket.peer.ToString());
}

void Comm::Fail(absl::Status status, int lane, Noise noise) {
  {
    std::lock_guard<std::mutex> lock(status_mutex_);
    if (!status_.ok()) return;
    status_ = status;
  }
  // The line goes out before any call can return the error: the process may exit on it.
  if (noise == Noise::kWarn) {
    const std::string progress = Progress();
    TCPX_WARN_TO(setup_.log, "%s: %s%s%s", Describe(lane), status.message(),
                 progress.empty() ? "" : "; in flight: ", progress);
  }
  failed_.store(true, std::memory_order_release);
  TellPeer(status);
}

void Comm::RecordEvents(ProfilerSink sink, bool updates) {
  if (sink == nullptr) return;
  EventRecorder::Settings settings;
  settings.sink = sink;
  settings.updates = updates;
  settings.receive = receives();
  settings.transfers = transfers_max();
  for (int lane = 0; lane < lane_count(); ++lane) settings.fds.push_back(lane_fd(lane));
  recorder_ = std::make_unique<EventRecorder>(settings);
}

void Comm::ReportMisuse(absl::string_view text) {
  if (told_of_misuse_.exchange(true, std::memory_order_relaxed)) return;
  TCPX_WARN("%s: %s", Describe(0), text);
}

absl::StatusOr<MemoryRegion*> Comm::RegisterMemory(void* data, size_t bytes, MemoryType type) {
  if (type != MemoryType::kHost) {
    return absl::InvalidArgumentError("tcpx moves host memory only: register it as NCCL_PTR_HOST");
  }
  auto region = std::make_unique<MemoryRegion>();
  region->data = static_cast<char*>(data);
  region->bytes = bytes;
  region->type = type;
  MemoryRegion* raw = region.get();
  std::lock_guard<std::mutex> lock(mutex_);
  regions_[raw] = std::move(region);
  return raw;
}

// NCCL frees the buffer after this and closes the comm only later, perhaps with requests outstanding (2.12 to 2.30).
void Comm::DeregisterMemory(MemoryRegion* region) {
  if (region == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const bool in_flight = InFlight(region);
  if (in_flight) {
    if (recorder_ != nullptr) recorder_->Drop();
    Fail(absl::UnavailableError("the connection was reset: its memory was deregistered with requests outstanding"), 0,
         Noise::kSilent);
  }
  // A lane may be in the middle of Fail: failed() alone would come too late.
  if (in_flight || failed()) Quiesce();
  regions_.erase(region);
}

void Comm::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool orderly = !failed() && Idle();
  if (!orderly) Fail(absl::UnavailableError("the connection was closed with requests outstanding"), 0, Noise::kSilent);
  Quiesce();
  StopWatching();
  for (LaneSocket& lane : setup_.lanes) {
    if (orderly) {
      shutdown(lane.fd.get(), SHUT_WR);
    } else {
      (void)SetResetOnClose(lane.fd.get());
    }
    ReleaseSocket(&setup_.runtime->reactor, std::move(lane.fd), orderly ? setup_.runtime->options.linger_ns : 0);
  }
}

}  // namespace tcpx
