// profiler_fixture.h: libnccl-profiler-tcpx.so as NCCL loads it, and a folder for its trace.
#pragma once

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/this_host.h"
#include "gtest/gtest.h"
#include "nccl/profiler_tables.h"

namespace tcpx {

inline constexpr char kLibrary[] = "profiler/libnccl-profiler-tcpx.so";

inline std::string& Warnings() {
  static auto* const warnings = new std::string;
  return *warnings;
}

inline void Log(ncclDebugLogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (level != NCCL_LOG_WARN) return;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  absl::StrAppend(&Warnings(), line, "\n");
}

// Opened for the length of a test.
class Library {
 public:
  explicit Library(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << dlerror();
  }
  ~Library() { dlclose(library_); }
  template <typename Symbol>
  Symbol* Find(const char* name) {
    return reinterpret_cast<Symbol*>(dlsym(library_, name));
  }

 private:
  void* const library_;
};

class ProfilerTest : public testing::Test {
 protected:
  ProfilerTest() {
    std::string name = testing::TempDir() + "/profiler.XXXXXX";
    folder_ = mkdtemp(name.data());
    for (const char* variable : {"TCPX_TRACE_EVENTS", "TCPX_PROFILER_CHAIN", "TCPX_TRACE_SAMPLE"}) unsetenv(variable);
    setenv("TCPX_TRACE_DIR", folder_.c_str(), 1);
    Warnings().clear();
  }
  // The trace of this process, or of another one.
  std::string Trace(pid_t pid = getpid()) const {
    char host[256] = {};
    gethostname(host, sizeof(host) - 1);
    const std::string here = ProcessMark().substr(absl::StrCat(getpid()).size());  // "", or "-NAMESPACE"
    std::ostringstream text;
    text << std::ifstream(absl::StrCat(folder_, "/tcpx-trace.", host, ".", pid, here, ".json")).rdbuf();
    return text.str();
  }

  std::string folder_;
  void* context_ = nullptr;
  int mask_ = 0;
};

// A group's collective with one operation, by any version's table. Begun and ended by the caller.
template <typename Table, typename Descriptor>
void OneCollective(const Table& table, void* context, Descriptor event) {
  void *group = nullptr, *coll = nullptr, *operation = nullptr;
  event.type = ncclProfileGroup;
  ASSERT_EQ(table.startEvent(context, &group, &event), ncclSuccess);
  event = {};
  event.type = ncclProfileColl;
  event.parentObj = group;
  if constexpr (sizeof(event.type) == 8) event.coll.parentGroup = group;
  event.coll.func = "AllGather";
  ASSERT_EQ(table.startEvent(context, &coll, &event), ncclSuccess);
  ASSERT_EQ(table.stopEvent(coll), ncclSuccess);
  event = {};
  event.type = ncclProfileProxyOp;
  event.parentObj = coll;
  ASSERT_EQ(table.startEvent(context, &operation, &event), ncclSuccess);
  ASSERT_EQ(table.recordEventState(operation, ncclProfilerProxyOpInProgress_v4, nullptr), ncclSuccess);
  ASSERT_EQ(table.stopEvent(operation), ncclSuccess);
  ASSERT_EQ(table.stopEvent(group), ncclSuccess);
}

}  // namespace tcpx
