#include "tests/support/fake_nccl/fake_runtime.h"

#include <stdlib.h>
#include <string.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

using Job = std::function<void()>;

// The runtime's own opaque types.
struct CUstream_st {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Job> jobs;
  bool busy = false;
  bool stop = false;
  bool capturing = false;
  std::vector<Job> captured;
  std::thread thread{[this] { Run(); }};

  void Run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return stop || !jobs.empty(); });
      if (jobs.empty()) return;
      const Job job = std::move(jobs.front());
      jobs.pop_front();
      busy = true;
      lock.unlock();
      job();
      lock.lock();
      busy = false;
    }
  }
};

struct CUgraph_st {
  std::vector<Job> jobs;
};

struct CUgraphExec_st {
  std::vector<Job> jobs;
};

namespace tcpx {
namespace fake_nccl {

void Enqueue(cudaStream_t stream, Job job) {
  std::lock_guard<std::mutex> lock(stream->mutex);
  if (stream->capturing) {
    stream->captured.push_back(std::move(job));
  } else {
    stream->jobs.push_back(std::move(job));
    stream->wake.notify_one();
  }
}

}  // namespace fake_nccl
}  // namespace tcpx

using tcpx::fake_nccl::Enqueue;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const char* devices = getenv("FAKE_GPUS");
  *count = devices == nullptr ? 1 : atoi(devices);
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the stand-in"; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  strcpy(properties->name, "a stand-in");
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = malloc(bytes);
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  free(data);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  Enqueue(stream, [=] { memcpy(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  Enqueue(stream, [=] { memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  *stream = new CUstream_st;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    std::lock_guard<std::mutex> lock(stream->mutex);
    stream->stop = true;
    stream->wake.notify_one();
  }
  stream->thread.join();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(stream->mutex);
  return stream->busy || !stream->jobs.empty() ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  std::lock_guard<std::mutex> lock(stream->mutex);
  stream->capturing = true;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::lock_guard<std::mutex> lock(stream->mutex);
  stream->capturing = false;
  *graph = new CUgraph_st{std::move(stream->captured)};
  stream->captured.clear();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{graph->jobs};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  for (const Job& job : exec->jobs) Enqueue(stream, job);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}

}  // extern "C"
