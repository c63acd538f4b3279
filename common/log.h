// log.h: lines for people, through NCCL's logger or to stderr.
//
//   TCPX_WARN("lane %d to %s lost: %s", lane, peer.ToString(), status.ToString());
// WARN: the user must act. INFO: once per object. TRACE: per step. Lower case, ids first.
// Purpose: one text per line, prefixed "NET/tcpx: ", with a format checked at compile time (absl::StrFormat). Control
//          characters, a newline too, become \xNN: what a user or a peer wrote can't make lines of its own.
// Threads: any. The sink is one atomic; it is called without a lock of ours.
// Errors:  none; a line that can't be written is lost.
// Source:  levels: ncclDebugLogLevel, all NCCL releases. Subsystem bits of NCCL's logger: NCCL_INIT 0x1, NCCL_NET 0x10,
//          NCCL_ALL ~0. A WARN goes out with NCCL_ALL, because NCCL drops a WARN whose bits are not in
//          NCCL_DEBUG_SUBSYS.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace tcpx {

// Those of ncclDebugLogLevel that are used.
enum class LogLevel : int { kWarn = 2, kInfo = 3, kTrace = 5 };

// Takes one finished line, from any thread, while the library is loaded. `subsystem`: a mask of NCCL's bits.
using LogSink = void (*)(LogLevel level, uint64_t subsystem, const char* file, int line, const char* text);

inline constexpr uint64_t kLogInit = 0x1;
inline constexpr uint64_t kLogNet = 0x10;
inline constexpr uint64_t kLogAll = ~uint64_t{0};

// Where lines go from now on; null is stderr. Levels are read anew from NCCL_DEBUG: stderr shows WARN always, INFO with
// INFO or TRACE, TRACE with TRACE. With a sink the sink filters, but TRACE is not even formatted unless NCCL_DEBUG is
// TRACE.
void SetLogSink(LogSink sink);

// True exactly when a line of `level` would be formatted. One relaxed load; never allocates.
bool LogEnabled(LogLevel level);

// Sends one line, unconditionally; the macros below ask LogEnabled first. To `sink`, as a context's lines go to its own
// logger; null: where all other lines go.
void LogLineTo(LogSink sink, LogLevel level, uint64_t subsystem, const char* file, int line, absl::string_view text);

// " (and 3 more such lines before)", for the end of a line; empty for 0.
std::string UnsaidLines(uint64_t count);

// How often the log may say the same: strangers could fill a disk with it.
class LineLimit {
 public:
  // True: a line may be written, the first in a second. *line then ends with the UnsaidLines since the latest.
  bool May(int64_t now_ns, std::string* line) {
    MutexLock lock(mutex_);
    if (latest_ns_ != 0 && now_ns - latest_ns_ < kSecond) {
      ++unsaid_;
      return false;
    }
    latest_ns_ = now_ns;
    *line += UnsaidLines(std::exchange(unsaid_, 0));
    return true;
  }

 private:
  Mutex mutex_;
  int64_t latest_ns_ TCPX_GUARDED_BY(mutex_) = 0;
  uint64_t unsaid_ TCPX_GUARDED_BY(mutex_) = 0;
};

}  // namespace tcpx

// Arguments are evaluated only when the level is on.
#define TCPX_LOG_TO(sink, level, subsystem, ...)                                                           \
  do {                                                                                                     \
    if (::tcpx::LogEnabled(level)) {                                                                       \
      ::tcpx::LogLineTo((sink), (level), (subsystem), __FILE__, __LINE__, ::absl::StrFormat(__VA_ARGS__)); \
    }                                                                                                      \
  } while (false)

#define TCPX_WARN(...) TCPX_WARN_TO(nullptr, __VA_ARGS__)
#define TCPX_INFO(...) TCPX_INFO_TO(nullptr, __VA_ARGS__)
#define TCPX_WARN_TO(sink, ...) TCPX_LOG_TO((sink), ::tcpx::LogLevel::kWarn, ::tcpx::kLogAll, __VA_ARGS__)
#define TCPX_INFO_TO(sink, ...) \
  TCPX_LOG_TO((sink), ::tcpx::LogLevel::kInfo, ::tcpx::kLogInit | ::tcpx::kLogNet, __VA_ARGS__)
#define TCPX_TRACE(...) TCPX_LOG_TO(nullptr, ::tcpx::LogLevel::kTrace, ::tcpx::kLogNet, __VA_ARGS__)
