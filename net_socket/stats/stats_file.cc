#include "net_socket/stats/stats_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/status.h"
#include "net_socket/stats/process_mark.h"

namespace tcpx {
namespace {

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

}  // namespace

StatsFile::StatsFile(std::string dir, const ProcessNumbers& process) : dir_(std::move(dir)) {
  prefix_ = absl::StrCat("tcpx-", FileWord(process.host), "-");
  const std::string name = absl::StrCat(prefix_, ProcessMark());
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
  absl::Status status = WriteAll(file.get(), text);
  if (status.ok() && rename(temporary_.c_str(), path_.c_str()) != 0) status = ErrnoStatus(errno, "rename");
  if (!status.ok()) (void)unlink(temporary_.c_str());
  return status;
}

void StatsFile::Write(absl::string_view text) {
  const absl::Status status = Replace(text);
  if (status.ok() && fails_) TCPX_INFO("TCPX_STATS_DIR: %s is written again", path_);
  fails_ = !status.ok();
  if (status.ok() || std::exchange(told_, true)) return;
  TCPX_WARN("TCPX_STATS_DIR: %s can't be written (%s); it is tried again every 10 s, and all else goes on", path_,
            std::string(status.message()));
}

void StatsFile::RemoveStale(int64_t stale_seconds) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(dir_.c_str()), &closedir);
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder.get())) {
    const absl::string_view name(entry->d_name);
    if (!absl::StartsWith(name, prefix_)) continue;
    if (!absl::EndsWith(name, kSuffix) && !absl::EndsWith(name, kTemporarySuffix)) continue;
    const std::string path = absl::StrCat(dir_, "/", name);
    if (path == path_ || !ProcessIsDead(atoi(entry->d_name + prefix_.size()))) continue;
    struct stat about {};
    if (lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    if (time(nullptr) - about.st_mtime < stale_seconds) continue;
    if (unlink(path.c_str()) == 0) TCPX_INFO("TCPX_STATS_DIR: removed %s of a process that has died", path);
  }
}

}  // namespace tcpx
