#include "tests/support/test_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

// Below the life of a process of a test (processes.h), so that a hang is reported with its log.
constexpr int kConnectSeconds = 30;

absl::Status WithLog(const std::string& what) {
  return absl::InternalError(absl::StrCat(what, "; the log:\n", LogText()));
}

// Calls `post`, which sets a request or leaves it null, until there is one.
template <class Post>
absl::StatusOr<void*> PostInTime(const char* call, const Post& post) {
  const Deadline deadline;
  void* request = nullptr;
  do {
    absl::Status status = PluginStatus(post(&request), call);
    if (!status.ok()) return status;
    if (request != nullptr) return request;
  } while (deadline.Yield());
  return absl::DeadlineExceededError(absl::StrCat(call, ": no room in time"));
}

}  // namespace

absl::Status PluginStatus(ncclResult_t result, const std::string& call) {
  return result == ncclSuccess ? absl::OkStatus() : WithLog(absl::StrCat(call, " returned ", result));
}

ncclResult_t PollEnds(NetClient* net, const Dialling& dialling, Ends* ends) {
  const Deadline deadline(kConnectSeconds);
  for (;;) {
    const bool connects = dialling.handle != nullptr && ends->send == nullptr;
    const bool accepts = dialling.listen != nullptr && ends->receive == nullptr;
    if (!connects && !accepts) return ncclSuccess;
    ncclResult_t result = ncclSuccess;
    if (connects) result = net->Connect(dialling.context, dialling.device, dialling.handle, &ends->send);
    if (result == ncclSuccess && accepts) result = net->Accept(dialling.listen, &ends->receive);
    if (result != ncclSuccess) return result;
    if (!deadline.Yield()) return ncclInProgress;
  }
}

absl::StatusOr<std::unique_ptr<TestPlugin>> TestPlugin::Open(const Mode& mode) {
  // What is loaded already has read another environment.
  if (void* loaded = dlopen(kPluginPath, RTLD_NOW | RTLD_NOLOAD)) {
    dlclose(loaded);
    return absl::FailedPreconditionError(absl::StrCat(kPluginPath, " is still loaded"));
  }
  ClearLog();
  std::unique_ptr<TestPlugin> plugin(new TestPlugin);
  plugin->environment_ = std::make_unique<ScopedEnvironment>();
  plugin->environment_->Set(mode.Variables());
  absl::Status status = plugin->Load(mode.version, mode.profiler);
  if (!status.ok()) return status;
  return plugin;
}

absl::StatusOr<std::unique_ptr<TestPlugin>> TestPlugin::OpenAsIs(int version) {
  std::unique_ptr<TestPlugin> plugin(new TestPlugin);
  absl::Status status = plugin->Load(version, nullptr);
  if (!status.ok()) return status;
  return plugin;
}

absl::Status TestPlugin::Load(int version, ncclProfilerCallback_t profiler) {
  auto net = NetClient::Open(kPluginPath, version);
  if (!net.ok()) return net.status();
  net_ = *std::move(net);
  absl::Status status =
      PluginStatus(net_->Init(&context_, 42, NCCL_NET_TRAFFIC_CLASS_UNDEF, &RecordLog, profiler), "init");
  if (!status.ok()) return status;
  initialised_ = true;
  if (std::getenv("TCPX_TEST_MUST_ENCRYPT") != nullptr && !LogHas("every socket is encrypted")) {
    return WithLog("nothing is encrypted");
  }
  int devices = 0;
  status = PluginStatus(net_->Devices(&devices), "devices");
  const bool right = environment_ == nullptr ? devices >= 1 : devices == 1;
  return status.ok() && !right ? WithLog(absl::StrCat(devices, " devices")) : status;
}

TestPlugin::~TestPlugin() {
  if (environment_ != nullptr) Finish().IgnoreError();
  if (killer_ == nullptr) return;
  killer_->Stop();
  std::fprintf(stderr, "%d sockets were killed\n", killer_->kills());
}

absl::StatusOr<void*> TestPlugin::NewContext(uint64_t comm_id, int traffic_class) {
  void* context = nullptr;
  absl::Status status = PluginStatus(net_->Init(&context, comm_id, traffic_class, &RecordLog, nullptr), "init");
  if (!status.ok()) return status;
  return context;
}

absl::StatusOr<void*> TestPlugin::Listen(void* context, char* handle, int device) {
  void* listen = nullptr;
  absl::Status status = PluginStatus(net_->Listen(context, device, handle, &listen), "listen");
  if (!status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  listens_.insert(listen);
  return listen;
}

absl::StatusOr<Ends> TestPlugin::ConnectTo(void* context, void* listen, const char* handle, int device) {
  const KillerThread::Truce truce(Killer());
  char own[kHandleBytesMax];
  std::memcpy(own, handle, sizeof(own));
  Ends ends;
  const ncclResult_t result = PollEnds(net_.get(), {context, device, own, listen}, &ends);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ends.send != nullptr) sends_.insert(ends.send);
    if (ends.receive != nullptr) receives_.insert(ends.receive);
  }
  if (result == ncclInProgress) return WithLog(ends.send == nullptr ? "no connection" : "nothing is accepted");
  if (result != ncclSuccess) return PluginStatus(result, "connect or accept");
  StartKilling();
  return ends;
}

absl::StatusOr<Ends> TestPlugin::Connect(void* dialling, void* listening) {
  char handle[kHandleBytesMax] = {};
  auto listen = Listen(listening, handle);
  if (!listen.ok()) return listen.status();
  auto ends = ConnectTo(dialling, *listen, handle);
  absl::Status closed = CloseListen(*listen);
  return closed.ok() ? ends : closed;
}

KillerThread* TestPlugin::Killer() {
  std::lock_guard<std::mutex> lock(mutex_);
  return killer_.get();
}

void TestPlugin::StartKilling() {
  const char* const every_us = std::getenv("TCPX_TEST_KILL_US");
  std::lock_guard<std::mutex> lock(mutex_);
  if (every_us == nullptr || killer_ != nullptr) return;
  killer_ = std::make_unique<KillerThread>(TestSeed() + static_cast<uint64_t>(getpid()), std::atoi(every_us));
}

absl::Status TestPlugin::Close(const Ends& ends) {
  const KillerThread::Truce truce(Killer());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    sends_.erase(ends.send);
    receives_.erase(ends.receive);
  }
  absl::Status status;
  if (ends.send != nullptr) status.Update(PluginStatus(net_->CloseSend(ends.send), "closeSend"));
  if (ends.receive != nullptr) status.Update(PluginStatus(net_->CloseRecv(ends.receive), "closeRecv"));
  return status;
}

absl::Status TestPlugin::CloseListen(void* listen) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    listens_.erase(listen);
  }
  return PluginStatus(net_->CloseListen(listen), "closeListen");
}

absl::Status TestPlugin::Finalize() {
  initialised_ = false;
  return PluginStatus(net_->Finalize(context_), "finalize");
}

absl::Status TestPlugin::Finish() {
  absl::Status status;
  for (void* send : std::set<void*>(sends_)) status.Update(Close({send, nullptr}));
  for (void* receive : std::set<void*>(receives_)) status.Update(Close({nullptr, receive}));
  for (void* listen : std::set<void*>(listens_)) status.Update(CloseListen(listen));
  if (initialised_) status.Update(Finalize());
  return status;
}

absl::StatusOr<void*> PostSend(NetClient* net, void* comm, const void* data, size_t bytes, int tag) {
  return PostInTime("isend", [&](void** request) {
    return net->Isend(comm, const_cast<void*>(data), bytes, tag, nullptr, nullptr, request);
  });
}

absl::StatusOr<void*> PostReceive(NetClient* net, void* comm, void* data, size_t capacity, int tag) {
  return PostInTime(
      "irecv", [&](void** request) { return net->Irecv(comm, 1, &data, &capacity, &tag, nullptr, nullptr, request); });
}

absl::Status WaitFor(NetClient* net, void* request, int* size) {
  const Deadline deadline;
  int done = 0;
  do {
    absl::Status status = PluginStatus(net->Test(request, &done, size), "test");
    if (!status.ok() || done != 0) return status;
  } while (deadline.Yield());
  return absl::DeadlineExceededError("test: not done in time");
}

absl::Status WaitForAll(NetClient* net, std::vector<void*> requests) {
  const Deadline deadline(2 * 60);
  absl::Status status;
  const auto ended = [&](void* request) {
    int done = 0;
    if (status.ok()) status = PluginStatus(net->Test(request, &done, nullptr), "test");
    return done != 0;
  };
  while (!requests.empty()) {
    requests.erase(std::remove_if(requests.begin(), requests.end(), ended), requests.end());
    if (!status.ok()) return status;
    if (!deadline.Yield()) return WithLog("test: not all done in time");
  }
  return status;
}

absl::Status Move(NetClient* net, const Ends& ends, const std::string& text) {
  std::string got(text.size(), '?');
  auto receive = PostReceive(net, ends.receive, &got[0], got.size());
  if (!receive.ok()) return receive.status();
  auto send = PostSend(net, ends.send, text.data(), text.size());
  if (!send.ok()) return send.status();
  absl::Status status = WaitForAll(net, {*send, *receive});
  return status.ok() && got != text ? absl::DataLossError("other bytes came than were sent") : status;
}

}  // namespace tcpx
