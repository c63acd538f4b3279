// fake_nccl.cc: a stand-in for NCCL whose ranks exchange files in a folder that the unique id names.
//
// An operation has a number in its communicator. Each rank writes what it gives, then a file without content that says
// so, waits for those of all, and computes its result. As with NCCL, an operation whose peer died or aborted never ends
// by itself: the communicator has an error, and ncclCommAbort ends it.
//
// A put is a file with a negative number, and the rank that waits for its signal copies it into the window.
//
// FAKE_FAULT: flip (one result is wrong), flip_puts (a byte of each put is), late (results only at first), hang (the
// third operation never ends), socket and memory (the log says so), other_puts (it names another plugin for puts).
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/nccl_bench/data_type.h"
#include "tests/support/fake_nccl/fake_runtime.h"

using tcpx::nccl_bench::DataType;
using tcpx::nccl_bench::DataTypeBytes;
using tcpx::nccl_bench::LoadElement;
using tcpx::nccl_bench::StoreElement;

struct ncclComm {
  std::string folder;
  int rank = 0;
  int ranks = 1;
  int operation = 0;  // the thread that runs operations
  std::vector<pid_t> pids;
  std::atomic<bool> aborted{false};
  std::atomic<int> error{ncclSuccess};
  std::atomic<int> unfinished{0};  // jobs that may still touch it
  char* window = nullptr;
  std::map<int, int> puts;   // by peer, how many; the thread that runs operations
  std::map<int, int> waits;  // the same
};

namespace {

using Parts = std::map<int, std::string>;  // by receiver; -1: all

bool Fault(const char* name) {
  const char* fault = getenv("FAKE_FAULT");
  return fault != nullptr && strcmp(fault, name) == 0;
}

std::string PathOf(const ncclComm& comm, int operation, int from, int to) {
  return comm.folder + "/" + std::to_string(operation) + "." + std::to_string(from) + "." + std::to_string(to);
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// The receiver's value for "all is written".
constexpr int kDone = -2;

// False when it was aborted.
bool Await(ncclComm* comm, int operation, int peer) {
  while (!Exists(PathOf(*comm, operation, peer, kDone)) || (Fault("hang") && operation > 2)) {
    if (comm->aborted) return false;
    const bool dead = !comm->pids.empty() && kill(comm->pids[static_cast<size_t>(peer)], 0) != 0;
    if (dead || Exists(comm->folder + "/aborted." + std::to_string(peer))) comm->error = ncclRemoteError;
    usleep(500);
  }
  return true;
}

// Gives `parts`, and waits for those of all ranks. Returns the number of the operation, or -1 when it was aborted.
int Exchange(ncclComm* comm, const Parts& parts) {
  const int operation = comm->operation++;
  for (const auto& part : parts) WriteFile(PathOf(*comm, operation, comm->rank, part.first), part.second);
  WriteFile(PathOf(*comm, operation, comm->rank, kDone), "");
  for (int peer = 0; peer < comm->ranks; ++peer) {
    if (!Await(comm, operation, peer)) return -1;
  }
  // Everybody has begun this one, and so has read what belongs to the one before.
  for (int to = kDone; operation > 0 && to < comm->ranks; ++to) {
    unlink(PathOf(*comm, operation - 1, comm->rank, to).c_str());
  }
  return operation;
}

std::string PartFrom(const ncclComm& comm, int operation, int from, int to = -1) {
  return ReadFile(PathOf(comm, operation, from, to));
}

DataType TypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return DataType::kHalf;
    case ncclBfloat16:
      return DataType::kBfloat16;
    case ncclInt8:
      return DataType::kInt8;
    default:
      return DataType::kFloat;
  }
}

void Combine(DataType type, ncclRedOp_t op, const std::string& other, std::string* result) {
  for (size_t i = 0; i < result->size() / DataTypeBytes(type); ++i) {
    const double a = LoadElement(type, result->data(), i);
    const double b = LoadElement(type, other.data(), i);
    StoreElement(type, &(*result)[0], i, op == ncclSum ? a + b : op == ncclMin ? std::min(a, b) : std::max(a, b));
  }
}

std::string Text(const void* data, size_t bytes) { return std::string(static_cast<const char*>(data), bytes); }

// For the fault "late": no later operation has a result.
constexpr int kLastDelivered = 5;

void Deliver(int operation, std::string result, void* to) {
  if (Fault("late") && operation > kLastDelivered) return;
  if (Fault("flip") && !result.empty()) result[result.size() / 2 | (result.size() > 1 ? 1 : 0)] ^= 0x40;
  memcpy(to, result.data(), result.size());
}

// Runs `job` on the stream unless the communicator is aborted by then.
template <class Job>
ncclResult_t Give(ncclComm_t comm, cudaStream_t stream, Job job) {
  ++comm->unfinished;
  // A graph may hold the job longer than the communicator lives, but it is launched only before.
  auto once = std::make_shared<bool>(true);
  tcpx::fake_nccl::Enqueue(stream, [=] {
    if (!comm->aborted) job();
    if (std::exchange(*once, false)) --comm->unfinished;
  });
  return ncclSuccess;
}

// All give `bytes` of `send`; `use` makes the result of what they gave.
template <class Use>
ncclResult_t Collect(const void* send, size_t bytes, void* receive, ncclComm_t comm, cudaStream_t stream, Use use) {
  return Give(comm, stream, [=] {
    const int operation = Exchange(comm, {{-1, Text(send, bytes)}});
    if (operation < 0) return;
    std::vector<std::string> all;
    for (int peer = 0; peer < comm->ranks; ++peer) all.push_back(PartFrom(*comm, operation, peer));
    const std::string result = use(all);
    if (!result.empty()) Deliver(operation, result, receive);
  });
}

std::string Reduced(const std::vector<std::string>& all, ncclDataType_t type, ncclRedOp_t op) {
  std::string result = all[0];
  for (size_t i = 1; i < all.size(); ++i) Combine(TypeOf(type), op, all[i], &result);
  return result;
}

void Log(const ncclComm& comm) {
  const char* path = getenv("NCCL_DEBUG_FILE");
  const char* net = Fault("socket") ? "Socket" : getenv("NCCL_NET");
  if (path == nullptr || net == nullptr) return;
  std::ofstream log(path, std::ios::app);
  log << "NCCL INFO Using network " << net << "\n";
  log << "NCCL INFO RMA/Plugin: Assigned plugin " << (Fault("other_puts") ? "RMA_IB" : net) << " to comm\n";
  const int next = (comm.rank + 1) % comm.ranks;
  log << "NCCL INFO Channel 00/0 : " << comm.rank << "[0] -> " << next << "[0] [send] via ";
  log << (Fault("memory") ? std::string("SHM/direct") : "NET/" + std::string(net) + "/0") << "\n";
}

ncclComm_t Open(const std::string& folder, int rank, int ranks) {
  ncclComm_t comm = new ncclComm;
  comm->folder = folder;
  comm->rank = rank;
  comm->ranks = ranks;
  mkdir(folder.c_str(), 0700);
  const int operation = Exchange(comm, {{-1, std::to_string(getpid())}});
  for (int peer = 0; peer < ranks; ++peer) comm->pids.push_back(atoi(PartFrom(*comm, operation, peer).c_str()));
  return comm;
}

struct PointToPoint {
  bool sends;
  char* data;
  size_t bytes;
  int peer;
};
std::vector<PointToPoint> group;  // of the one thread that uses NCCL
ncclComm_t group_comm = nullptr;
cudaStream_t group_stream = nullptr;

ncclResult_t AddToGroup(PointToPoint part, ncclComm_t comm, cudaStream_t stream) {
  group.push_back(part);
  group_comm = comm;
  group_stream = stream;
  return ncclSuccess;
}

void RunGroup(ncclComm_t comm, const std::vector<PointToPoint>& parts) {
  Parts sent;
  for (const PointToPoint& part : parts) {
    if (part.sends) sent[part.peer] = Text(part.data, part.bytes);
  }
  const int operation = Exchange(comm, sent);
  for (const PointToPoint& part : parts) {
    if (operation >= 0 && !part.sends) Deliver(operation, PartFrom(*comm, operation, part.peer, comm->rank), part.data);
  }
}

void TakePut(ncclComm* comm, int from) {
  const std::string path = PathOf(*comm, -1 - comm->waits[from]++, from, comm->rank);
  for (; !Exists(path); usleep(200)) {
    if (comm->aborted) return;
  }
  std::string put = ReadFile(path);
  unlink(path.c_str());
  size_t offset = 0;
  memcpy(&offset, put.data(), sizeof(offset));
  if (Fault("flip_puts")) put[sizeof(offset) + 1] ^= 0x40;
  memcpy(comm->window + offset, put.data() + sizeof(offset), put.size() - sizeof(offset));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t) { return "an error of the stand-in"; }
const char* ncclGetLastError(ncclComm_t) { return "no more is known"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const char* base = getenv("TMPDIR");
  snprintf(id->internal, sizeof(id->internal), "%s/fake_nccl.XXXXXX", base == nullptr ? "/tmp" : base);
  return mkdtemp(id->internal) == nullptr ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
  *comm = Open(id.internal, rank, ranks);
  Log(**comm);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* result, ncclConfig_t*) {
  const int operation = Exchange(comm, {{-1, std::to_string(color) + " " + std::to_string(key)}});
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int peer = 0; peer < comm->ranks; ++peer) {
    std::istringstream text(PartFrom(*comm, operation, peer));
    int their_color = 0;
    int their_key = 0;
    text >> their_color >> their_key;
    if (their_color == color) members.emplace_back(their_key, peer);
  }
  *result = nullptr;
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  std::sort(members.begin(), members.end());
  const auto self = std::find(members.begin(), members.end(), std::make_pair(key, comm->rank));
  const std::string folder = comm->folder + "/split" + std::to_string(operation) + "." + std::to_string(color);
  *result = Open(folder, static_cast<int>(self - members.begin()), static_cast<int>(members.size()));
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) { return *count = comm->ranks, ncclSuccess; }
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) { return *rank = comm->rank, ncclSuccess; }

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = static_cast<ncclResult_t>(comm->error.load());
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  while (comm->unfinished > 0) usleep(500);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  WriteFile(comm->folder + "/aborted." + std::to_string(comm->rank), "");
  comm->aborted = true;
  return ncclCommDestroy(comm);
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return Collect(send, count * DataTypeBytes(TypeOf(type)), receive, comm, stream,
                 [=](const std::vector<std::string>& all) { return Reduced(all, type, op); });
}

ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return Collect(
      send, count * DataTypeBytes(TypeOf(type)), receive, comm, stream,
      [=](const std::vector<std::string>& all) { return comm->rank == root ? Reduced(all, type, op) : std::string(); });
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return Collect(send, count * DataTypeBytes(TypeOf(type)), receive, comm, stream,
                 [=](const std::vector<std::string>& all) { return all[static_cast<size_t>(root)]; });
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return Collect(send, count * DataTypeBytes(TypeOf(type)), receive, comm, stream,
                 [](const std::vector<std::string>& all) {
                   std::string result;
                   for (const std::string& part : all) result += part;
                   return result;
                 });
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * DataTypeBytes(TypeOf(type));
  return Collect(send, bytes * static_cast<size_t>(comm->ranks), receive, comm, stream,
                 [=](const std::vector<std::string>& all) {
                   return Reduced(all, type, op).substr(bytes * static_cast<size_t>(comm->rank), bytes);
                 });
}

ncclResult_t ncclMemAlloc(void** data, size_t bytes) {
  return (*data = calloc(bytes, 1)) == nullptr ? ncclSystemError : ncclSuccess;
}
ncclResult_t ncclMemFree(void* data) { return free(data), ncclSuccess; }

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* data, size_t, ncclWindow_t* window, int) {
  comm->window = static_cast<char*>(data);
  *window = static_cast<ncclWindow_t>(data);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t) { return ncclSuccess; }

ncclResult_t ncclPutSignal(const void* from, size_t count, ncclDataType_t, int peer, void*, size_t offset, int, int,
                           unsigned, ncclComm_t comm, cudaStream_t stream) {
  return Give(comm, stream, [=] {
    const std::string path = PathOf(*comm, -1 - comm->puts[peer]++, comm->rank, peer);
    WriteFile(path + ".part", Text(&offset, sizeof(offset)) + Text(from, count));
    (void)rename((path + ".part").c_str(), path.c_str());
  });
}

// `waits`: ncclWaitSignalDesc_t, which begins with how often and for whom.
ncclResult_t ncclWaitSignal(int count, const std::array<int, 4>* waits, ncclComm_t comm, cudaStream_t stream) {
  const std::vector<std::array<int, 4>> all(waits, waits + count);
  return Give(comm, stream, [=] {
    for (const auto& wait : all) {
      for (int i = 0; i < wait[0]; ++i) TakePut(comm, wait[1]);
    }
  });
}

ncclResult_t ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  const size_t bytes = count * DataTypeBytes(TypeOf(type));
  const size_t own = bytes * static_cast<size_t>(comm->rank);
  return Collect(send, bytes * static_cast<size_t>(comm->ranks), receive, comm, stream,
                 [=](const std::vector<std::string>& all) {
                   std::string result;
                   for (const std::string& part : all) result += part.substr(own, bytes);
                   return result;
                 });
}

ncclResult_t ncclGroupStart() { return ncclSuccess; }

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  char* bytes = const_cast<char*>(static_cast<const char*>(data));
  return AddToGroup({true, bytes, count * DataTypeBytes(TypeOf(type)), peer}, comm, stream);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return AddToGroup({false, static_cast<char*>(data), count * DataTypeBytes(TypeOf(type)), peer}, comm, stream);
}

ncclResult_t ncclGroupEnd() {
  if (group.empty()) return ncclSuccess;
  const ncclComm_t comm = group_comm;
  const std::vector<PointToPoint> parts = std::exchange(group, {});
  return Give(comm, group_stream, [=] { RunGroup(comm, parts); });
}

}  // extern "C"
