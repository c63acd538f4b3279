#include "tests/support/pair.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "net_socket/engine/engine.h"
#include "tests/support/deadline.h"
#include "tests/support/log_capture.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {

// Sets variables and puts the old values back.
class Loopback::Environment {
 public:
  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value.second) {
        setenv(name.c_str(), value.first.c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
  }

  void Set(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    before_.emplace(name, std::make_pair(old == nullptr ? "" : old, old != nullptr));
    setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::map<std::string, std::pair<std::string, bool>> before_;
};

std::string LoopbackSettings::Describe(char separator) const {
  const std::string mode = threads == 0 ? "caller" : absl::StrCat(engine, " ", threads);
  std::string text = absl::StrCat(mode, " lanes ", lanes, family == AF_INET6 ? " IPv6" : " IPv4");
  if (version != 0) absl::StrAppend(&text, " v", version);
  if (environment.count("TCPX_ZEROCOPY") != 0) absl::StrAppend(&text, " zero copy ", environment.at("TCPX_ZEROCOPY"));
  for (char& c : text) {
    if (c == ' ') c = separator;
  }
  return text;
}

bool IoUringWorks(std::string* reason) { return ProbeEngine(EngineChoice::kIoUring, reason) == EngineChoice::kIoUring; }

absl::Status PluginStatus(ncclResult_t result, const std::string& call) {
  if (result == ncclSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, " returned ", result, "; the log:\n", CapturedLog()));
}

Loopback::Loopback(const LoopbackSettings& settings) : environment_(std::make_unique<Environment>()) {
  environment_->Set("TCPX_THREADS", absl::StrCat(settings.threads));
  environment_->Set("TCPX_ENGINE", settings.engine);
  environment_->Set("TCPX_LANES", absl::StrCat(settings.lanes));
  environment_->Set("NCCL_SOCKET_IFNAME", "lo");
  environment_->Set("NCCL_SOCKET_FAMILY", settings.family == AF_INET6 ? "AF_INET6" : "AF_INET");
  if (const char* every_us = std::getenv("TCPX_TEST_KILL_US")) {
    killer_ = std::make_unique<KillerThread>(TestSeed(), std::atoi(every_us));
  }
  for (const auto& [name, value] : settings.environment) environment_->Set(name, value);
}

absl::StatusOr<std::unique_ptr<Loopback>> Loopback::Open(const LoopbackSettings& settings) {
  // What is loaded already has read another environment.
  if (void* loaded = dlopen(kPluginPath, RTLD_NOW | RTLD_NOLOAD)) {
    dlclose(loaded);
    return absl::FailedPreconditionError(absl::StrCat(kPluginPath, " is still loaded"));
  }
  ClearCapturedLog();
  std::unique_ptr<Loopback> loopback(new Loopback(settings));
  absl::Status status = loopback->Load(settings);
  if (!status.ok()) return status;
  return loopback;
}

absl::Status Loopback::Load(const LoopbackSettings& settings) {
  auto net = NetClient::Open(kPluginPath, settings.version);
  if (!net.ok()) return net.status();
  net_ = *std::move(net);
  const ncclResult_t result =
      net_->Init(&context_, 42, NCCL_NET_TRAFFIC_CLASS_UNDEF, CapturingLogger(), settings.profiler);
  if (result != ncclSuccess) return PluginStatus(result, "init");
  initialised_ = true;
  if (std::getenv("TCPX_TEST_MUST_ENCRYPT") != nullptr &&
      !absl::StrContains(CapturedLog(), "every socket is encrypted")) {
    return absl::InternalError(absl::StrCat("nothing is encrypted; the log:\n", CapturedLog()));
  }
  int devices = 0;
  absl::Status status = PluginStatus(net_->Devices(&devices), "devices");
  if (status.ok() && devices != 1) {
    return absl::InternalError(absl::StrCat(devices, " devices instead of 1; the log:\n", CapturedLog()));
  }
  return status;
}

Loopback::~Loopback() {
  Finish().IgnoreError();
  if (killer_ == nullptr) return;
  killer_->Stop();
  std::fprintf(stderr, "%d sockets were killed\n", killer_->kills());
}

absl::StatusOr<void*> Loopback::Listen(char* handle) {
  void* listen = nullptr;
  absl::Status status = PluginStatus(net_->Listen(context_, 0, handle, &listen), "listen");
  if (!status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  listens_.insert(listen);
  return listen;
}

absl::StatusOr<Pair> Loopback::ConnectTo(void* listen, const char* handle) {
  const KillerThread::Truce truce(killer_.get());
  char own[NCCL_NET_HANDLE_MAXSIZE];
  std::memcpy(own, handle, sizeof(own));
  Pair pair;
  Deadline deadline;
  while ((pair.send == nullptr || pair.receive == nullptr) && deadline.Yield()) {
    absl::Status status;
    if (pair.send == nullptr) status = PluginStatus(net_->Connect(context_, 0, own, &pair.send), "connect");
    if (status.ok() && pair.receive == nullptr) {
      status = PluginStatus(net_->Accept(listen, &pair.receive), "accept");
    }
    if (!status.ok()) return status;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (pair.send != nullptr) sends_.insert(pair.send);
  if (pair.receive != nullptr) receives_.insert(pair.receive);
  if (pair.send != nullptr && pair.receive != nullptr) return pair;
  return absl::DeadlineExceededError(
      absl::StrCat(pair.send == nullptr ? "connect" : "accept", " did not finish; the log:\n", CapturedLog()));
}

absl::StatusOr<Pair> Loopback::Connect() {
  char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
  auto listen = Listen(handle);
  if (!listen.ok()) return listen.status();
  auto pair = ConnectTo(*listen, handle);
  absl::Status closed = CloseListen(*listen);
  return closed.ok() ? pair : closed;
}

absl::Status Loopback::Close(const Pair& pair) {
  const KillerThread::Truce truce(killer_.get());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    sends_.erase(pair.send);
    receives_.erase(pair.receive);
  }
  absl::Status status;
  if (pair.send != nullptr) status.Update(PluginStatus(net_->CloseSend(pair.send), "closeSend"));
  if (pair.receive != nullptr) status.Update(PluginStatus(net_->CloseRecv(pair.receive), "closeRecv"));
  return status;
}

absl::Status Loopback::CloseListen(void* listen) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    listens_.erase(listen);
  }
  return PluginStatus(net_->CloseListen(listen), "closeListen");
}

absl::Status Loopback::Finish() {
  absl::Status status;
  for (void* send : std::set<void*>(sends_)) status.Update(Close({send, nullptr}));
  for (void* receive : std::set<void*>(receives_)) status.Update(Close({nullptr, receive}));
  for (void* listen : std::set<void*>(listens_)) status.Update(CloseListen(listen));
  if (initialised_) status.Update(PluginStatus(net_->Finalize(context_), "finalize"));
  initialised_ = false;
  return status;
}

absl::Status WaitFor(NetClient* net, void* request, int* size) {
  Deadline deadline;
  int done = 0;
  do {
    absl::Status status = PluginStatus(net->Test(request, &done, size), "test");
    if (!status.ok()) return status;
    if (done != 0) return absl::OkStatus();
  } while (deadline.Yield());
  return absl::DeadlineExceededError("test: not done in time");
}

absl::StatusOr<void*> PostSend(NetClient* net, void* comm, const void* data, size_t bytes, int tag) {
  Deadline deadline;
  void* request = nullptr;
  do {
    absl::Status status =
        PluginStatus(net->Isend(comm, const_cast<void*>(data), bytes, tag, nullptr, nullptr, &request), "isend");
    if (!status.ok()) return status;
    if (request != nullptr) return request;
  } while (deadline.Yield());
  return absl::DeadlineExceededError("isend: no room in time");
}

absl::StatusOr<void*> PostReceive(NetClient* net, void* comm, void* data, size_t capacity, int tag) {
  Deadline deadline;
  void* request = nullptr;
  do {
    absl::Status status =
        PluginStatus(net->Irecv(comm, 1, &data, &capacity, &tag, nullptr, nullptr, &request), "irecv");
    if (!status.ok()) return status;
    if (request != nullptr) return request;
  } while (deadline.Yield());
  return absl::DeadlineExceededError("irecv: no room in time");
}

}  // namespace tcpx
