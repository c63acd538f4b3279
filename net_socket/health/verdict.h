// verdict.h: who is to blame, and for what, where a request stalls, a connection has failed, or a flow is slow.
//
// Purpose: the decision, apart from the gathering of its evidence. Pure.
// Rule:    evidence that only this end has comes first (its own CPU, its own links, flows that the network swallows),
//          then whether the peer's process answers, then whether a lost lane gets no other socket although it does,
//          then what the peer says that it waits for itself, and last that its receive, or its send, is not posted. A
//          cause is hard when nothing beyond it can be the reason; a late peer is a soft one: it may turn out to wait
//          for somebody itself.
// Threads: any.
// Units:   milliseconds, percent.
// Errors:  what can't be decided is kNone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/health/wait_news.h"

namespace tcpx {

// One lane, at one look.
struct LaneEvidence {
  int lane = 0;
  bool lost = false;           // it waits for another socket
  int64_t lost_ms = 0;         // how long it has waited for it
  bool silent = false;         // its bytes were sent again without an answer, and nothing came from the peer for long
  bool window_closed = false;  // it holds bytes, and the peer takes none
  int64_t silent_ms = 0;
  // For a lane that is silent.
  std::string hosts;  // both addresses: what takes the same path
  std::string flow;   // both addresses with their ports
};

// A stalled request.
struct StallEvidence {
  bool sends = false;
  int64_t stalled_ms = 0;
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
  bool waits = false;      // no cause of its own: the peer waits too, and names nobody, or whom this end named
  bool follows = false;    // the cause is what the peer named: the root is peer->root
  bool undecided = false;  // the peer's answer will tell: until then what was found before holds
  std::string culprit;
  std::string evidence;
};

Verdict JudgeStall(const StallEvidence& evidence);

// Lanes that get one socket after the other.
struct StuckEvidence {
  Stuck stuck = Stuck::kNone;
  absl::string_view here;
  std::string there;
};
Verdict JudgeStuck(const StuckEvidence& evidence);

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

// One lane compared with the others, over some time.
struct PaceEvidence {
  uint64_t segments = 0;       // sent
  uint64_t retransmitted = 0;  // of these
  bool slow = false;           // far slower than the other lanes for long
  std::string here;
  std::string there;
};

Verdict JudgePace(const PaceEvidence& evidence);

// The same from either end.
std::string PathBetween(const std::string& here, const std::string& there);

}  // namespace tcpx
