#include "tools/doctor/patient.h"

#include <stdlib.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/small_file.h"
#include "tools/doctor/kept_lines.h"

namespace tcpx {
namespace doctor {

std::unique_ptr<Patient> Examine(const Command& command, const std::string& root) {
  auto patient = std::make_unique<Patient>();
  patient->command = command;
  patient->root = root;
  patient->options = LoadOptions(nullptr, &patient->option_warnings, &patient->set_options);
  // As a launcher would say it, so that the plugin hears it too.
  if (command.ranks > 0) setenv("LOCAL_WORLD_SIZE", absl::StrCat(command.ranks).c_str(), /*overwrite=*/1);
  patient->cpu_facts = ReadCpuFacts(root.empty() ? "/" : root);
  patient->interfaces = SystemInterfaces().value_or(std::vector<Interface>());
  TakeLines();
  patient->devices = DeviceTable::Find(patient->options, root + "/sys", patient->options.gpu_direct_staging);
  KeptLines lines = TakeLines();
  patient->device_warnings = std::move(lines.warnings);
  patient->device_infos = std::move(lines.infos);
  CpuDemand demand;
  demand.gpus = command.gpus;
  for (int i = 0; i < patient->devices.count(); ++i) {
    demand.device_nodes.push_back(patient->devices.device(i).first().hardware.numa_node);
  }
  if (patient->devices.count() > 0) demand.first_device = 0;
  patient->threads = PlanThreads(patient->cpu_facts, demand, patient->options);
  return patient;
}

int64_t ReadNumber(const Patient& patient, const std::string& path, int64_t fallback) {
  const std::string text = ReadSmallFile(patient.root + path).value_or("");
  int64_t value = 0;
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &value) ? value : fallback;
}

std::vector<std::string> ReadWords(const Patient& patient, const std::string& path) {
  const std::string text = ReadSmallFile(patient.root + path).value_or("");
  return absl::StrSplit(text, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
}

}  // namespace doctor
}  // namespace tcpx
