#include "common/build_info.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
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

bool Holds(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && address - object.dlpi_addr - part.p_vaddr < part.p_memsz) return true;
  }
  return false;
}

int LookInto(dl_phdr_info* object, size_t, void* id) {
  if (!Holds(*object, reinterpret_cast<uintptr_t>(&BuildId))) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const char* const at = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
    const std::string found = IdInNotes(at, at + part.p_memsz);
    if (!found.empty()) *static_cast<std::string*>(id) = found;
  }
  return 1;
}

}  // namespace

std::string BuildId() {
  std::string id;
  dl_iterate_phdr(&LookInto, &id);
  return id;
}

}  // namespace tcpx
