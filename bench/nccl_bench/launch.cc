#include "bench/nccl_bench/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/nccl_bench/children.h"
#include "bench/nccl_bench/rendezvous.h"
#include "bench/nccl_bench/table.h"
#include "common/fd.h"
#include "common/status.h"
#include "common/this_host.h"

namespace tcpx {
namespace nccl_bench {
namespace {

int Fail(const absl::Status& status) {
  fprintf(stderr, "nccl_bench: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

// Holds the logs of the ranks; kept when something failed.
class LogFolder {
 public:
  LogFolder() {
    const std::string base = ProcessEnvironment("TMPDIR");
    path_ = absl::StrCat(base.empty() ? "/tmp" : base, "/nccl_bench.XXXXXX");
    if (mkdtemp(&path_[0]) == nullptr) path_.clear();
  }
  ~LogFolder() {
    if (!path_.empty() && !keep_) nftw(path_.c_str(), RemoveOne, 16, FTW_DEPTH | FTW_PHYS);
  }
  void Keep() { keep_ = true; }
  const std::string& path() const { return path_; }

 private:
  static int RemoveOne(const char* path, const struct stat*, int, struct FTW*) { return remove(path); }

  std::string path_;
  bool keep_ = false;
};

std::string OwnPath() {
  std::string path(4096, '\0');
  const ssize_t length = readlink("/proc/self/exe", &path[0], path.size());
  path.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return path;
}

bool Inherit(int fd) { return fcntl(fd, F_SETFD, 0) == 0; }

std::vector<Row> ReadRows(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t got = 0; (got = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(got));
  std::vector<Row> rows;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    absl::StatusOr<Row> row = ParseRow(line);
    if (row.ok()) rows.push_back(*row);
  }
  return rows;
}

// All ranks of one network, from start to end.
class NetRun {
 public:
  NetRun(const Options& options, const std::vector<std::string>& arguments, std::string net, std::string folder)
      : options_(options), arguments_(arguments), net_(std::move(net)), folder_(std::move(folder)) {}

  absl::Status Prepare() {
    rows_.reset(memfd_create("rows", 0));
    if (!rows_) return ErrnoStatus(errno, "memfd_create");
    if (options_.local == 0) return absl::OkStatus();
    absl::StatusOr<Listener> listener = ListenForRanks(0);
    if (!listener.ok()) return listener.status();
    listener_ = std::move(*listener);
    return Inherit(listener_.fd.get()) ? absl::OkStatus() : ErrnoStatus(errno, "fcntl");
  }

  int Run(bool own_hosts) {
    std::vector<Child> children;
    for (int rank = 0; rank < options_.local; ++rank) children.push_back(LocalChild(rank, own_hosts));
    if (options_.local == 0) children.push_back(AnyChild("the rank of this process", "rank"));
    ChildLimits limits;
    limits.straggler_s = options_.timeout_s + limits.grace_s;
    return RunChildren(children, limits);
  }

  NetRows Rows() const { return {net_.empty() ? "NCCL's choice" : net_, ReadRows(rows_.get())}; }

 private:
  Child AnyChild(const std::string& name, const std::string& file) const {
    Child child;
    child.name = name;
    child.arguments = arguments_;
    const std::string log = absl::StrCat(folder_, "/", net_, "-", file, ".log");
    if (!net_.empty()) child.environment = NetEnvironment(options_, net_, log, ProcessEnvironment);
    child.environment[kChildVariable] = "1";
    child.environment[kNetVariable] = net_;
    child.environment[kRowsVariable] = absl::StrCat(rows_.get());
    return child;
  }

  Child LocalChild(int rank, bool own_hosts) const {
    Child child = AnyChild(absl::StrCat("rank ", rank), absl::StrCat("rank", rank));
    child.environment["RANK"] = child.environment["LOCAL_RANK"] = absl::StrCat(rank);
    child.environment["WORLD_SIZE"] = child.environment["LOCAL_WORLD_SIZE"] = absl::StrCat(options_.local);
    child.environment["MASTER_ADDR"] = "127.0.0.1";
    child.environment["MASTER_PORT"] = absl::StrCat(listener_.port);
    if (rank == 0) child.environment[kListenerVariable] = absl::StrCat(listener_.fd.get());
    if (own_hosts) child.environment["NCCL_HOSTID"] = absl::StrCat(HostName(), "-", getpid(), "-rank", rank);
    child.killed_on_purpose = options_.mode == Mode::kKilled && rank == options_.local - 1;
    return child;
  }

  const Options& options_;
  const std::vector<std::string>& arguments_;
  const std::string net_;
  const std::string folder_;
  OwnedFd rows_;
  Listener listener_;
};

void SayPlace(const Options& options, int gpus) {
  if (options.local == 0) return;
  printf("# %d ranks on this machine, %d GPU%s%s\n", options.local, gpus, gpus == 1 ? "" : "s",
         OwnHosts(options, gpus) ? ", each rank as a host of its own (NCCL_HOSTID)" : "");
  if (gpus < options.local) {
    printf(
        "# DISTORTED: ranks share a GPU, whose time is sliced between them; times here say nothing of a real "
        "cluster\n");
  }
}

// Whether this process knows which rank it is, before anything is started.
absl::Status CheckRank(const Options& options) {
  return options.local > 0 ? absl::OkStatus() : JobFromEnvironment(ProcessEnvironment).status();
}

}  // namespace

bool OwnHosts(const Options& options, int gpus) {
  return options.local > 1 && (gpus < options.local || !options.nets.empty());
}

std::map<std::string, std::string> NetEnvironment(const Options& options, const std::string& net,
                                                  const std::string& log_file, const Environment& environment) {
  std::map<std::string, std::string> result;
  result["NCCL_NET"] = net;
  result["NCCL_DEBUG"] = "INFO";
  result["NCCL_DEBUG_SUBSYS"] = "INIT,NET";
  result["NCCL_DEBUG_FILE"] = log_file;
  const std::string present = environment("NCCL_NET_PLUGIN");
  std::string& plugin = result["NCCL_NET_PLUGIN"];
  if (IsInternalNet(net)) {
    plugin = "none";
  } else if (options.plugin_given) {
    plugin = options.plugin;
  } else {
    plugin = present.empty() || absl::EqualsIgnoreCase(present, "none") ? "tcpx" : present;
  }
  return result;
}

int Launch(const Options& options, const std::vector<std::string>& arguments, int gpus) {
  if (absl::Status status = CheckRank(options); !status.ok()) return Fail(status);
  std::vector<std::string> own = arguments;
  own.insert(own.begin(), OwnPath());
  LogFolder folder;
  if (folder.path().empty()) return Fail(ErrnoStatus(errno, "a folder for NCCL's log"));
  SayPlace(options, gpus);
  const std::vector<std::string> nets = options.nets.empty() ? std::vector<std::string>{""} : options.nets;
  std::vector<NetRows> rows;
  int failed = 0;
  for (const std::string& net : nets) {
    if (!net.empty()) printf("# network %s\n", net.c_str());
    NetRun run(options, own, net, folder.path());
    if (absl::Status status = run.Prepare(); !status.ok()) return Fail(status);
    failed += run.Run(OwnHosts(options, gpus));
    rows.push_back(run.Rows());
  }
  if (!rows.front().rows.empty()) fputs(ComparisonTable(rows).c_str(), stdout);
  if (failed == 0) return 0;
  if (options.nets.empty()) return 1;  // Without nets to assert, the log goes where the user sends it.
  folder.Keep();
  fprintf(stderr, "nccl_bench: NCCL's logs are in %s\n", folder.path().c_str());
  return 1;
}

}  // namespace nccl_bench
}  // namespace tcpx
