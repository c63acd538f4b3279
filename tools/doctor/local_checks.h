// local_checks.h: the doctor's checks of this machine; each adds its lines to a report.
//
// Purpose: judges what the plugin's own functions say: ok, note, or problem with the command that fixes it.
// Threads: one.
// Units:   as the patient's.
// Errors:  findings.
#pragma once

#include <map>
#include <string>

#include "tools/doctor/finding.h"
#include "tools/doctor/patient.h"

namespace tcpx {
namespace doctor {

// Files of NCCL's, whose lines become variables as NCCL makes them: NCCL_CONF_FILE, else ~/.nccl.conf, and
// /etc/nccl.conf. Before Examine. `origins`, which may be null, gets the file of each variable that one set.
void ReadNcclConf(Report* report, std::map<std::string, std::string>* origins = nullptr);

// "nccl" and "plugin": what the loader finds. Gives the plugin's file, empty where none is found, and the version of
// the interface that NCCL would take, 0 where NCCL is not found.
struct FoundLibraries {
  std::string plugin;
  int version = 0;
};
FoundLibraries CheckLibraries(const Patient& patient, Report* report);

// "variable": what is set, and what is wrong with it.
void CheckVariables(const Patient& patient, Report* report);
// "secret" and "class".
void CheckSecret(const Patient& patient, Report* report);
void CheckTrafficClass(const Patient& patient, Report* report);
// "one-sided": what TCPX_RMA=1 needs of NCCL and of this machine. Silent without it.
void CheckOneSided(const Patient& patient, Report* report);
// "device" and "address".
void CheckDevices(const Patient& patient, Report* report);
// "lanes": how many a connection of each device gets, and why.
void CheckLanes(const Patient& patient, Report* report);
// "link": MTU, driver, offloads, queues, queueing discipline.
void CheckLinks(const Patient& patient, Report* report);
// "cpu".
void CheckCpus(const Patient& patient, Report* report);
// "engine" and "memory".
void CheckEngine(const Patient& patient, Report* report);
// "limit".
void CheckLimits(const Patient& patient, Report* report);
// "buffers".
void CheckBuffers(const Patient& patient, Report* report);
// "congestion", "conntrack" and "port".
void CheckCongestion(const Patient& patient, Report* report);
void CheckConntrack(const Patient& patient, Report* report);
void CheckPorts(const Patient& patient, Report* report);
// "gpu".
void CheckGpu(const Patient& patient, Report* report);
// "plugin": loads the library and lets it connect to itself by each device.
void TryPlugin(const Patient& patient, const FoundLibraries& found, Report* report);

// All of them, in this order.
void CheckAll(const Patient& patient, Report* report);

}  // namespace doctor
}  // namespace tcpx
