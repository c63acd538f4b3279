// The exported tables of libnccl-profiler-tcpx.so.
#include "profiler/session.h"

namespace tcpx {
namespace {

ncclResult_t InitV4(void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks, int rank,
                    ncclDebugLogger_t logger) {
  return Session::Begin(context, mask, 4, {id, name, nodes, ranks, rank, logger});
}

template <int kVersion>
ncclResult_t Init(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
                  ncclDebugLogger_t logger) {
  return Session::Begin(context, mask, kVersion, {id, name, nodes, ranks, rank, logger});
}

template <typename Descriptor>
ncclResult_t Start(void* context, void** handle, Descriptor* event) {
  return static_cast<Session*>(context)->Start(handle, Widened(*event));
}

}  // namespace
}  // namespace tcpx

extern "C" {

#pragma GCC visibility push(default)
using tcpx::Session;
ncclProfiler_v4_t ncclProfiler_v4 = {"tcpx", tcpx::InitV4, tcpx::Start, Session::Stop, Session::Note, Session::End};
ncclProfiler_v5_t ncclProfiler_v5 = {"tcpx", tcpx::Init<5>, tcpx::Start, Session::Stop, Session::Note, Session::End};
ncclProfiler_v6_t ncclProfiler_v6 = {"tcpx", tcpx::Init<6>, tcpx::Start, Session::Stop, Session::Note, Session::End};
#pragma GCC visibility pop

}  // extern "C"
