#include "common/clock_notes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/random.h"

namespace tcpx {
namespace {

constexpr char kName[] = "tcpx-clock-notes";
constexpr char kOwnDescriptors[] = "/proc/self/fd/";

// Hosts may share a name, and containers count their processes each from 1.
std::string OwnName() {
  char host[256] = "";
  (void)gethostname(host, sizeof(host) - 1);
  std::string name(host);
  for (char& c : name) {
    if (c <= ' ' || c > '~') c = '?';
  }
  uint64_t mark = 0;
  (void)FillRandom(&mark, sizeof(mark));
  return absl::StrCat(name, "/", getpid(), "/", absl::Hex(mark));
}

bool HasNotes(const std::string& path) {
  char target[64];
  const ssize_t length = readlink(path.c_str(), target, sizeof(target));
  return length > 0 &&
         absl::StartsWith(absl::string_view(target, static_cast<size_t>(length)), absl::StrCat("/memfd:", kName, " "));
}

}  // namespace

ClockNotes::ClockNotes() : self_(OwnName()), fd_(memfd_create(kName, MFD_CLOEXEC)) { Append(self_ + "\n"); }

void ClockNotes::Append(const std::string& line) {
  MutexLock lock(mutex_);
  if (!fd_.valid() || bytes_ + line.size() > kBytesMax) return;
  // One call: a reader finds whole lines, or asks again.
  if (write(fd_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size())) bytes_ += line.size();
}

void ClockNotes::Write(const std::string& peer, int64_t at_ns, int64_t offset_ns, int64_t round_trip_ns) {
  Append(absl::StrCat(self_, "\t", peer, "\t", at_ns, "\t", offset_ns, "\t", round_trip_ns, "\n"));
}

bool ParseClockNote(absl::string_view line, ClockNote* note) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, '\t');
  *note = ClockNote();
  note->self = std::string(words[0]);
  if (words.size() == 1) return !note->self.empty();
  if (words.size() != 5 || words[0].empty() || words[1].empty()) return false;
  note->peer = std::string(words[1]);
  return absl::SimpleAtoi(words[2], &note->at_ns) && absl::SimpleAtoi(words[3], &note->offset_ns) &&
         absl::SimpleAtoi(words[4], &note->round_trip_ns);
}

std::vector<ClockNote> ClockNotesReader::Read() {
  std::vector<ClockNote> notes;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kOwnDescriptors), &closedir);
  if (folder == nullptr) return notes;
  while (const dirent* entry = readdir(folder.get())) {
    if (HasNotes(absl::StrCat(kOwnDescriptors, entry->d_name))) ReadFrom(atoi(entry->d_name), &notes);
  }
  return notes;
}

void ClockNotesReader::ReadFrom(int number, std::vector<ClockNote>* notes) {
  const OwnedFd fd(open(absl::StrCat(kOwnDescriptors, number).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  // Meanwhile the number may have become another's.
  if (!fd.valid() || !HasNotes(absl::StrCat(kOwnDescriptors, fd.get())) || fstat(fd.get(), &about) != 0) return;
  size_t& read = read_[about.st_ino];
  if (static_cast<size_t>(about.st_size) <= read) return;
  std::string text(static_cast<size_t>(about.st_size) - read, '\0');
  const ssize_t got = pread(fd.get(), text.data(), text.size(), static_cast<off_t>(read));
  if (got <= 0) return;
  text.resize(static_cast<size_t>(got));
  text.resize(text.rfind('\n') + 1);
  read += text.size();
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    ClockNote note;
    if (ParseClockNote(line, &note)) notes->push_back(note);
  }
}

}  // namespace tcpx
