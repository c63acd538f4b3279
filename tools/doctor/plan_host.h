// plan_host.h: this host, as a plan (plan.h) takes it.
//
// Threads: one. Units: as plan.h.
// Errors:  what can't be read is unknown.
#pragma once

#include "tools/doctor/patient.h"
#include "tools/doctor/plan.h"

namespace tcpx {
namespace doctor {

PlanHost ReadPlanHost(const Patient& patient);

}  // namespace doctor
}  // namespace tcpx
