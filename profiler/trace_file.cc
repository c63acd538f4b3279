#include "profiler/trace_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/escape.h"
#include "common/status.h"

namespace tcpx {
namespace {

constexpr absl::string_view kEnding = ".json";
constexpr size_t kWriteBytes = 64 << 10;

// A user who may replace files of the folder could make them lead elsewhere: it is ours or root's, and where all may
// write the sticky rule keeps each to his own.
absl::Status CheckFolderOf(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  struct stat about {};
  if (stat(folder.empty() ? "." : folder.c_str(), &about) != 0) {
    return ErrnoStatus(errno, absl::StrCat("can't write ", path));
  }
  const bool trusted = about.st_uid == geteuid() || about.st_uid == 0;
  const bool open_to_all = (about.st_mode & S_IWOTH) != 0 && (about.st_mode & S_ISVTX) == 0;
  if (trusted && !open_to_all) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("can't write ", path, ": its folder ",
                   trusted ? "lets every user replace files: chmod +t" : "is another user's: take one of your own",
                   " (TCPX_TRACE_DIR)"));
}

// Threads read the clock before they meet: an end may be just before its begin, and lasts no time then.
std::string Micros(int64_t ns) {
  ns = std::max<int64_t>(ns, 0);
  return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000);
}

struct StateText {
  ncclProfilerEventState_t state;
  const char* text;
};

constexpr StateText kStates[] = {
    {ncclProfilerProxyStepSendGPUWait, "wait for the GPU's data"},
    {ncclProfilerProxyStepSendPeerWait_v4, "wait for the peer's credit"},
    {ncclProfilerProxyStepSendWait, "send"},
    {ncclProfilerProxyStepRecvWait, "receive"},
    {ncclProfilerProxyStepRecvFlushWait, "flush to the GPU"},
    {ncclProfilerProxyStepRecvGPUWait, "wait for the GPU to take it"},
    {ncclProfilerProxyCtrlIdle, "idle"},
    {ncclProfilerProxyCtrlActive, "active"},
    {ncclProfilerProxyCtrlSleep, "asleep"},
    {ncclProfilerProxyCtrlWakeup, "woken"},
    {ncclProfilerProxyCtrlAppend, "takes operations"},
    {ncclProfilerProxyCtrlAppendEnd, "takes operations"},
};

// Null: it has no name.
const char* StateName(int state) {
  for (const StateText& known : kStates) {
    if (known.state == state) return known.text;
  }
  return nullptr;
}

std::string EventName(const Event& event) {
  const EventFacts& facts = event.facts;
  if (facts.function.text[0] != '\0') return facts.function.text;
  if (facts.type == ncclProfileProxyOp) return facts.sends ? "send operation" : "receive operation";
  if (facts.type == ncclProfileProxyStep) return absl::StrCat("step ", facts.step);
  if (facts.type == ncclProfileNetPlugin && facts.fd >= 0) return facts.sends ? "send" : "receive";
  const char* name = EventTypeOf(facts.type).name;
  if (name == nullptr && event.states > 0) name = StateName(event.state[0].state);
  return name != nullptr ? name : "event";
}

class Arguments {
 public:
  void Number(const char* key, uint64_t value) { Add(key, absl::StrCat(value)); }
  // Those that are set.
  void Set(const char* key, int value) {
    if (value >= 0) Add(key, absl::StrCat(value));
  }
  void Some(const char* key, uint64_t value) {
    if (value != 0) Number(key, value);
  }
  void Text(const char* key, const ShortText& value) {
    if (value.text[0] != '\0') Add(key, JsonText(value.text));
  }
  const std::string& text() const { return text_; }

 private:
  void Add(const char* key, const std::string& value) {
    absl::StrAppend(&text_, text_.empty() ? "" : ",", "\"", key, "\":", value);
  }
  std::string text_;
};

std::string ArgumentsOf(const Event& event) {
  const EventFacts& facts = event.facts;
  Arguments arguments;
  arguments.Text("datatype", facts.datatype);
  arguments.Text("algorithm", facts.algorithm);
  arguments.Text("protocol", facts.protocol);
  arguments.Some("count", facts.count);
  if (facts.type == ncclProfileColl) arguments.Number("sequence", facts.sequence);
  arguments.Some("bytes", event.transferred != 0 ? event.transferred : facts.bytes);
  arguments.Set("peer", facts.peer);
  arguments.Set("root", facts.root);
  arguments.Set("channel", facts.channel);
  if (facts.steps > 0) arguments.Set("steps", facts.steps);
  if (facts.depth > 0) arguments.Set("depth", facts.depth);
  arguments.Some("queued_us", static_cast<uint64_t>(event.queued_ns / 1000));
  if (facts.captured) arguments.Number("graph", 1);
  arguments.Some("gpu_begin_ns", facts.gpu_time);
  arguments.Some("gpu_end_ns", event.gpu_time_end);
  return arguments.text();
}

std::string Slice(const std::string& name, const char* category, const Event& event, int64_t begin_ns, int64_t end_ns,
                  int pid, const std::string& arguments) {
  return absl::StrCat("{\"name\":", JsonText(name), ",\"cat\":\"", category, "\",\"ph\":\"X\",\"pid\":", pid,
                      ",\"tid\":", event.track, ",\"ts\":", Micros(begin_ns), ",\"dur\":", Micros(end_ns - begin_ns),
                      ",\"args\":{", arguments, "}}");
}

std::string Moment(const char* name, int64_t at_ns, int pid, const std::string& arguments) {
  return absl::StrCat("{\"name\":\"", name, "\",\"cat\":\"trace\",\"ph\":\"i\",\"s\":\"p\",\"pid\":", pid,
                      ",\"tid\":0,\"ts\":", Micros(at_ns), ",\"args\":{", arguments, "}}");
}

}  // namespace

std::string TraceFile::older_path() const { return absl::StrCat(absl::StripSuffix(path_, kEnding), ".older", kEnding); }

absl::Status TraceFile::Open() {
  status_ = CheckFolderOf(path_);
  if (!status_.ok()) return status_;
  // What a trace says of a job is for its user only: what lies there by this name goes, and is never written to.
  (void)unlink(path_.c_str());
  fd_.reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd_.valid()) status_ = ErrnoStatus(errno, absl::StrCat("can't write ", path_));
  bytes_ = 0;
  first_ = true;
  if (status_.ok()) Write("[");
  return status_;
}

void TraceFile::Append(absl::string_view line) {
  if (!fd_.valid()) return;
  absl::StrAppend(&waiting_, first_ ? "\n" : ",\n", line);
  first_ = false;
  if (waiting_.size() >= kWriteBytes) Flush();
}

void TraceFile::AppendName(absl::string_view line, uint32_t row) {
  // A longer head would fill a file by itself, and each round would begin another.
  if (fd_.valid() && names_bytes_ + line.size() + 2 <= bytes_max_ / 4) {
    absl::StrAppend(&names_[row], line, ",\n");
    names_bytes_ += line.size() + 2;
  }
  Append(line);
}

void TraceFile::Forget(uint32_t row) {
  const auto name = names_.find(row);
  if (name == names_.end()) return;
  names_bytes_ -= name->second.size();
  names_.erase(name);
}

void TraceFile::Flush() {
  Write(std::exchange(waiting_, {}));
  if (status_.ok() && bytes_ >= bytes_max_ / 2) Rotate();
}

void TraceFile::Rotate() {
  Close();
  if (!status_.ok()) return;
  if (rename(path_.c_str(), older_path().c_str()) != 0) {
    status_ = ErrnoStatus(errno, absl::StrCat("can't rename ", path_));
    return;
  }
  if (Open().ok()) WriteHead();
}

void TraceFile::WriteHead() {
  std::string text;
  for (const auto& [row, lines] : names_) text += lines;
  size_t latest_bytes = 0;
  for (const std::string& line : latest_ ? latest_() : std::vector<std::string>()) {
    latest_bytes += line.size() + 2;
    if (latest_bytes > bytes_max_ / 8) break;
    absl::StrAppend(&text, line, ",\n");
  }
  if (text.empty()) return;
  Write(absl::StrCat("\n", absl::StripSuffix(text, ",\n")));
  first_ = false;
}

void TraceFile::Close() {
  if (!fd_.valid()) return;
  Write(absl::StrCat(waiting_, "\n]\n"));
  waiting_.clear();
  fd_.reset();
}

void TraceFile::Write(absl::string_view text) {
  while (!text.empty() && fd_.valid()) {
    const ssize_t written = write(fd_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      status_ = ErrnoStatus(written < 0 ? errno : EIO, absl::StrCat("can't write ", path_));
      fd_.reset();
      return;
    }
    bytes_ += static_cast<uint64_t>(written);
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void AppendEvent(const Event& event, int pid, TraceFile* file) {
  const char* const category = EventTypeOf(event.facts.type).category;
  file->Append(Slice(EventName(event), category, event, event.begin_ns, event.end_ns, pid, ArgumentsOf(event)));
  if (event.facts.type != ncclProfileProxyStep) return;
  for (int i = 0; i < event.states; ++i) {
    const char* const name = StateName(event.state[i].state);
    const int64_t end_ns = i + 1 < event.states ? event.state[i + 1].at_ns : event.end_ns;
    if (name != nullptr) file->Append(Slice(name, category, event, event.state[i].at_ns, end_ns, pid, ""));
  }
}

std::string NameLine(const char* what, const std::string& name, int pid, uint32_t track) {
  return absl::StrCat("{\"name\":\"", what, "\",\"ph\":\"M\",\"pid\":", pid, ",\"tid\":", track,
                      ",\"args\":{\"name\":", JsonText(name), "}}");
}

std::string MomentLine(const char* name, int64_t at_ns, int pid, const char* key, int64_t value) {
  return Moment(name, at_ns, pid, absl::StrCat("\"", key, "\":", value));
}

std::string ClockNoteLine(const ClockNote& note, int64_t now_ns, int pid) {
  const std::string self = absl::StrCat("\"self\":", JsonText(note.self));
  if (note.peer.empty()) return Moment("tcpx_process", now_ns, pid, self);
  return Moment("tcpx_clock_offset", note.at_ns, pid,
                absl::StrCat(self, ",\"peer\":", JsonText(note.peer), ",\"offset_ns\":", note.offset_ns,
                             ",\"round_trip_ns\":", note.round_trip_ns));
}

}  // namespace tcpx
