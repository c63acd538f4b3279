#include "common/build_info.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace tcpx {
namespace {

constexpr size_t Padded(size_t bytes) { return (bytes + 3) / 4 * 4; }

// The build id in the notes in [at, end), as they are in memory.
std::string IdInNotes(const char* at, const char* end) {
  while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof(note));
    const char* const name = at + sizeof(note);
    const size_t name_bytes = Padded(note.n_namesz);
    const size_t bytes = name_bytes + Padded(note.n_descsz);
    if (bytes > static_cast<size_t>(end - name)) break;
    if (note.n_type == NT_GNU_BUILD_ID && absl::string_view(name, note.n_namesz) == absl::string_view("GNU", 4)) {
      return absl::BytesToHexString(absl::string_view(name + name_bytes, note.n_descsz));
    }
    at = name + bytes;
  }
  return "";
}

}  // namespace

// The linker's: where the ELF header of this library or program lies in memory. The notes are in the same segment.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));

std::string BuildId() {
  ElfW(Ehdr) head;
  std::memcpy(&head, __ehdr_start, sizeof(head));
  const auto* const parts = reinterpret_cast<const ElfW(Phdr)*>(__ehdr_start + head.e_phoff);
  std::string id;
  for (int i = 0; i < head.e_phnum && id.empty(); ++i) {
    const char* const at = __ehdr_start + parts[i].p_offset;
    if (parts[i].p_type == PT_NOTE) id = IdInNotes(at, at + parts[i].p_filesz);
  }
  return id;
}

}  // namespace tcpx
