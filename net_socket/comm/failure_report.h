// failure_report.h: the words for a connection's trouble: who, where, what was under way, what the kernel saw.
//
// Threads: any, while the setup's sockets are open.
// Errors:  figures that the kernel does not give are left out.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "net_socket/message/flight.h"

namespace tcpx {

struct ConnectionSetup;
class LaneTable;

// In place of a lane's index: the connection as a whole.
inline constexpr int kNoLane = -1;

struct Trouble {
  const ConnectionSetup* setup = nullptr;
  const LaneTable* lanes = nullptr;  // null: they get no other sockets
  const char* role = "";             // "send" or "receive"
  int lane = kNoLane;
  absl::string_view what;
  Flight flight;
};

// One line for this rank's log. It names communicator, connection, device, lane, both addresses, the oldest message,
// round trip, retransmissions and the age of the last acknowledgement.
std::string ReportLine(const Trouble& trouble);

// One line for every other rank: who lost whom, and why. At most kCauseBytesMax.
std::string CauseLine(const Trouble& trouble);

}  // namespace tcpx
