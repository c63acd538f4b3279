#include "profiler/trace_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace tcpx {
namespace {

constexpr absl::string_view kEnding = ".json";
constexpr size_t kWriteBytes = 64 << 10;

}  // namespace

std::string TraceFile::older_path() const { return absl::StrCat(absl::StripSuffix(path_, kEnding), ".older", kEnding); }

absl::Status TraceFile::Open() {
  // What a trace says of a job is for its user only.
  fd_.reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd_.valid()) status_ = ErrnoStatus(errno, absl::StrCat("can't write ", path_));
  bytes_ = 0;
  first_ = true;
  if (status_.ok()) Write("[");
  return status_;
}

void TraceFile::Append(absl::string_view line, bool again) {
  if (!fd_.valid()) return;
  absl::StrAppend(&waiting_, first_ ? "\n" : ",\n", line);
  first_ = false;
  if (again) absl::StrAppend(&head_, head_.empty() ? "" : ",\n", line);
  if (waiting_.size() >= kWriteBytes) Flush();
}

void TraceFile::Flush() {
  std::string text;
  text.swap(waiting_);
  Write(text);
  if (status_.ok() && bytes_ >= bytes_max_ / 2) Rotate();
}

void TraceFile::Rotate() {
  Close();
  if (!status_.ok()) return;
  if (rename(path_.c_str(), older_path().c_str()) != 0) {
    status_ = ErrnoStatus(errno, absl::StrCat("can't rename ", path_));
    return;
  }
  if (!Open().ok() || head_.empty()) return;
  Write(absl::StrCat("\n", head_));
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

std::string JsonText(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", std::string(1, c));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<unsigned>(c));
    } else {
      quoted.push_back(c);
    }
  }
  quoted.push_back('"');
  return quoted;
}

}  // namespace tcpx
