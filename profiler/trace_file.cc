#include "profiler/trace_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
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

}  // namespace tcpx
