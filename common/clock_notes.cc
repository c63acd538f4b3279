#include "common/clock_notes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/log.h"
#include "common/random.h"
#include "common/small_file.h"
#include "common/status.h"
#include "common/this_host.h"

namespace tcpx {
namespace {

constexpr char kName[] = "tcpx-clock-notes";
constexpr char kOwnDescriptors[] = "/proc/self/fd/";
// Names have bounds, and so have lines. A writer may be overwriting whatever is older than kReadable.
constexpr size_t kLineMax = 4096;
constexpr uint64_t kReadable = ClockNotes::kRingBytes - kLineMax;

// The position from which the ring can still be read, after `written` bytes were written in all.
uint64_t Oldest(uint64_t written) { return written > kReadable ? written - kReadable : 0; }

// Hosts may share a name, and containers count their processes each from 1.
std::string OwnName() {
  std::string name = HostName();
  for (char& c : name) {
    if (c <= ' ' || c > '~') c = '?';
  }
  uint64_t mark = 0;
  (void)FillRandom(&mark, sizeof(mark));
  return absl::StrCat(name, "/", getpid(), "/", absl::Hex(mark));
}

// By its name: most descriptors are another's, which may be closing it.
bool HasNotes(int fd) {
  char target[64];
  const ssize_t length = readlink(absl::StrCat(kOwnDescriptors, fd).c_str(), target, sizeof(target));
  return length > 0 &&
         absl::StartsWith(absl::string_view(target, static_cast<size_t>(length)), absl::StrCat("/memfd:", kName, " "));
}

// Bytes of the ring, which begins anew after its end.
bool WriteRing(int fd, uint64_t at, absl::string_view text) {
  while (!text.empty()) {
    const size_t place = at % ClockNotes::kRingBytes;
    const size_t part = std::min(text.size(), ClockNotes::kRingBytes - place);
    if (pwrite(fd, text.data(), part, static_cast<off_t>(ClockNotes::kHeadBytes + place)) !=
        static_cast<ssize_t>(part)) {
      return false;
    }
    at += part;
    text.remove_prefix(part);
  }
  return true;
}

// Empty: it could not be read.
std::string ReadRing(int fd, uint64_t from, uint64_t to) {
  std::string text(to - from, '\0');
  for (size_t done = 0; done < text.size();) {
    const size_t place = (from + done) % ClockNotes::kRingBytes;
    const size_t part = std::min(text.size() - done, ClockNotes::kRingBytes - place);
    if (pread(fd, &text[done], part, static_cast<off_t>(ClockNotes::kHeadBytes + place)) !=
        static_cast<ssize_t>(part)) {
      return "";
    }
    done += part;
  }
  return text;
}

// False: somebody writes it right now.
bool ReadHead(int fd, ClockNotesHead* head) {
  const bool read = pread(fd, head, sizeof(*head), 0) == static_cast<ssize_t>(sizeof(*head));
  head->self[sizeof(head->self) - 1] = '\0';
  return read && head->written == head->again;
}

}  // namespace

ClockNotes::ClockNotes() : self_(OwnName()), fd_(memfd_create(kName, MFD_CLOEXEC)) {
  MutexLock lock(mutex_);
  if (fd_.valid() && WriteHead(false)) return;
  TCPX_WARN("no memory for notes of other ranks' clocks (%s): timelines are joined by the clocks of the day",
            std::string(ErrnoStatus(errno, "memfd_create").message()));
}

ClockNotes::~ClockNotes() {
  MutexLock lock(mutex_);
  if (fd_.valid()) (void)WriteHead(true);
}

bool ClockNotes::WriteHead(bool over) {
  ClockNotesHead head;
  head.written = head.again = written_;
  head.over = over ? 1 : 0;
  std::strncpy(head.self, self_.c_str(), sizeof(head.self) - 1);
  return pwrite(fd_.get(), &head, sizeof(head), 0) == static_cast<ssize_t>(sizeof(head));
}

void ClockNotes::Write(const std::string& peer, int64_t at_ns, int64_t offset_ns, int64_t round_trip_ns) {
  const std::string line = absl::StrCat(self_, "\t", peer, "\t", at_ns, "\t", offset_ns, "\t", round_trip_ns, "\n");
  MutexLock lock(mutex_);
  // The line first: a reader that sees the head finds it.
  if (!fd_.valid() || line.size() > kLineMax || !WriteRing(fd_.get(), written_, line)) return;
  written_ += line.size();
  (void)WriteHead(false);
}

bool ParseClockNote(absl::string_view line, ClockNote* note) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, '\t');
  *note = ClockNote();
  if (words.size() != 5 || words[0].empty() || words[1].empty()) return false;
  note->self = std::string(words[0]);
  note->peer = std::string(words[1]);
  return absl::SimpleAtoi(words[2], &note->at_ns) && absl::SimpleAtoi(words[3], &note->offset_ns) &&
         absl::SimpleAtoi(words[4], &note->round_trip_ns);
}

std::vector<ClockNote> ClockNotesReader::Read() {
  if (writers_.empty() || ++reads_ >= kScanEvery) Scan();
  std::vector<ClockNote> notes;
  for (Writer& writer : writers_) ReadFrom(&writer, &notes);
  writers_.erase(std::remove_if(writers_.begin(), writers_.end(), [](const Writer& writer) { return writer.over; }),
                 writers_.end());
  return notes;
}

void ClockNotesReader::Scan() {
  reads_ = 0;
  ++scans_;
  for (const int number : NumbersIn(kOwnDescriptors)) {
    if (HasNotes(number)) Take(number);
  }
}

void ClockNotesReader::Take(int number) {
  Writer writer;
  writer.fd.reset(open(absl::StrCat(kOwnDescriptors, number).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  // Meanwhile the number may have become another's.
  if (!writer.fd.valid() || !HasNotes(writer.fd.get()) || fstat(writer.fd.get(), &about) != 0) return;
  writer.inode = about.st_ino;
  for (const Writer& known : writers_) {
    if (known.inode == writer.inode) return;
  }
  writers_.push_back(std::move(writer));
}

void ClockNotesReader::ReadFrom(Writer* writer, std::vector<ClockNote>* notes) {
  ClockNotesHead head;
  if (!ReadHead(writer->fd.get(), &head)) return;
  writer->over = head.over != 0;
  if (!std::exchange(writer->named, true)) notes->push_back({head.self, "", 0, 0, 0});
  const uint64_t from = std::max(writer->read, Oldest(head.written));
  std::string text = ReadRing(writer->fd.get(), from, head.written);
  // What was written meanwhile may lie where we read.
  ClockNotesHead now;
  if (text.empty() || !ReadHead(writer->fd.get(), &now)) return;
  const uint64_t whole = std::max(from, Oldest(now.written));
  text.erase(0, std::min<uint64_t>(whole - from, text.size()));
  if (whole > writer->read) text.erase(0, text.find('\n') + 1);
  writer->read = head.written;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    ClockNote note;
    if (ParseClockNote(line, &note)) notes->push_back(note);
  }
}

}  // namespace tcpx
