// command.h: the doctor's command line.
//
// Threads: any; no state.
// Units:   microseconds, seconds.
// Errors:  ParseCommand: kInvalidArgument with one sentence for the user.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tcpx {
namespace doctor {

inline constexpr int kDoctorPort = 17617;

enum class Mode { kHere, kListen, kBetween, kHosts, kParameters, kPlan };

enum class Pattern { kRing, kAllToAll };

// A job that is to be planned.
struct PlanJob {
  int hosts = 0;
  int ranks = 0;     // of each host
  int channels = 0;  // of the ring, or of each pair of ranks
  Pattern pattern = Pattern::kRing;
};

struct Command {
  Mode mode = Mode::kHere;
  std::string host;                    // kBetween
  std::string hosts_file;              // kHosts
  int port = kDoctorPort;              // of the listening doctor
  bool until_eof = false;              // listen only while stdin is open
  bool summary = false;                // kBetween: one line for kHosts
  int milliseconds = 1000;             // of each stream; 0: none; kHosts: 200
  std::string start;                   // kHosts: how a command is started on a host; empty: the default
  std::string remote = "tcpx_doctor";  // kHosts: where the doctor is there
  int at_once = 0;                     // kHosts: pairs asked at the same time; 0: as many as there are
  bool help = false;
  bool version = false;
  bool json = false;
  bool quiet = false;  // what is ok is left out
  int ranks = 0;       // of this host; 0: the launcher's variables say
  int gpus = 1;        // of one process
  int rtt_us = 500;    // towards the other hosts, for the buffers
  std::string plugin;  // a file instead of what NCCL would look for
  std::string nccl;
  PlanJob job;  // kPlan
};

// How kHosts starts a command on a host: by srun inside a job of Slurm's, else by ssh.
std::string DefaultStart();

absl::StatusOr<Command> ParseCommand(const std::vector<std::string>& arguments);

const char* UsageText();

}  // namespace doctor
}  // namespace tcpx
