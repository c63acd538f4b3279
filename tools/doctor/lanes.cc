// How many lanes a connection of each device gets, and why.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/nic/tuning.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr int64_t kManyLeft = int64_t{1} << 40;

int LanesOf(const Patient& patient, const std::vector<Nic>& nics, bool same_host) {
  PathFacts facts;
  facts.same_host = same_host;
  return LanesFor(patient.options, MakePathProfile(patient.options, facts), nics, 1, kManyLeft).lanes;
}

// "eth0 4, as its real speed is not known"
std::string ReasonOf(const Patient& patient, const Nic& nic) {
  const InterfaceHardware& hardware = nic.hardware;
  const bool blind = hardware.speed_source == SpeedSource::kAssumed || hardware.speed_source == SpeedSource::kVirtual;
  const int lanes = LanesOf(patient, {nic}, false) - 1;
  const int by_speed = (hardware.speed_mbps - 1) / tuning::kLaneMbps + 1;
  std::string why = absl::StrCat("for ", hardware.speed_mbps, " Mbit/s");
  if (lanes < by_speed) why += ", which is the most";
  if (lanes > by_speed) why = blind ? "as its real speed is not known" : "as is usual on this cloud's cards";
  return absl::StrCat(nic.interface.name, " ", lanes, ", ", why);
}

}  // namespace

void CheckLanes(const Patient& patient, Report* report) {
  for (int i = 0; i < patient.devices.count(); ++i) {
    const std::vector<Nic>& nics = patient.devices.device(i).nics;
    std::string why;
    if (patient.options.lanes != 0) {
      const bool product = patient.options.socket_nthreads >= 0 || patient.options.nsocks_perthread >= 0;
      why = product ? "TCPX_LANES, or NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD" : "TCPX_LANES";
    } else {
      std::vector<std::string> reasons;
      for (const Nic& nic : nics) reasons.push_back(ReasonOf(patient, nic));
      why = absl::StrCat("lane 0, and by ", absl::StrJoin(reasons, "; "), "; more or fewer while it runs");
    }
    report->Ok("lanes", absl::StrCat("device ", i, ": ", Counted(LanesOf(patient, nics, false), "lane"),
                                     " to another host (", why, "), ", LanesOf(patient, nics, true), " to this host"));
  }
}

}  // namespace doctor
}  // namespace tcpx
