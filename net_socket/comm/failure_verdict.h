// failure_verdict.h: gathers what tells why a connection has failed, and has it judged.
//
// Threads: any; not with a mutex held that the health socket's hearers take.
// Errors:  what can't be found out is left out.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net_socket/health/verdict.h"

namespace tcpx {

struct ConnectionSetup;
class LaneTable;

// `lanes` null, here and below: the lanes get no other sockets.
Verdict VerdictOfFailure(const ConnectionSetup& setup, const LaneTable* lanes, const absl::Status& status, int lane);

// Begins each verdict in a line.
inline constexpr absl::string_view kVerdictMark = "verdict: ";

// "verdict: host-gone: node7 pid 4711: its host is gone, or cut off; " and empty where the cause is not known.
std::string VerdictPrefix(const Verdict& verdict);

// What such a prefix names in a line that came from another rank. kNone: there is none.
Verdict VerdictIn(absl::string_view line);

// The same for a lane that is moved because the network drops its packets.
std::string HealedVerdict(const ConnectionSetup& setup, const LaneTable& lanes, Stuck stuck);

// What ended the lanes is known to have been the end of the peer's process. One that had something unread resets its
// sockets as it ends; a firewall that resets one flow leaves the others.
bool ProcessGone(const ConnectionSetup& setup, const LaneTable* lanes);

// How this end and the peer are called in verdicts.
std::string PeerName(const ConnectionSetup& setup);
// An interface of a lane of it that is out, or has lost its address; empty: none.
std::string DownInterface(const ConnectionSetup& setup, const LaneTable* lanes);

}  // namespace tcpx
