// tcpx_doctor: what the plugin would do here, and what would keep it from working.
#include <signal.h>
#include <stdio.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/build_info.h"
#include "common/escape.h"
#include "common/this_host.h"
#include "tools/doctor/between.h"
#include "tools/doctor/command.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/hosts.h"
#include "tools/doctor/kept_lines.h"
#include "tools/doctor/listener.h"
#include "tools/doctor/local_checks.h"
#include "tools/doctor/parameters.h"
#include "tools/doctor/patient.h"
#include "tools/doctor/plan.h"
#include "tools/doctor/plan_host.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr int kExitUsage = 2;

int ExamineHere(const Command& command) {
  Report report;
  ReadNcclConf(&report);
  const std::unique_ptr<Patient> patient = Examine(command);
  CheckAll(*patient, &report);
  const std::string head = absl::StrCat("\"version\": ", JsonText(kVersion), ", \"host\": ", JsonText(HostName()));
  fputs((command.json ? ReportJson(report, head) : ReportText(report, command.quiet)).c_str(), stdout);
  return report.ExitCode();
}

int ExamineBetween(const Command& command) {
  Report report;
  ReadNcclConf(&report);
  const std::unique_ptr<Patient> patient = Examine(command);
  const Between between = CheckBetween(*patient, &report);
  if (command.summary) {
    fputs(SummaryLine(between, report).c_str(), stdout);
    return report.ExitCode();
  }
  const std::string head = absl::StrCat("\"version\": ", JsonText(kVersion), ", \"host\": ", JsonText(HostName()),
                                        ", \"peer\": ", JsonText(command.host));
  fputs((command.json ? ReportJson(report, head) : ReportText(report, command.quiet)).c_str(), stdout);
  return report.ExitCode();
}

int ShowPlan(const Command& command) {
  Report report;
  ReadNcclConf(&report);
  const Plan plan = MakePlan(command.job, ReadPlanHost(*Examine(command)));
  ReportPlan(command.job, plan, &report);
  const std::string head = absl::StrCat("\"version\": ", JsonText(kVersion), ", \"host\": ", JsonText(HostName()), ", ",
                                        PlanJson(command.job, plan));
  fputs((command.json ? ReportJson(report, head) : ReportText(report, command.quiet)).c_str(), stdout);
  return report.ExitCode();
}

int ShowParameters(const Command& command) {
  Report ignored;
  Origins origins;
  ReadNcclConf(&ignored, &origins);
  const std::string head = absl::StrCat("\"version\": ", JsonText(kVersion), ", \"host\": ", JsonText(HostName()));
  fputs((command.json ? ParametersJson(origins, head) : ParametersText(origins)).c_str(), stdout);
  return 0;
}

int Run(const Command& command) {
  switch (command.mode) {
    case Mode::kParameters:
      return ShowParameters(command);
    case Mode::kHere:
      return ExamineHere(command);
    case Mode::kListen: {
      Report ignored;
      ReadNcclConf(&ignored);
      return Listen(command);
    }
    case Mode::kBetween:
      return ExamineBetween(command);
    case Mode::kHosts:
      return ExamineHosts(command);
    case Mode::kPlan:
      return ShowPlan(command);
  }
  return kExitUsage;
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<Command> command = ParseCommand(arguments);
  if (!command.ok()) {
    fprintf(stderr, "tcpx_doctor: %s\ntcpx_doctor --help explains\n", std::string(command.status().message()).c_str());
    return kExitUsage;
  }
  if (command->help) {
    fputs(UsageText(), stdout);
    return 0;
  }
  if (command->version) {
    printf("tcpx_doctor %s, build id %s\n", kVersion, BuildId().c_str());
    return 0;
  }
  signal(SIGPIPE, SIG_IGN);
  KeepLog();
  return Run(*command);
}

}  // namespace
}  // namespace doctor
}  // namespace tcpx

int main(int argc, char** argv) { return tcpx::doctor::Main(std::vector<std::string>(argv + 1, argv + argc)); }
