#include "common/payload/flag_lines.h"

namespace tcpx {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

size_t WordsPerLine(LineKind kind) { return LineBytes(kind) / kWordBytes; }

// The data of word `word`: never what another message or another place has.
uint64_t DataAt(uint64_t flag, size_t word) { return (flag + word) * 0x9e3779b97f4a7c15; }

// The low half is the data, the high half the flag: little endian puts the data first.
uint64_t LlWord(uint64_t flag, size_t word) { return (DataAt(flag, word) >> 32) | flag << 32; }

// A GPU looks at memory that the host is writing, outside what C++ calls a race; so does the thread that plays it,
// and the thread sanitizer need not know.
__attribute__((no_sanitize("thread"))) uint64_t Load(const void* data, size_t word) {
  return __atomic_load_n(static_cast<const uint64_t*>(data) + word, __ATOMIC_ACQUIRE);
}

Seen LookAtLl(uint64_t flag, const void* data, size_t line) {
  const uint64_t word = Load(data, line);
  if (static_cast<uint32_t>(word >> 32) != static_cast<uint32_t>(flag)) return Seen::kNotYet;
  return word == LlWord(flag, line) ? Seen::kAll : Seen::kWrong;
}

Seen LookAtLl128(uint64_t flag, const void* data, size_t line) {
  const size_t words = WordsPerLine(LineKind::kLl128);
  const size_t first = line * words;
  if (Load(data, first + words - 1) != flag) return Seen::kNotYet;
  for (size_t word = first; word < first + words - 1; ++word) {
    if (Load(data, word) != DataAt(flag, word)) return Seen::kWrong;
  }
  return Seen::kAll;
}

}  // namespace

const char* LineKindName(LineKind kind) { return kind == LineKind::kLl ? "LL" : "LL128"; }

size_t LineBytes(LineKind kind) { return kind == LineKind::kLl ? 8 : 128; }

void FillLines(LineKind kind, uint64_t flag, void* data, size_t bytes) {
  uint64_t* words = static_cast<uint64_t*>(data);
  const size_t per_line = WordsPerLine(kind);
  for (size_t word = 0; word < bytes / kWordBytes; ++word) {
    const bool flag_word = kind == LineKind::kLl128 && word % per_line == per_line - 1;
    words[word] = flag_word ? flag : kind == LineKind::kLl ? LlWord(flag, word) : DataAt(flag, word);
  }
}

Seen PollLines(LineKind kind, uint64_t flag, const void* data, size_t bytes, size_t* line) {
  for (const size_t lines = bytes / LineBytes(kind); *line < lines; ++*line) {
    const Seen seen = kind == LineKind::kLl ? LookAtLl(flag, data, *line) : LookAtLl128(flag, data, *line);
    if (seen != Seen::kAll) return seen;
  }
  return Seen::kAll;
}

}  // namespace tcpx
