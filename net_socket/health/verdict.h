// verdict.h: who is to blame, and for what, where a request stalls, a connection has failed, or a flow is slow.
//
// Purpose: the decision, apart from the gathering of its evidence, and its words. Pure, but for what this process is
//          called.
// Rule:    evidence that only this end has comes first (its own CPU, its own links, flows that the network swallows),
//          then whether the peer's process answers, then whether a lost lane gets no other socket although it does,
//          then what the peer says that it waits for itself, and last that its receive, or its send, is not posted. A
//          cause is hard when nothing beyond it can be the reason; a late peer is a soft one: it may turn out to wait
//          for somebody itself.
// Root:    a rank whose requests stall often waits for one that waits as well. Each tells its neighbours the root that
//          it knows (health_records.h), so that all ranks of a ring come to name the one that began: a cause with a
//          culprit, found by one rank and passed on. A candidate is none yet: in a circle, where each waits for the
//          next, the one that holds most messages that it has received and not passed on; it becomes a root when it has
//          come round to its own finder.
// Threads: any.
// Units:   milliseconds, percent.
// Errors:  what can't be decided is kNone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/health/slow_lanes.h"
#include "net_socket/message/health_records.h"

namespace tcpx {

// One lane, at one look.
struct LaneEvidence {
  int lane = 0;
  bool lost = false;    // it waits for another socket
  int64_t lost_ms = 0;  // how long it has waited for it
  bool silent = false;  // its bytes were sent again without an answer, and nothing came from the peer for long
  int64_t silent_ms = 0;
  // For a lane that is silent.
  std::string hosts;  // both addresses: what takes the same path
  std::string flow;   // both addresses with their ports
};

// A stalled request.
struct StallEvidence {
  bool sends = false;
  int no_cpu_percent = 0;  // of the latest time, for the thread of ours that waited longest
  // This end could go on: a sender's kernel has nothing, or a receiver has what nobody reads or passes on.
  bool idle_here = false;
  bool caller_moves = false;   // NCCL's thread would have to, inside test
  std::string down;            // an interface of ours that is out; empty: none
  Stuck stuck = Stuck::kNone;  // lanes get one socket after the other, and none moves a byte
  bool unsettled = false;      // a lane has just got another socket, or waits for it, and nothing has moved on it yet
  std::vector<LaneEvidence> lanes;
  // The health socket, and the question that was asked on it.
  bool speaks = false;        // the peer answers questions: its build knows them
  bool heard_now = false;     // it has just said something
  bool health_lost = false;   // it has ended, or is dialled again
  int64_t unheard_ms = 0;     // how long what was sent on it has not been acknowledged
  int64_t unanswered_ms = 0;  // the age of the oldest question, since which nothing came from its process
  bool host_answers = false;  // a new connect, while it is not heard on these
  bool health_apart = false;  // it goes by other addresses than the silent lanes
  // The latest answer; null: none yet.
  const WaitNews* peer = nullptr;
  uint64_t self = 0;  // the rank that asks: what it has found itself comes back to it
  std::string here;   // names of both processes
  std::string there;
};

// What a stall's evidence comes to.
struct Verdict {
  Cause cause = Cause::kNone;
  bool hard = false;
  std::string culprit;
  std::string evidence;
  bool follows = false;    // the cause is what the peer named: the root is peer->root
  bool waits = false;      // no cause of its own: the peer waits too, and names nobody, or whom this end named
  bool undecided = false;  // the peer's answer will tell: until then what was found before holds
};

Verdict JudgeStall(const StallEvidence& evidence);

// Lanes that get one socket after the other.
Verdict JudgeStuck(Stuck stuck, absl::string_view here, absl::string_view there);

// A connection that has failed.
struct FailureEvidence {
  int error = 0;               // errno that it was found by; 0: an end in order
  bool garbage = false;        // what came was not of this protocol
  bool process_gone = false;   // the health socket ended without a bye
  bool silent = false;         // it is given up because nothing was heard for long
  Stuck stuck = Stuck::kNone;  // it is given up because no socket has moved a byte
  bool health_heard = false;   // the peer's host was heard on the health socket meanwhile
  bool others_up = false;      // other lanes of the connection do
  std::string down;            // as above
  std::string here;
  std::string there;
};

// Not known where the peer may have closed in order. `evidence` is empty: the report has it.
Verdict JudgeFailure(const FailureEvidence& evidence);

// One lane compared with the others: what it sent over some time. `slow`: far slower than they are for long.
Verdict JudgePace(const LaneSegments& share, bool slow, absl::string_view here, absl::string_view there);

// The same from either end.
std::string PathBetween(absl::string_view here, absl::string_view there);

// For scripts: "process-stopped".
const char* CauseName(Cause cause);
// After the culprit's name: "its process is stopped".
const char* CauseWords(Cause cause);
// "A waits for B, which waits for C: its process is stopped (evidence)". `who`: who says it.
std::string DescribeRoot(absl::string_view who, const WaitRoot& root);

// The host, the PID (this_host.h), and the rank where the job's launcher says it in the environment. Peers take it
// as a text, and two containers that look alike may have the same.
absl::string_view ThisProcessName();
// Random, and the same for the life of the process. 0: the kernel gave none.
uint64_t ThisProcessNumber();

}  // namespace tcpx
