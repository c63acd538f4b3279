#include "net_socket/health/wait_news.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/this_host.h"

namespace tcpx {
namespace {

// As launchers name it: torchrun, Open MPI, PMIx, MPICH, Slurm.
std::string RankHere() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* const value = getenv(name);
    if (value == nullptr || *value == '\0' || strlen(value) > 8) continue;
    if (strspn(value, "0123456789") == strlen(value)) return absl::StrCat(" (rank ", value, ")");
  }
  return "";
}

}  // namespace

const char* CauseName(Cause cause) {
  static constexpr const char* kNames[kCauses] = {
      "undecided", "process-stopped", "peer-late",    "no-cpu",   "path-loses",       "path-dead",  "path-slow",
      "host-gone", "process-gone",    "flow-dropped", "internal", "path-loses-large", "flows-reset"};
  return kNames[static_cast<size_t>(cause)];
}

const char* CauseWords(Cause cause) {
  static constexpr const char* kWords[kCauses] = {
      "the cause is not known",
      "its process is stopped",
      "its process is alive, and NCCL, the application or the GPU there is late",
      "its threads get no CPU",
      "the path loses packets",
      "the path is dead",
      "the path is slower than the others",
      "its host is gone, or cut off from the ranks that wait for it",
      "its process is gone",
      "a firewall or NAT on the path has dropped the flow",
      "internal: no reason is to be seen",
      "the path loses large packets",
      "a middlebox resets flows"};
  return kWords[static_cast<size_t>(cause)];
}

// Without a destructor: at exit other threads may still ask, and a plugin that is unloaded must not leave it.
absl::string_view ThisProcessName() {
  struct Name {
    char text[128] = "";
    size_t bytes = 0;
  };
  static const Name name = [] {
    const std::string text = absl::StrCat(HostName(), " pid ", ProcessMark(), RankHere());
    Name filled;
    filled.bytes = text.copy(filled.text, sizeof(filled.text));
    return filled;
  }();
  return absl::string_view(name.text, name.bytes);
}

uint64_t ThisProcessNumber() {
  static const uint64_t number = [] {
    uint64_t drawn = 0;
    return FillRandom(&drawn, sizeof(drawn)).ok() ? drawn : 0;
  }();
  return number;
}

std::string DescribeRoot(absl::string_view who, const WaitRoot& root) {
  std::string text(who);
  const char* waits = " waits for ";
  for (const std::string& link : root.chain) {
    absl::StrAppend(&text, waits, link);
    waits = ", which waits for ";
  }
  if (root.culprit != (root.chain.empty() ? who : absl::string_view(root.chain.back()))) {
    absl::StrAppend(&text, root.chain.size() == kChainMax ? ", ... which waits for " : waits, root.culprit);
  }
  absl::StrAppend(&text, ": ", CauseWords(root.cause));
  if (!root.evidence.empty()) absl::StrAppend(&text, " (", root.evidence, ")");
  return text;
}

}  // namespace tcpx
