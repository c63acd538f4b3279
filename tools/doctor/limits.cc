// Descriptors and threads of this process, and the GPU's driver.
#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/fd.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/tuning.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

// A rank of a large job: 16 channels, two peers each, both directions, all with the bulk lanes of a fast card.
constexpr int64_t kConnectionsOfARank = 16 * 2 * 2;
constexpr int64_t kLanesOfARank = (kConnectionsOfARank + tuning::kConnectionsToLeaveFor) * tuning::kLanesBySpeedMax;

void CheckDescriptors(Report* report) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const int64_t hard = limit.rlim_max == RLIM_INFINITY ? -1 : static_cast<int64_t>(limit.rlim_max);
  const int64_t lanes = LaneBudget(hard).left();
  const std::string text = absl::StrCat("descriptors: ", limit.rlim_cur, ", which the plugin raises to ",
                                        hard < 0 ? std::string("any number") : absl::StrCat(hard), ": ", lanes,
                                        " lanes of the process at most");
  if (lanes >= kLanesOfARank) return report->Ok("limit", text);
  report->Problem("limit", absl::StrCat(text, "; a rank of a large job wants about ", kLanesOfARank),
                  "ulimit -Hn 65536 (LimitNOFILE=65536, docker --ulimit nofile=65536)");
}

void CheckThreads(const Patient& patient, Report* report) {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const int64_t wanted = int64_t{patient.threads.threads + 1} * std::max(1, patient.cpu_facts.ranks_on_host);
  if (!known || static_cast<int64_t>(limit.rlim_cur) >= 64 + wanted) {
    report->Ok("limit", absl::StrCat("threads: ", known ? absl::StrCat(limit.rlim_cur) : "unlimited"));
    return;
  }
  report->Problem("limit",
                  absl::StrCat("threads: ", limit.rlim_cur, " for all processes of the user; the plugin wants ", wanted,
                               " and the application its own"),
                  "ulimit -u 65536 (LimitNPROC=65536)");
}

// "NVRM version: ..." names the kernel's half.
std::string KernelDriver(const Patient& patient) {
  const std::vector<std::string> words = ReadWords(patient, "/proc/driver/nvidia/version");
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "Module" || words[i] == "x86_64" || words[i] == "aarch64") {
      if (words[i + 1].find('.') != std::string::npos) return words[i + 1];
    }
  }
  return words.empty() ? "" : "unknown";
}

}  // namespace

void CheckLimits(const Patient& patient, Report* report) {
  CheckDescriptors(report);
  CheckThreads(patient, report);
}

void CheckGpu(const Patient& patient, Report* report) {
  const bool staging = patient.options.gpu_direct_staging;
  const std::string kernel = KernelDriver(patient);
  const auto driver = GpuDriver::Load();
  if (!driver.ok()) {
    report->Add(staging ? Grade::kProblem : Grade::kNote, "gpu",
                absl::StrCat("no GPU driver here: ", driver.status().message(),
                             kernel.empty() ? "" : absl::StrCat(" (the kernel has ", kernel, ")"),
                             staging ? "; TCPX_GPU_DIRECT_STAGING has no effect" : "; NCCL itself needs one"),
                "start the container with the NVIDIA runtime (--gpus all), or install the driver");
    return;
  }
  int count = 0;
  const GpuApi& api = (*driver)->api();
  absl::Status status = (*driver)->Check(api.init(0), "cuInit");
  if (status.ok()) status = (*driver)->Check(api.device_get_count(&count), "cuDeviceGetCount");
  if (!status.ok()) {
    report->Problem("gpu", std::string(status.message()), "nvidia-smi; start the container with --gpus all");
    return;
  }
  report->Ok("gpu", absl::StrCat(Counted(count, "GPU"), kernel.empty() ? "" : absl::StrCat(", driver ", kernel),
                                 staging ? "; the plugin takes GPU memory" : "; NCCL gives the plugin host memory"));
}

}  // namespace doctor
}  // namespace tcpx
