#include "profiler/trace_writer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "common/thread.h"
#include "profiler/recorder.h"

namespace tcpx {
// From one look for events to the next.
constexpr int kRoundMs = 100;
// The longest time from one line with the clocks to the next.
constexpr int64_t kClockEveryNs = 10 * kSecond;

TraceWriter::TraceWriter(const std::string& path, uint64_t bytes_max, const std::string& process, Recorder* recorder)
    : recorder_(recorder), file_(path, bytes_max) {
  if (path.empty()) return;
  if (!file_.Open().ok()) {
    TCPX_WARN("no trace: %s; TCPX_TRACE_DIR names its folder", file_.status().message());
    return;
  }
  // What lies there is of an earlier process of this number.
  (void)unlink(file_.older_path().c_str());
  file_.AppendName(NameLine("process_name", process, getpid(), 0), 0);
  file_.SetHead([this] { return LatestClocks(); });
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  absl::StatusOr<std::thread> thread = StartThread("the trace's writer", [this] { Run(); });
  if (thread.ok()) {
    thread_ = *std::move(thread);
  } else {
    TCPX_WARN("no trace: %s", thread.status().message());
  }
}

void TraceWriter::End() {
  if (!thread_.joinable()) return;
  ends_.store(true);
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof(one)) < 0) TCPX_TRACE("the trace's writer looks again in %d ms", kRoundMs);
  thread_.join();
}

void TraceWriter::Run() {
  for (bool last = false; !last;) {
    pollfd wake = {wake_.get(), POLLIN, 0};
    poll(&wake, 1, kRoundMs);
    last = ends_.load();
    WriteRound(last ? INT64_MAX : MonotonicNanos());
  }
  const uint64_t dropped = recorder_->dropped();
  if (dropped != 0) {
    file_.Append(MomentLine("tcpx_dropped", MonotonicNanos(), getpid(), "events", static_cast<int64_t>(dropped)));
    TCPX_INFO("the trace lacks %d events, for which there was no memory; TCPX_TRACE_SAMPLE thins it out", dropped);
  }
  file_.Close();
  LogEnd();
}

void TraceWriter::LogEnd() {
  if (file_.status().ok() || std::exchange(logged_, true)) return;
  TCPX_WARN("the trace ends here: %s; traffic goes on", file_.status().message());
}

void TraceWriter::WriteRound(int64_t now_ns) {
  const TraceBatch batch = recorder_->TakeBatch(now_ns);
  for (const NewTrack& track : batch.tracks) {
    file_.AppendName(NameLine("thread_name", track.name, getpid(), track.track), track.track);
  }
  WriteClock();
  WriteClockNotes(now_ns == INT64_MAX);
  for (const Event* event : batch.events) AppendEvent(*event, getpid(), &file_);
  file_.Flush();
  for (const uint32_t row : batch.gone) file_.Forget(row);
  LogEnd();
  recorder_->BatchWritten();
}

// By which traces of several hosts are laid over each other.
void TraceWriter::WriteClock() {
  const int64_t now_ns = MonotonicNanos();
  if (clock_ns_ != 0 && now_ns - clock_ns_ < kClockEveryNs) return;
  clock_ns_ = now_ns;
  file_.Append(MomentLine("tcpx_clock", now_ns, getpid(), "realtime_ns", NanosOf(CLOCK_REALTIME)));
}

// What the network plugin measures of other ranks' clocks. It may begin later, and end before the trace does.
void TraceWriter::WriteClockNotes(bool last) {
  const int64_t now_ns = MonotonicNanos();
  if (!last && now_ns - notes_ns_ < notes_every_ns_) return;
  if (notes_ns_ != 0) notes_every_ns_ = std::min(2 * notes_every_ns_, kClockEveryNs);
  notes_ns_ = now_ns;
  for (const ClockNote& note : notes_.Read()) {
    const std::string line = ClockNoteLine(note, now_ns, getpid());
    note.peer.empty() ? file_.AppendName(line, 0) : file_.Append(line);
    if (!note.peer.empty() && (measures_.size() < kPeersMax || measures_.contains(note.peer))) {
      measures_[note.peer] = note;
    }
  }
}

std::vector<std::string> TraceWriter::LatestClocks() {
  const int64_t now_ns = clock_ns_ = MonotonicNanos();
  std::vector<std::string> lines = {MomentLine("tcpx_clock", now_ns, getpid(), "realtime_ns", NanosOf(CLOCK_REALTIME))};
  for (const auto& [peer, note] : measures_) lines.push_back(ClockNoteLine(note, now_ns, getpid()));
  return lines;
}

}  // namespace tcpx
