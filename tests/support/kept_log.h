// kept_log.h: what the project's own code writes to the log while one of these lives.
//
// Purpose: for unit tests, which have no plugin and no NCCL; plugin_log.h serves those.
// Threads: any writes; one KeptLog at a time.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "common/log.h"

namespace tcpx {

class KeptLog {
 public:
  KeptLog() {
    live() = this;
    SetLogSink(&Keep);
  }
  ~KeptLog() { SetLogSink(nullptr); }
  KeptLog(const KeptLog&) = delete;
  KeptLog& operator=(const KeptLog&) = delete;

  // All lines, oldest first.
  std::vector<std::string> Lines() {
    std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }
  std::vector<std::string> Warnings() {
    std::lock_guard<std::mutex> lock(mutex_);
    return warnings_;
  }

 private:
  static KeptLog*& live() {
    static KeptLog* log = nullptr;
    return log;
  }
  static void Keep(LogLevel level, uint64_t, const char*, int, const char* text) {
    KeptLog* const log = live();
    std::lock_guard<std::mutex> lock(log->mutex_);
    log->lines_.push_back(text);
    if (level == LogLevel::kWarn) log->warnings_.push_back(text);
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::vector<std::string> warnings_;
};

}  // namespace tcpx
