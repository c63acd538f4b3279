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
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/random.h"
#include "common/small_file.h"
#include "common/status.h"
#include "common/this_host.h"

namespace tcpx {
namespace {

constexpr char kName[] = "tcpx-clock-notes-2";
constexpr char kOwnDescriptors[] = "/proc/self/fd/";

// The first note that can still be read after `written` were written in all: the writer may be at the one before.
uint64_t Oldest(uint64_t written) {
  return written < ClockNotes::kRingNotes ? 0 : written - ClockNotes::kRingNotes + 1;
}

off_t PlaceOf(uint64_t note) {
  return static_cast<off_t>(sizeof(ClockNotesHead) + note % ClockNotes::kRingNotes * sizeof(StoredClockNote));
}

template <typename T>
bool WriteAt(int fd, off_t place, const T& value) {
  return pwrite(fd, &value, sizeof(value), place) == static_cast<ssize_t>(sizeof(value));
}

template <typename T>
bool ReadAt(int fd, off_t place, T* value) {
  return pread(fd, value, sizeof(*value), place) == static_cast<ssize_t>(sizeof(*value));
}

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
  char target[64] = "";
  return readlink(absl::StrCat(kOwnDescriptors, fd).c_str(), target, sizeof(target) - 1) > 0 &&
         absl::StartsWith(target, absl::StrCat("/memfd:", kName, " "));
}

// False: somebody writes it right now.
bool ReadHead(int fd, ClockNotesHead* head) { return ReadAt(fd, 0, head) && head->written == head->again; }

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
  return WriteAt(fd_.get(), 0, head);
}

void ClockNotes::Write(const std::string& peer, int64_t at_ns, int64_t offset_ns, int64_t round_trip_ns) {
  StoredClockNote note;
  if (peer.empty() || peer.size() >= sizeof(note.peer)) return;
  peer.copy(note.peer, peer.size());
  note.at_ns = at_ns;
  note.offset_ns = offset_ns;
  note.round_trip_ns = round_trip_ns;
  MutexLock lock(mutex_);
  // The note first: a reader that sees the head finds it.
  if (!fd_.valid() || !WriteAt(fd_.get(), PlaceOf(written_), note)) return;
  ++written_;
  (void)WriteHead(false);
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
  std::vector<StoredClockNote> read(head.written - from);
  for (size_t i = 0; i < read.size(); ++i) {
    if (!ReadAt(writer->fd.get(), PlaceOf(from + i), &read[i])) return;
  }
  // What was written meanwhile may lie where we read.
  ClockNotesHead now;
  if (read.empty() || !ReadHead(writer->fd.get(), &now)) return;
  writer->read = head.written;
  for (uint64_t i = std::max(from, Oldest(now.written)); i < head.written; ++i) {
    const StoredClockNote& note = read[i - from];
    notes->push_back({head.self, note.peer, note.at_ns, note.offset_ns, note.round_trip_ns});
  }
}

}  // namespace tcpx
