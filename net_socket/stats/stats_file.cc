#include "net_socket/stats/stats_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/status.h"
#include "common/this_host.h"

namespace tcpx {
namespace {

constexpr char kPrefix[] = "tcpx-";
constexpr char kSuffix[] = ".prom";
constexpr char kTemporarySuffix[] = ".prom.tmp";  // which no collector reads

std::string FileWord(absl::string_view text) {
  std::string word(text);
  for (char& c : word) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_') c = '_';
  }
  return word;
}

absl::Status WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return ErrnoStatus(wrote == 0 ? ENOSPC : errno, "write");
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return absl::OkStatus();
}

bool ProcessIsDead(int pid) { return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH; }

// A disk that is full may say so at the close only.
absl::Status Close(OwnedFd file) {
  return close(file.release()) == 0 || errno == EINTR ? absl::OkStatus() : ErrnoStatus(errno, "close");
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

}  // namespace

StatsFile::StatsFile(std::string dir, const ProcessNumbers& process, bool* warned)
    : dir_(std::move(dir)), host_(FileWord(process.host)), mark_(ProcessMark()), warned_(warned) {
  const std::string name = absl::StrCat(kPrefix, host_, "-", mark_);
  path_ = absl::StrCat(dir_, "/", name, kSuffix);
  temporary_ = absl::StrCat(dir_, "/", name, kTemporarySuffix);
}

StatsFile::~StatsFile() {
  (void)unlink(path_.c_str());
  (void)unlink(temporary_.c_str());
}

absl::Status StatsFile::Replace(absl::string_view text) {
  // Others may write in the folder too: what lies there by this name is never followed.
  (void)unlink(temporary_.c_str());
  OwnedFd file(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus(errno, "open");
  // Collectors are other users, whatever the job's umask is. A file system without modes refuses, and needs none.
  (void)fchmod(file.get(), 0644);
  absl::Status status = WriteAll(file.get(), text);
  if (status.ok()) status = Close(std::move(file));
  if (status.ok() && rename(temporary_.c_str(), path_.c_str()) != 0) status = ErrnoStatus(errno, "rename");
  if (!status.ok()) (void)unlink(temporary_.c_str());
  return status;
}

void StatsFile::Write(absl::string_view text) {
  const absl::Status status = Replace(text);
  if (status.ok() && fails_) TCPX_INFO("TCPX_STATS_DIR: %s is written again", path_);
  fails_ = !status.ok();
  if (status.ok() || std::exchange(*warned_, true)) return;
  TCPX_WARN("TCPX_STATS_DIR: %s can't be written (%s); it is tried again every 10 s; transfers go on", path_,
            std::string(status.message()));
}

// "tcpx-HOST-PID", in a container "-NAMESPACE", a suffix: all else is somebody else's.
int64_t StatsFile::StaleAfter(absl::string_view name) const {
  if (!absl::ConsumePrefix(&name, kPrefix)) return 0;
  if (!absl::ConsumeSuffix(&name, kSuffix) && !absl::ConsumeSuffix(&name, kTemporarySuffix)) return 0;
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(name, absl::MaxSplits('-', 1));
  const auto& [host, mark] = parts;
  const std::pair<absl::string_view, absl::string_view> numbers = absl::StrSplit(mark, absl::MaxSplits('-', 1));
  const bool has_namespace = numbers.first.size() < mark.size();
  int pid = 0;
  if (FileWord(host) != host || !IsNumber(numbers.first) || !absl::SimpleAtoi(numbers.first, &pid)) return 0;
  if (has_namespace && !IsNumber(numbers.second)) return 0;
  if (host == host_ && mark == mark_) return 0;
  const std::pair<absl::string_view, absl::string_view> own = absl::StrSplit(mark_, absl::MaxSplits('-', 1));
  const bool seen_from_here = host == host_ && numbers.second == own.second;
  return seen_from_here && ProcessIsDead(pid) ? kStaleSeconds : kStaleElsewhereSeconds;
}

// By the clock that dates the files, which on a network file system is another host's.
int64_t StatsFile::FolderSeconds() const {
  struct stat about {};
  return lstat(path_.c_str(), &about) == 0 ? about.st_mtime : time(nullptr);
}

void StatsFile::RemoveStale() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(dir_.c_str()), &closedir);
  if (folder == nullptr) return;
  const int64_t now = FolderSeconds();
  while (const dirent* entry = readdir(folder.get())) {
    const absl::string_view name(entry->d_name);
    const int64_t stale_after = StaleAfter(name);
    if (stale_after == 0) continue;
    const std::string path = absl::StrCat(dir_, "/", name);
    struct stat about {};
    if (lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    if (now - about.st_mtime < stale_after) continue;
    if (unlink(path.c_str()) == 0) TCPX_INFO("TCPX_STATS_DIR: removed %s: no process writes it any longer", path);
  }
}

}  // namespace tcpx
