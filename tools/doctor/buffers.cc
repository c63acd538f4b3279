// What the kernel lets a socket hold, against what a lane needs.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/path_profile.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr int64_t kUnbounded = int64_t{1} << 40;

// What the fastest device's lane must have in flight towards another host.
struct Need {
  std::string device;
  int64_t speed_mbps = 0;
  int lanes = 1;
  int64_t bytes = 0;
};

Need NeedOf(const Patient& patient) {
  Need need;
  for (int i = 0; i < patient.devices.count(); ++i) {
    const Device& device = patient.devices.device(i);
    const PathProfile path = MakePathProfile(patient.options, PathFacts());
    const LaneCount count = LanesFor(patient.options, path, device.nics, 1, kUnbounded);
    const int carrying = std::max(1, count.lanes - 1);
    const int64_t bytes = int64_t{device.speed_mbps()} * 125000 / 1000000 * patient.command.rtt_us / carrying;
    if (bytes > need.bytes) need = {device.name, device.speed_mbps(), carrying, bytes};
  }
  return need;
}

std::string NeedText(const Patient& patient, const Need& need) {
  return absl::StrFormat("%d KiB in flight on each of %d lanes of %s (%d Mbit/s, round trip %d us)", need.bytes >> 10,
                         need.lanes, need.device, need.speed_mbps, patient.command.rtt_us);
}

// The third number of tcp_rmem or tcp_wmem; -1: unknown.
int64_t Largest(const Patient& patient, const char* name) {
  const std::vector<std::string> words = ReadWords(patient, absl::StrCat("/proc/sys/net/ipv4/", name));
  return words.size() == 3 ? atoll(words[2].c_str()) : -1;
}

// Half of a buffer is for the kernel's own needs (tcp_adv_win_scale; and what is sent is kept until acknowledged).
void CheckTuned(const Patient& patient, const Need& need, const char* name, const char* start, Report* report) {
  const int64_t largest = Largest(patient, name);
  if (largest < 0) return;
  const std::string text =
      absl::StrFormat("net.ipv4.%s ends at %d KiB; needed: %s", name, largest >> 10, NeedText(patient, need));
  if (largest / 2 >= need.bytes && largest >= 256 << 10) return report->Ok("buffers", text);
  const int64_t wanted = std::max<int64_t>(4 * need.bytes, 16 << 20);
  report->Problem("buffers", text, absl::StrFormat("sysctl -w net.ipv4.%s='4096 %s %d'", name, start, wanted));
}

// A size that a parameter fixes; the kernel silently keeps what its cap allows.
void CheckFixed(const Patient& patient, const Need& need, const char* variable, int asked, const char* cap_name,
                Report* report) {
  if (asked < 0) return;
  const int64_t cap = ReadNumber(patient, absl::StrCat("/proc/sys/net/core/", cap_name), kUnbounded);
  if (asked > cap) {
    report->Problem("buffers",
                    absl::StrFormat("%s asks for %d bytes, and net.core.%s allows %d", variable, asked, cap_name, cap),
                    absl::StrFormat("unset %s, or sysctl -w net.core.%s=%d", variable, cap_name, asked));
  } else if (asked < need.bytes) {
    report->Problem("buffers",
                    absl::StrFormat("%s fixes %d KiB; needed: %s", variable, asked >> 10, NeedText(patient, need)),
                    absl::StrCat("unset ", variable));
  } else {
    report->Note("buffers", absl::StrCat(variable, " ends the kernel's tuning of buffers"),
                 absl::StrCat("unset ", variable));
  }
}

struct Knob {
  const char* name;  // of net.ipv4
  int64_t good;
  Grade grade;  // where it is something else
  const char* text;
};

void CheckKnobs(const Patient& patient, Report* report) {
  constexpr Knob kKnobs[] = {
      {"tcp_moderate_rcvbuf", 1, Grade::kProblem, "receive buffers do not grow"},
      {"tcp_window_scaling", 1, Grade::kProblem, "no more than 64 KiB may be in flight"},
      {"tcp_sack", 1, Grade::kProblem, "each loss costs a round trip of its own"},
      {"tcp_timestamps", 1, Grade::kNote, "round trips are measured less well"},
      {"tcp_slow_start_after_idle", 0, Grade::kNote, "a lane begins anew after each pause of the training step"},
  };
  for (const Knob& knob : kKnobs) {
    const int64_t value = ReadNumber(patient, absl::StrCat("/proc/sys/net/ipv4/", knob.name), knob.good);
    if (value == knob.good || (knob.good == 1 && value > 0)) continue;
    report->Add(knob.grade, "buffers", absl::StrFormat("net.ipv4.%s is %d: %s", knob.name, value, knob.text),
                absl::StrFormat("sysctl -w net.ipv4.%s=%d", knob.name, knob.good));
  }
}

}  // namespace

void CheckBuffers(const Patient& patient, Report* report) {
  const Need need = NeedOf(patient);
  CheckTuned(patient, need, "tcp_rmem", "131072", report);
  CheckTuned(patient, need, "tcp_wmem", "65536", report);
  CheckFixed(patient, need, "NCCL_SOCKET_RCVBUF", patient.options.rcvbuf, "rmem_max", report);
  CheckFixed(patient, need, "NCCL_SOCKET_SNDBUF", patient.options.sndbuf, "wmem_max", report);
  CheckKnobs(patient, report);
}

}  // namespace doctor
}  // namespace tcpx
