// stream.h: one connection of the plugin between two doctors, and what it carries.
//
// Purpose: the two processes are two ranks: one listens, the other connects, and messages flow for a while. Each run is
//          a process of its own, because the plugin reads its parameters (TCPX_LANES) once.
// Threads: one driver, and the plugin's. Units: milliseconds, bytes, Mbit/s.
// Errors:  a Status with the function that failed and the plugin's last WARN. The peer gets it, too.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/doctor/channel.h"

namespace tcpx {
namespace doctor {

struct StreamOrder {
  std::string plugin;
  int version = 0;  // of the interface; 0: the newest
  int lanes = 0;    // TCPX_LANES; 0: as it is
  int device = 0;
  bool sends = false;
  int milliseconds = 0;
};

// The speed, as the receiver saw it, in Mbit/s. Both sides call it, with orders that fit.
absl::StatusOr<double> RunStream(const StreamOrder& order, Channel* channel);

// Runs `work` in a child and gives the line that it returns; "error ..." where it ends otherwise.
std::string InChild(const std::function<std::string()>& work);

}  // namespace doctor
}  // namespace tcpx
