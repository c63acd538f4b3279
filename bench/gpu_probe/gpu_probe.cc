// gpu_probe: answers what one-sided transfers to GPU memory depend on, before NCCL is asked (docs/rma.md).
//
// Whether a copy engine's stream moves while a kernel waits, and while other streams wait for a value; and how long
// each method of writing a signal takes, from the host's call until a kernel that polls has answered.
//
// Exit code: 0 measured, and copies move; 1 they don't, or a call failed; 2 wrong usage; 3 no GPU.
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/gpu_probe/driver.h"
#include "common/clock.h"
#include "net_socket/gpu/gdr_copy.h"

namespace tcpx {
namespace gpu_probe {
namespace {

constexpr size_t kCopyBytes = 256 << 10;  // a slot of staging
constexpr size_t kPage = 64 << 10;
constexpr int64_t kStuckNs = 2 * kSecond;
constexpr int kWaitingStreams = 16;
constexpr uint64_t kSignals = 1000;

class Probe {
 public:
  explicit Probe(const Driver& driver) : driver_(driver) {}

  // Nothing is allocated later: that may wait for kernels.
  absl::Status Prepare();
  absl::Status CopyDuringAKernel();
  absl::Status CopyDuringWaits();
  absl::Status MeasureSignals();

 private:
  using Write = std::function<CUresult(uint64_t value)>;

  absl::StatusOr<CUstream> NewStream();
  // Times a copy during `load`, and fails if it is stuck. `release` ends the load in any case.
  absl::Status TimeCopy(const char* load, const std::function<absl::Status()>& release);
  absl::Status TimeSignals(const char* name, CUdeviceptr at, const Write& write);
  // True: the host has seen it.
  bool Seen(uint64_t turn) const;

  const Driver& driver_;
  CUstream copies_ = nullptr;
  CUstream kernels_ = nullptr;
  std::vector<CUstream> waiting_;
  CUdeviceptr target_ = 0;
  CUdeviceptr word_ = 0;  // of the GPU, at a multiple of kPage
  SharedWords source_;
  SharedWords seen_;
  SharedWords mapped_;  // a signal in host memory
};

absl::StatusOr<CUstream> Probe::NewStream() {
  CUstream stream = nullptr;
  absl::Status status = driver_.Check(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  if (!status.ok()) return status;
  return stream;
}

absl::Status Probe::Prepare() {
  for (CUstream* stream : {&copies_, &kernels_}) {
    auto made = NewStream();
    if (!made.ok()) return made.status();
    *stream = *made;
  }
  for (int i = 0; i < kWaitingStreams; ++i) {
    auto made = NewStream();
    if (!made.ok()) return made.status();
    waiting_.push_back(*made);
  }
  for (SharedWords* words : {&source_, &seen_, &mapped_}) {
    auto made = AllocateShared(driver_, kCopyBytes);
    if (!made.ok()) return made.status();
    *words = *made;
  }
  auto target = AllocateOnGpu(driver_, kCopyBytes);
  if (!target.ok()) return target.status();
  target_ = *target;
  auto words = AllocateOnGpu(driver_, 2 * kPage);
  if (!words.ok()) return words.status();
  word_ = (*words + kPage - 1) / kPage * kPage;
  // The first of each kind loads and prepares.
  const absl::Status status = TimeCopy("nothing (the first copy)", [] { return absl::OkStatus(); });
  return status;
}

absl::Status Probe::TimeCopy(const char* load, const std::function<absl::Status()>& release) {
  const int64_t began_ns = MonotonicNanos();
  const void* const source = const_cast<const uint64_t*>(source_.host);
  absl::Status status =
      driver_.Check(driver_.cuMemcpyHtoDAsync(target_, source, kCopyBytes, copies_), "cuMemcpyHtoDAsync");
  CUresult result = CUDA_ERROR_NOT_READY;
  int64_t waited_ns = 0;
  while (status.ok() && result == CUDA_ERROR_NOT_READY && waited_ns < kStuckNs) {
    result = driver_.cuStreamQuery(copies_);
    waited_ns = MonotonicNanos() - began_ns;
  }
  const bool stuck = status.ok() && result == CUDA_ERROR_NOT_READY;
  if (status.ok() && !stuck) status = driver_.Check(result, "cuStreamQuery");
  if (status.ok()) {
    printf("a copy of %zu KiB during %s: %s\n", kCopyBytes >> 10, load,
           stuck ? "does not move within 2 s" : absl::StrCat(waited_ns / 1000, " us").c_str());
  }
  const absl::Status released = release();
  if (status.ok()) status = released;
  if (status.ok()) status = driver_.Check(driver_.cuStreamSynchronize(copies_), "cuStreamSynchronize");
  return status.ok() && stuck ? absl::UnavailableError(absl::StrCat("a copy is stuck during ", load)) : status;
}

absl::Status Probe::CopyDuringAKernel() {
  mapped_.host[0] = seen_.host[0] = 0;
  absl::Status status = driver_.StartKernel(kernels_, mapped_.gpu, seen_.gpu, 2);
  if (!status.ok()) return status;
  mapped_.host[0] = 1;  // The kernel has begun once it says so.
  if (!Seen(1)) return absl::UnavailableError("the kernel does not begin, or does not see the host's memory");
  return TimeCopy("a kernel that polls", [this] {
    mapped_.host[0] = 2;
    return driver_.Check(driver_.cuStreamSynchronize(kernels_), "cuStreamSynchronize");
  });
}

// As streams of ncclPutSignal and ncclWaitSignal wait: many, and before the copies' stream is given anything.
absl::Status Probe::CopyDuringWaits() {
  mapped_.host[0] = 0;
  absl::Status status;
  for (CUstream stream : waiting_) {
    if (!status.ok()) break;
    status = driver_.Check(driver_.cuStreamWaitValue64(stream, mapped_.gpu, 1, CU_STREAM_WAIT_VALUE_GEQ),
                           "cuStreamWaitValue64");
  }
  const auto release = [this] {
    mapped_.host[0] = 1;
    absl::Status released;
    for (CUstream stream : waiting_) {
      if (released.ok()) released = driver_.Check(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize");
    }
    return released;
  };
  const std::string load = absl::StrCat(kWaitingStreams, " streams that wait for a value");
  return status.ok() ? TimeCopy(load.c_str(), release) : status;
}

bool Probe::Seen(uint64_t turn) const {
  const int64_t until_ns = MonotonicNanos() + kStuckNs;
  while (seen_.host[0] < turn) {
    if (MonotonicNanos() > until_ns) return false;
  }
  return true;
}

absl::Status Probe::TimeSignals(const char* name, CUdeviceptr at, const Write& write) {
  seen_.host[0] = 0;
  absl::Status status = driver_.StartKernel(kernels_, at, seen_.gpu, kSignals);
  std::vector<int64_t> times_ns;
  for (uint64_t turn = 1; status.ok() && turn <= kSignals; ++turn) {
    const int64_t began_ns = MonotonicNanos();
    status = driver_.Check(write(turn), name);
    if (status.ok() && !Seen(turn)) status = absl::UnavailableError(absl::StrCat(name, ": the kernel sees nothing"));
    times_ns.push_back(MonotonicNanos() - began_ns);
  }
  if (!status.ok()) return status;
  std::sort(times_ns.begin(), times_ns.end());
  printf("a signal by %s: p50 %.1f us, p99 %.1f us, there and back\n", name,
         static_cast<double>(times_ns[kSignals / 2]) * 1e-3, static_cast<double>(times_ns[kSignals * 99 / 100]) * 1e-3);
  return driver_.Check(driver_.cuStreamSynchronize(kernels_), "cuStreamSynchronize");
}

absl::Status Probe::MeasureSignals() {
  uint64_t* const source = const_cast<uint64_t*>(source_.host);
  mapped_.host[0] = 0;
  absl::Status status = TimeSignals("a mapped word of the host", mapped_.gpu, [this](uint64_t value) {
    mapped_.host[0] = value;
    return CUDA_SUCCESS;
  });
  const auto by_stream = [this](uint64_t value) { return driver_.cuStreamWriteValue64(copies_, word_, value, 0); };
  const auto by_copy = [this, source](uint64_t value) {
    source[0] = value;
    return driver_.cuMemcpyHtoDAsync(word_ + 8, source, sizeof(value), copies_);
  };
  if (status.ok()) status = TimeSignals("cuStreamWriteValue64", word_, by_stream);
  if (status.ok()) status = TimeSignals("an 8-byte cuMemcpyHtoDAsync", word_ + 8, by_copy);
  if (!status.ok()) return status;
  char* const word = reinterpret_cast<char*>(word_ + 16);
  const auto gdr = GdrCopy::Load();
  status = gdr.ok() ? (*gdr)->Map(word, sizeof(uint64_t)) : gdr.status();
  if (!status.ok()) {
    printf("a signal by GDRCopy: %s\n", std::string(status.message()).c_str());
    return absl::OkStatus();
  }
  return TimeSignals("GDRCopy", word_ + 16, [place = (*gdr)->Find(word, sizeof(uint64_t))](uint64_t value) {
    GdrCopy::WriteWord(place, value);
    return CUDA_SUCCESS;
  });
}

int Fail(const absl::Status& status) {
  fflush(stdout);
  fprintf(stderr, "gpu_probe: %s\n", std::string(status.message()).c_str());
  return 1;
}

constexpr char kUsage[] =
    "usage: gpu_probe\n\nSays whether copies move while kernels and streams wait, and how long signals take.\n"
    "docs/rma.md says why. Exit code: 0 copies move; 1 they don't, or a call failed; 2 wrong usage; 3 no GPU.\n";

int Main(int argc, char** argv) {
  const bool help = argc == 2 && std::string(argv[1]) == "--help";
  if (argc > 1) fputs(kUsage, help ? stdout : stderr);
  if (argc > 1) return help ? 0 : 2;
  const auto driver = Driver::Open();
  if (absl::IsNotFound(driver.status())) {
    fprintf(stderr, "gpu_probe: no GPU here: nothing was measured (%s)\n",
            std::string(driver.status().message()).c_str());
    return 3;
  }
  if (!driver.ok()) return Fail(driver.status());
  const char* const connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  printf("%s, CUDA_DEVICE_MAX_CONNECTIONS %s\n", (*driver)->Describe().c_str(),
         connections == nullptr ? "unset" : connections);
  Probe probe(**driver);
  absl::Status status = probe.Prepare();
  if (!status.ok()) return Fail(status);
  // Each is asked, whatever came of the one before.
  const absl::Status kernel = probe.CopyDuringAKernel();
  const absl::Status streams = probe.CopyDuringWaits();
  const absl::Status signals = probe.MeasureSignals();
  for (const absl::Status& each : {kernel, streams, signals}) {
    if (!each.ok()) status = each;
  }
  return status.ok() ? 0 : Fail(status);
}

}  // namespace
}  // namespace gpu_probe
}  // namespace tcpx

// A kernel may still wait: the driver's own end would wait for it.
int main(int argc, char** argv) {
  const int code = tcpx::gpu_probe::Main(argc, argv);
  fflush(stdout);
  _Exit(code);
}
