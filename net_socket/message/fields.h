// fields.h: numbers and texts, one after the other, on the wire.
//
// Purpose: the one codec of what has fields: PutFields and GetFields at fixed places, FieldWriter and FieldReader in
//          the body of a record. Numbers are on the wire as in memory: little endian (wire.h).
// Threads: one at a time. Units: bytes.
// Errors:  what is missing, and all that would follow it, is taken as 0 or empty; ok() says so. Texts of a peer are
//          made fit for a log line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace tcpx {

// Fields one after the other, without gaps, each as wide as its type. `at` has room for all of them.
template <typename... Fields>
inline void PutFields(char* at, const Fields&... fields) {
  ((std::memcpy(at, &fields, sizeof(fields)), at += sizeof(fields)), ...);
}
template <typename... Fields>
inline void GetFields(const char* at, Fields*... fields) {
  ((std::memcpy(fields, at, sizeof(*fields)), at += sizeof(*fields)), ...);
}

template <typename T>
T GetNumber(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// What is not printable ASCII as '?'.
inline std::string PlainText(absl::string_view bytes) {
  std::string text(bytes);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

class FieldWriter {
 public:
  template <typename T>
  FieldWriter& Put(T value) {
    return PutBytes(&value, sizeof(value));
  }
  FieldWriter& PutBytes(const void* data, size_t bytes) {
    body_.append(static_cast<const char*>(data), bytes);
    return *this;
  }
  // All that follows is this.
  FieldWriter& PutRest(absl::string_view text) { return PutBytes(text.data(), text.size()); }
  // At most 255 bytes of it.
  FieldWriter& PutText(absl::string_view text) {
    text = text.substr(0, UINT8_MAX);
    return Put(static_cast<uint8_t>(text.size())).PutRest(text);
  }
  std::string Take() { return std::move(body_); }

 private:
  std::string body_;
};

class FieldReader {
 public:
  explicit FieldReader(absl::string_view body) : rest_(body) {}

  template <typename T>
  T Take() {
    T value{};
    TakeBytes(&value, sizeof(value));
    return value;
  }
  void TakeBytes(void* out, size_t bytes) {
    const absl::string_view taken = Cut(bytes);
    if (ok_) std::memcpy(out, taken.data(), bytes);
  }
  std::string TakeText() { return PlainText(Cut(Take<uint8_t>())); }
  // What nobody has taken.
  absl::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  absl::string_view Cut(size_t bytes) {
    ok_ = ok_ && rest_.size() >= bytes;
    if (!ok_) return absl::string_view();
    const absl::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace tcpx
