// patient.h: this process as the plugin would see it, which all checks look at.
//
// Purpose: parameters, devices, CPUs and threads are found once, by the plugin's own functions.
// Threads: one. Lifetime: outlives the checks; it does not change once it was examined.
// Errors:  none: what the functions warn of is kept with what they found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/cpu_facts.h"
#include "common/cpu_plan.h"
#include "common/interfaces.h"
#include "common/params.h"
#include "net_socket/nic/device.h"
#include "tools/doctor/command.h"

namespace tcpx {
namespace doctor {

struct Patient {
  Command command;
  std::string root;  // where /proc and /sys are looked up, "" outside tests

  Options options;
  std::vector<std::string> option_warnings;
  std::vector<std::string> set_options;  // "TCPX_LANES=4"

  std::vector<Interface> interfaces;  // all there are
  DeviceTable devices;
  std::vector<std::string> device_warnings;
  std::vector<std::string> device_infos;

  CpuFacts cpu_facts;
  ThreadPlan threads;
};

// Reads the environment and the machine. KeepLog came before.
std::unique_ptr<Patient> Examine(const Command& command, const std::string& root = "");

// The number in a file below `root`, or `fallback`.
int64_t ReadNumber(const Patient& patient, const std::string& path, int64_t fallback);
// The words of a file; none where it can't be read.
std::vector<std::string> ReadWords(const Patient& patient, const std::string& path);

}  // namespace doctor
}  // namespace tcpx
