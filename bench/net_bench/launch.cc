#include "bench/net_bench/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/net_bench/allreduce.h"
#include "bench/net_bench/control.h"
#include "bench/net_bench/cpus.h"
#include "bench/net_bench/place.h"
#include "bench/net_bench/shared_page.h"
#include "bench/net_bench/supervisor.h"
#include "bench/net_bench/worker.h"
#include "common/fd.h"
#include "common/status.h"

namespace tcpx {
namespace bench {
namespace {

constexpr int kExitFailure = 1;

// One per rank; -1 leaves it unpinned.
std::vector<int> DriverCpus(const Options& options, int ranks) {
  const std::vector<int> unpinned(static_cast<size_t>(ranks), -1);
  if (!options.pin) return unpinned;
  if (!options.cpus.empty()) return options.cpus.size() >= unpinned.size() ? options.cpus : unpinned;
  const std::vector<int> allowed = AllowedCpus();
  if (options.role != Role::kLocal || allowed.size() < unpinned.size()) return unpinned;
  if (ranks > 2) return allowed;
  const std::pair<int, int> chosen = ChoosePair(allowed);
  return {chosen.first, chosen.second};
}

WorkerPlace PlaceOf(const Options& options, SharedPage* page, int rank, int ranks) {
  const std::vector<int> cpus = DriverCpus(options, ranks);
  WorkerPlace place;
  place.rank = rank;
  place.page = page;
  place.same_machine = options.role == Role::kLocal;
  place.cpu = cpus[static_cast<size_t>(rank)];
  place.peer_cpu = cpus[static_cast<size_t>((rank + 1) % ranks)];
  place.usable_cpus = static_cast<int>(AllowedCpus().size());
  place.priority = options.priority && RaisePriority();
  return place;
}

absl::Status RunRank(const Options& options, SharedPage* page, int rank, Control* control) {
  const WorkerPlace place = PlaceOf(options, page, rank, 2);
  return rank == 0 ? RunPlanner(options, place, control) : RunFollower(options, place, control);
}

// As a launcher would say: a plugin divides the CPUs by it.
void AnnounceRanks(int ranks) { setenv("LOCAL_WORLD_SIZE", absl::StrCat(ranks).c_str(), /*overwrite=*/0); }

// Each child closes the ends that are not its own, so that a death is seen at the other end.
int RunPairHere(const Options& options, SharedPage* page) {
  AnnounceRanks(2);
  auto ends = ControlPair();
  if (!ends.ok()) return Fail(options, ends.status());
  Supervisor supervisor(page, options.timeout_s);
  absl::Status status = supervisor.Fork(0, [&] {
    ends->second.reset();
    return RunRank(options, page, 0, ends->first.get());
  });
  if (!status.ok()) return Fail(options, status);
  ends->first.reset();
  status = supervisor.Fork(1, [&] { return RunRank(options, page, 1, ends->second.get()); });
  if (!status.ok()) return Fail(options, status);
  ends->second.reset();
  return supervisor.Watch();
}

// The control channel between each rank and the next.
struct RingEnds {
  std::unique_ptr<Control> own;      // of rank i
  std::unique_ptr<Control> of_next;  // of rank i + 1
};

absl::Status RunRingRank(const Options& options, SharedPage* page, int rank, std::vector<RingEnds>* ends) {
  const size_t self = static_cast<size_t>(rank);
  const size_t before = (self + ends->size() - 1) % ends->size();
  for (size_t i = 0; i < ends->size(); ++i) {
    if (i != self) (*ends)[i].own.reset();
    if (i != before) (*ends)[i].of_next.reset();
  }
  RingControls controls;
  controls.next = (*ends)[self].own.get();
  controls.previous = (*ends)[before].of_next.get();
  return RunAllreduceRank(options, PlaceOf(options, page, rank, options.ranks), controls);
}

int RunRingHere(const Options& options, SharedPage* page) {
  AnnounceRanks(options.ranks);
  std::vector<RingEnds> ends(static_cast<size_t>(options.ranks));
  for (RingEnds& pair : ends) {
    auto made = ControlPair();
    if (!made.ok()) return Fail(options, made.status());
    pair.own = std::move(made->first);
    pair.of_next = std::move(made->second);
  }
  Supervisor supervisor(page, options.timeout_s);
  for (int rank = 0; rank < options.ranks; ++rank) {
    absl::Status status = supervisor.Fork(rank, [&] { return RunRingRank(options, page, rank, &ends); });
    if (!status.ok()) return Fail(options, status);
  }
  ends.clear();
  return supervisor.Watch();
}

int RunRemote(const Options& options, SharedPage* page) {
  const bool listens = options.role == Role::kListen;
  absl::StatusOr<std::unique_ptr<Control>> control =
      listens ? ListenForControl(options.port) : DialControl(options.host, options.port, options.timeout_s);
  if (!control.ok()) return Fail(options, control.status());
  const int rank = listens ? 1 : 0;
  Supervisor supervisor(page, options.timeout_s);
  absl::Status status = supervisor.Fork(rank, [&] { return RunRank(options, page, rank, control->get()); });
  if (!status.ok()) return Fail(options, status);
  control->reset();
  return supervisor.Watch();
}

}  // namespace

int Fail(const Options& options, const absl::Status& status) {
  fprintf(stderr, "%s: %s\n", options.program, std::string(status.message()).c_str());
  return kExitFailure;
}

void MeanFileHere(std::string* plugin) {
  const bool bare_name = plugin->find('/') == std::string::npos;
  if (bare_name && access(plugin->c_str(), F_OK) == 0) plugin->insert(0, "./");
}

int Launch(const Options& options) {
  for (const std::string& file : options.also) {
    if (access(file.c_str(), R_OK) != 0) return Fail(options, ErrnoStatus(errno, "--also " + file));
  }
  signal(SIGPIPE, SIG_IGN);
  // Said, and then tried all the same.
  if (absl::Status status = RaiseDescriptorLimit(); !status.ok()) Fail(options, status);
  absl::StatusOr<SharedPage*> page = SharedPage::Create();
  if (!page.ok()) return Fail(options, page.status());
  if (options.role != Role::kLocal) return RunRemote(options, *page);
  return options.modes[0] == Mode::kAllreduce ? RunRingHere(options, *page) : RunPairHere(options, *page);
}

}  // namespace bench
}  // namespace tcpx
