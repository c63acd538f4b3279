// stream: one of two ranks that send to each other through the plugin until they are stopped, and say how that goes.
//
// usage: stream --plugin PATH --folder FOLDER --name NAME --other NAME [--size BYTES] [--window N]
//
// The two share FOLDER and nothing else. Every second message is small, every byte is checked. Into FOLDER a rank
// writes
//   NAME.handle    where it listens
//   NAME.pulse     a line each 100 ms: time, bytes received in all
//   NAME.result    at its end: "stopped" or "error", time, bytes received, wrong bytes, the longest pause in
//                  milliseconds between two messages received, from FOLDER/go on
// It stops when FOLDER/stop is there; while FOLDER/pause is there it posts nothing new. After SIGTERM it closes in the
// middle of everything, as an abort does. The plugin's log goes to stderr.
//
// Threads: one, and the plugin's. Units: seconds of CLOCK_REALTIME, as bash's EPOCHREALTIME.
// Errors:  exit code 0: stopped; 1: the plugin failed; 2: wrong usage.
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nccl/client/net_client.h"

namespace tcpx {
namespace bench {
namespace {

constexpr int kHandleBytes = 128;
constexpr size_t kSmallBytes = 4000;
constexpr double kPulse = 0.1;

volatile sig_atomic_t aborted = 0;

double Now() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

[[noreturn]] void Die(const std::string& why) {
  fprintf(stderr, "stream: %s\n", why.c_str());
  _exit(1);
}

__attribute__((format(printf, 5, 6))) void Log(ncclDebugLogLevel, unsigned long, const char*, int, const char* format,
                                               ...) {
  char line[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  fprintf(stderr, "%.3f %s\n", Now(), line);
}

struct Settings {
  std::string plugin, folder, name, other;
  size_t bytes = 256 << 10;
  int window = 8;

  std::string Path(const std::string& whose, const std::string& what) const {
    return folder + "/" + whose + "." + what;
  }
  bool Has(const char* what) const { return access((folder + "/" + what).c_str(), F_OK) == 0; }
};

// Whole or not at all.
void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path + ".part", std::ios::binary) << text;
  if (rename((path + ".part").c_str(), path.c_str()) != 0) Die("can't write " + path);
}

// Messages one way; each holds its number, eight bytes at a time.
class Flow {
 public:
  Flow(NetClient* net, void* comm, bool sends, const Settings& settings)
      : net_(net),
        comm_(comm),
        sends_(sends),
        words_(settings.bytes / sizeof(uint64_t)),
        requests_(static_cast<size_t>(settings.window)),
        memory_(words_ * requests_.size()) {
    net_->RegMr(comm_, memory_.data(), memory_.size() * sizeof(uint64_t), NCCL_PTR_HOST, &region_);
  }

  // False: the plugin reports an error.
  bool Step(bool posts) {
    while (posts && posted_ - finished_ < requests_.size()) {
      const size_t posted = posted_;
      if (!Post()) return false;
      if (posted_ == posted) break;
    }
    return posted_ == finished_ || Test();
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t wrong() const { return wrong_; }
  size_t finished() const { return finished_; }

 private:
  size_t BytesOf(size_t message) const {
    return message % 2 == 0 ? words_ * sizeof(uint64_t) : std::min(kSmallBytes, words_ * sizeof(uint64_t));
  }
  uint64_t* Slot(size_t message) { return memory_.data() + message % requests_.size() * words_; }

  bool Post() {
    void* data = Slot(posted_);
    size_t bytes = BytesOf(posted_);
    void* request = nullptr;
    int tag = 0;
    ncclResult_t result;
    if (sends_) {
      for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) Slot(posted_)[i] = posted_ * 1000003 + i;
      result = net_->Isend(comm_, data, bytes, tag, region_, nullptr, &request);
    } else {
      result = net_->Irecv(comm_, 1, &data, &bytes, &tag, &region_, nullptr, &request);
    }
    if (request != nullptr) requests_[posted_++ % requests_.size()] = request;
    return result == ncclSuccess;
  }

  bool Test() {
    int done = 0;
    int size = 0;
    if (net_->Test(requests_[finished_ % requests_.size()], &done, &size) != ncclSuccess) return false;
    if (done == 0) return true;
    const size_t bytes = BytesOf(finished_);
    if (size != static_cast<int>(bytes)) wrong_ += bytes;
    for (size_t i = 0; !sends_ && i < bytes / sizeof(uint64_t); ++i) {
      if (Slot(finished_)[i] != finished_ * 1000003 + i) wrong_ += sizeof(uint64_t);
    }
    bytes_ += bytes;
    ++finished_;
    return true;
  }

  NetClient* const net_;
  void* const comm_;
  const bool sends_;
  const size_t words_;
  std::vector<void*> requests_;
  std::vector<uint64_t> memory_;
  void* region_ = nullptr;
  size_t posted_ = 0;
  size_t finished_ = 0;
  uint64_t bytes_ = 0;
  uint64_t wrong_ = 0;
};

// What is seen of the messages that arrive.
class Pulse {
 public:
  explicit Pulse(const Settings& settings)
      : file_(settings.Path(settings.name, "pulse")), settings_(settings), next_(Now()) {}

  void Note(const Flow& received) {
    const double now = Now();
    if (received.finished() != finished_) {
      if (counts_) longest_ = std::max(longest_, now - latest_);
      finished_ = received.finished();
      latest_ = now;
    }
    if (now < next_) return;
    next_ += kPulse;
    const bool counts = settings_.Has("go") && !settings_.Has("pause");
    if (counts && !counts_) latest_ = now;
    counts_ = counts;
    char line[64];
    snprintf(line, sizeof(line), "%.3f %llu\n", now, static_cast<unsigned long long>(received.bytes()));
    file_ << line << std::flush;
  }
  double longest() const { return counts_ ? std::max(longest_, Now() - latest_) : longest_; }

 private:
  std::ofstream file_;
  const Settings& settings_;
  double next_;
  double latest_ = Now();
  double longest_ = 0;
  size_t finished_ = 0;
  bool counts_ = false;
};

struct Comms {
  void* send = nullptr;
  void* receive = nullptr;
};

Comms Connect(NetClient* net, void* context, const Settings& settings) {
  char handle[kHandleBytes] = {};
  void* listen = nullptr;
  if (net->Listen(context, 0, handle, &listen) != ncclSuccess) Die("listen failed");
  WriteFile(settings.Path(settings.name, "handle"), std::string(handle, sizeof(handle)));
  while (!std::ifstream(settings.Path(settings.other, "handle"), std::ios::binary).read(handle, sizeof(handle))) {
    usleep(2000);
  }
  Comms comms;
  while (comms.send == nullptr || comms.receive == nullptr) {
    if (comms.send == nullptr && net->Connect(context, 0, handle, &comms.send) != ncclSuccess) Die("connect failed");
    if (comms.receive == nullptr && net->Accept(listen, &comms.receive) != ncclSuccess) Die("accept failed");
  }
  net->CloseListen(listen);
  return comms;
}

bool RunUntilStopped(const Settings& settings, Flow* send, Flow* receive, Pulse* pulse) {
  bool posts = true;
  for (int64_t step = 0; aborted == 0; ++step) {
    if (!send->Step(posts) || !receive->Step(true)) return false;
    pulse->Note(*receive);
    if (step % 256 != 0) continue;
    posts = !settings.Has("pause");
    if (settings.Has("stop")) return true;
  }
  return true;
}

int Run(const Settings& settings) {
  auto net = NetClient::Open(settings.plugin);
  if (!net.ok()) Die(std::string(net.status().message()));
  void* context = nullptr;
  int devices = 0;
  if ((*net)->Init(&context, 1, -1, Log, nullptr) != ncclSuccess || (*net)->Devices(&devices) != ncclSuccess) {
    Die("init failed");
  }
  const Comms comms = Connect(net->get(), context, settings);
  Flow send(net->get(), comms.send, true, settings);
  Flow receive(net->get(), comms.receive, false, settings);
  Pulse pulse(settings);
  const bool stopped = RunUntilStopped(settings, &send, &receive, &pulse);
  char line[128];
  snprintf(line, sizeof(line), "%s %.3f %llu %llu %.0f\n", stopped ? "stopped" : "error", Now(),
           static_cast<unsigned long long>(receive.bytes()), static_cast<unsigned long long>(receive.wrong()),
           pulse.longest() * 1000);
  WriteFile(settings.Path(settings.name, "result"), line);
  if (aborted != 0) {
    (*net)->CloseSend(comms.send);
    (*net)->CloseRecv(comms.receive);
    (*net)->Finalize(context);
    return 0;
  }
  // The other one must not take this end for an error.
  for (int i = 0; i < 500 && stopped && access(settings.Path(settings.other, "result").c_str(), F_OK) != 0; ++i) {
    (void)(send.Step(false) && receive.Step(true));
    usleep(10000);
  }
  fflush(stderr);
  _exit(stopped ? 0 : 1);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  tcpx::bench::Settings settings;
  settings.plugin = options["--plugin"];
  settings.folder = options["--folder"];
  settings.name = options["--name"];
  settings.other = options["--other"];
  if (!options["--size"].empty()) settings.bytes = strtoul(options["--size"].c_str(), nullptr, 10) / 8 * 8;
  if (!options["--window"].empty()) settings.window = atoi(options["--window"].c_str());
  if (settings.plugin.empty() || settings.folder.empty() || settings.name.empty() || settings.other.empty() ||
      settings.bytes == 0 || settings.window < 1 || settings.window > 32 || argc % 2 == 0) {
    fputs("usage: stream --plugin PATH --folder FOLDER --name NAME --other NAME [--size BYTES] [--window N]\n", stderr);
    return 2;
  }
  signal(SIGTERM, [](int) { tcpx::bench::aborted = 1; });
  return tcpx::bench::Run(settings);
}
