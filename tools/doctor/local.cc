// All checks of this machine.
#include "tools/doctor/greeting.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {

void CheckAll(const Patient& patient, Report* report) {
  const FoundLibraries found = CheckLibraries(patient, report);
  CheckVariables(patient, report);
  CheckSecret(patient, report);
  CheckTrafficClass(patient, report);
  CheckOneSided(patient, report);
  CheckDevices(patient, report);
  if (!report->Says("share a subnet")) CheckSharedSubnets(OwnFacts(patient), report);
  CheckLanes(patient, report);
  CheckLinks(patient, report);
  CheckCpus(patient, report);
  CheckEngine(patient, report);
  CheckLimits(patient, report);
  CheckBuffers(patient, report);
  CheckCongestion(patient, report);
  CheckConntrack(patient, report);
  CheckPorts(patient, report);
  CheckGpu(patient, report);
  TryPlugin(patient, found, report);
}

}  // namespace doctor
}  // namespace tcpx
