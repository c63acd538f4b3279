// failure_report.h: the words for a connection's trouble: who, where, what was under way, what the kernel saw, and the
// verdict: gathers what tells why a connection has failed, and has it judged.
//
// Threads: any, while the setup's sockets are open; a verdict not with a mutex held that the health socket's hearers
//          take.
// Errors:  what can't be found out, and figures that the kernel does not give, are left out.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net_socket/health/verdict.h"
#include "net_socket/message/flight.h"

namespace tcpx {

struct ConnectionSetup;
class LaneHealing;

// In place of a lane's index: the connection as a whole.
inline constexpr int kNoLane = -1;

// One line for this rank's log. It names communicator, connection, device, lane, both addresses, the oldest message,
// round trip, retransmissions and the age of the last acknowledgement.
std::string ReportLine(const LaneHealing& healing, absl::string_view what, int lane, const Flight& flight);

// One line for every other rank: who lost whom, and why. At most kCauseBytesMax.
std::string CauseLine(const LaneHealing& healing, absl::string_view what, int lane);

Verdict VerdictOfFailure(const LaneHealing& healing, const absl::Status& status, int lane);

// Begins each verdict in a line.
inline constexpr absl::string_view kVerdictMark = "verdict: ";

// "verdict: host-gone: node7 pid 4711: its host is gone, or cut off; " and empty where the cause is not known.
std::string VerdictPrefix(const Verdict& verdict);

// What such a prefix names in a line that came from another rank. kNone: there is none.
Verdict VerdictIn(absl::string_view line);

// The same for a lane that is moved because the network drops its packets.
std::string HealedVerdict(const LaneHealing& healing, Stuck stuck);

// What ended the lanes is known to have been the end of the peer's process. One that had something unread resets its
// sockets as it ends; a firewall that resets one flow leaves the others.
bool ProcessGone(const LaneHealing& healing);

// How this end and the peer are called in verdicts.
std::string PeerName(const ConnectionSetup& setup);
// An interface of a lane of it that is out, or has lost its address; empty: none.
std::string DownInterface(const LaneHealing& healing);

}  // namespace tcpx
