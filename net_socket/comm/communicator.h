// communicator.h: what a communicator gives each of its connections.
//
// Purpose: one object, shared by its context, what listens and dials for it, and its connections, instead of a copy in
//          each.
// Threads: constant once shared, but for `profiler` and `aborted`, which may be set at any time.
// Lifetime: until the last of its connections is gone, which may be after its context.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/log.h"
#include "common/traffic_class.h"
#include "nccl/plugin_api.h"
#include "net_socket/health/failure_group.h"
#include "net_socket/health/stall_group.h"

namespace tcpx {

struct Communicator {
  uint64_t id = 0;        // NCCL's, 0 where unknown
  LogSink log = nullptr;  // null: stderr
  // Connections that are handed to NCCL from now on tell it of each request. Null: none listens.
  std::atomic<ProfilerSink> profiler{nullptr};
  int traffic_class = kNoTrafficClass;  // octet of the lanes that it dials
  // A failure is reported again every TCPX_STALL_WARN while NCCL goes on calling: releases with v6 to v10 may report a
  // plugin's errors nowhere (2.12 to 2.26).
  bool repeat_warnings = false;
  bool one_sided = false;     // its peers come when they need it, or never
  bool has_finalize = false;  // v11 and up: its context ends with it
  // A connection was closed after a failure or with requests outstanding: nobody waits for sockets that linger. With
  // has_finalize.
  mutable std::atomic<bool> aborted{false};
  const std::unique_ptr<StallGroup> stalls = std::make_unique<StallGroup>();
  std::shared_ptr<FailureGroup> group;  // null: a failure stays with its connection
};

}  // namespace tcpx
