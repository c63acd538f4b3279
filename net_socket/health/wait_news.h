// wait_news.h: the words for what the ends of connections wait for. Pure, but for ThisProcessName.
//
// Purpose: a rank whose requests stall often waits for one that waits as well. Each tells its neighbours the root that
//          it knows, so that all ranks of a ring come to name the one that began.
// Root:    a cause with a culprit; found by one rank and passed on. A candidate is none yet: in a circle, where each
//          waits for the next, the one that holds most messages that it has received and not passed on; it becomes a
//          root when it has come round to its own finder.
// Wire:    health_records.h.
// Threads: any. Errors: none.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "net_socket/message/health_records.h"

namespace tcpx {

// For scripts: "process-stopped".
const char* CauseName(Cause cause);
// After the culprit's name: "its process is stopped".
const char* CauseWords(Cause cause);

// The host, the PID (this_host.h), and the rank where the job's launcher says it in the environment. Peers take it
// as a text, and two containers that look alike may have the same.
absl::string_view ThisProcessName();
// Random, and the same for the life of the process. 0: the kernel gave none.
uint64_t ThisProcessNumber();

// "A waits for B, which waits for C: its process is stopped (evidence)". `who`: who says it.
std::string DescribeRoot(absl::string_view who, const WaitRoot& root);

}  // namespace tcpx
