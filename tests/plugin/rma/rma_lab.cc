#include "tests/plugin/rma/rma_lab.h"

#include <dlfcn.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/test_plugin.h"

namespace tcpx {

absl::StatusOr<std::unique_ptr<RmaLab>> RmaLab::Open(const Mode& mode, const RmaShape& shape) {
  if (void* loaded = dlopen(kPluginPath, RTLD_NOW | RTLD_NOLOAD)) {
    dlclose(loaded);
    return absl::FailedPreconditionError(absl::StrCat(kPluginPath, " is still loaded"));
  }
  ClearLog();
  std::unique_ptr<RmaLab> lab(new RmaLab(shape));
  Environment variables = mode.Variables();
  variables.insert({"TCPX_RMA", "1"});
  lab->environment_.Set(variables);
  auto client = RmaClient::Open(kPluginPath, shape.version);
  if (!client.ok()) return client.status();
  lab->client_ = *std::move(client);
  absl::Status status = lab->Connect(shape);
  if (!status.ok()) return status;
  return lab;
}

absl::Status RmaLab::InParallel(const std::function<absl::Status(int)>& body) {
  std::vector<absl::Status> results(ranks_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = body(static_cast<int>(i)); });
  }
  for (std::thread& thread : threads) thread.join();
  absl::Status status;
  for (const absl::Status& result : results) status.Update(result);
  return status;
}

absl::Status RmaLab::Connect(const RmaShape& shape) {
  for (Rank& rank : ranks_) {
    absl::Status status = PluginStatus(client_->Init(&rank.context, shape.comm_id, &RecordLog), "init");
    if (!status.ok()) return status;
    status = PluginStatus(client_->Listen(rank.context, 0, rank.handle.data(), &rank.listen), "listen");
    if (!status.ok()) return status;
  }
  return InParallel([&](int number) {
    Rank& own = rank(number);
    std::vector<std::array<char, NCCL_NET_HANDLE_MAXSIZE>> copies;
    for (const Rank& each : ranks_) copies.push_back(each.handle);
    std::vector<void*> all;
    for (auto& copy : copies) all.push_back(copy.data());
    // Host RMA of NCCL hands over the context of another table.
    absl::Status status =
        PluginStatus(client_->Connect(nullptr, all.data(), ranks(), number, own.listen, &own.group), "connect");
    status.Update(PluginStatus(client_->CloseListen(std::exchange(own.listen, nullptr)), "closeListen"));
    if (!status.ok()) return status;
    const int undefined = NCCL_NET_TRAFFIC_CLASS_UNDEF;
    return PluginStatus(client_->CreateContext(own.group, shape.contexts, undefined, &own.contexts), "createContext");
  });
}

RmaLab::~RmaLab() {
  if (client_ == nullptr) return;
  CloseAll().IgnoreError();
  for (Rank& rank : ranks_) {
    if (rank.listen != nullptr) (void)client_->CloseListen(rank.listen);
    if (rank.context != nullptr) (void)client_->Finalize(rank.context);
  }
}

absl::StatusOr<RmaMemory*> RmaLab::Register(size_t bytes, uint64_t flags, bool on_gpu) {
  RmaMemory& memory = memories_.emplace_back();
  memory.bytes = bytes;
  memory.parts.resize(ranks_.size());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    RmaMemory::Part& part = memory.parts[i];
    part.words.resize(on_gpu ? 0 : bytes / sizeof(uint64_t) + 1);
    part.seen = reinterpret_cast<char*>(part.words.data());
    void* data = part.seen;
    if (on_gpu) {
      part.gpu = std::make_unique<GpuBuffer>(gpu_, bytes + sizeof(uint64_t));
      data = part.gpu->data();
      part.seen = static_cast<char*>(gpu_->fake().view(reinterpret_cast<uint64_t>(data)));
    }
    // Without a driver the tests' memory is what NCCL calls a GPU's.
    const int type = on_gpu || gpu_ == nullptr ? NCCL_PTR_CUDA : NCCL_PTR_HOST;
    absl::Status status =
        PluginStatus(client_->RegMrSym(ranks_[i].group, data, bytes, type, flags, &part.mhandle), "regMrSym");
    if (!status.ok()) return status;
  }
  return &memory;
}

absl::StatusOr<void*> RmaLab::RegisterAt(int number, void* data, size_t bytes, uint64_t flags) {
  void* mhandle = nullptr;
  const ncclResult_t result = client_->RegMrSym(rank(number).group, data, bytes, NCCL_PTR_CUDA, flags, &mhandle);
  if (result != ncclSuccess) return PluginStatus(result, "regMrSym");
  return mhandle;
}

void RmaLab::Deregister(const RmaMemory& memory, int number) {
  (void)client_->DeregMrSym(rank(number).group, memory.of(number));
}

void RmaLab::Deregister(const RmaMemory& memory) {
  for (int i = 0; i < ranks(); ++i) Deregister(memory, i);
}

absl::Status RmaLab::Progress() {
  for (Rank& rank : ranks_) {
    if (rank.contexts == nullptr) continue;
    absl::Status status = PluginStatus(client_->Progress(rank.contexts), "rmaProgress");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RmaLab::Until(const std::function<bool()>& done) {
  const Deadline deadline;
  while (!done()) {
    absl::Status status = Progress();
    if (!status.ok()) return status;
    if (!deadline.Yield()) return absl::DeadlineExceededError(absl::StrCat("nothing came in time; ", LogText()));
  }
  return absl::OkStatus();
}

absl::Status RmaLab::Wait(int number, void* request) {
  int done = 0;
  absl::Status tested;
  absl::Status status = Until([&] {
    tested = PluginStatus(client_->Test(rank(number).group, request, &done), "test");
    return done != 0 || !tested.ok();
  });
  return tested.ok() ? status : tested;
}

absl::Status RmaLab::UntilFailed(int number) {
  const Deadline deadline;
  while (!HasFailed(number)) {
    for (Rank& rank : ranks_) {
      if (rank.contexts != nullptr) (void)client_->Progress(rank.contexts);
    }
    if (!deadline.Yield()) return absl::DeadlineExceededError(absl::StrCat("no error came; ", LogText()));
  }
  return absl::OkStatus();
}

absl::Status RmaLab::Close(int number) {
  Rank& own = rank(number);
  absl::Status status;
  if (own.contexts != nullptr) {
    status.Update(PluginStatus(client_->DestroyContext(std::exchange(own.contexts, nullptr)), "destroyContext"));
  }
  if (own.group != nullptr) {
    status.Update(PluginStatus(client_->CloseColl(std::exchange(own.group, nullptr)), "closeColl"));
  }
  return status;
}

absl::Status RmaLab::CloseAll() {
  return InParallel([this](int number) { return Close(number); });
}

bool RmaLab::HasFailed(int number) {
  bool failed = false;
  (void)client_->QueryLastError(rank(number).contexts, &failed);
  return failed;
}

}  // namespace tcpx
