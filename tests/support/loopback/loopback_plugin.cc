// loopback_plugin.so: the simplest network plugin that is correct, and on request with one chosen fault.
//
// Purpose: what net_bench is tested with. One blocking-free TCP socket per connection, an 8-byte length before each
//          message, everything moved by the caller. Only v12 is exported.
//
//   LOOPBACK_FAULT=KIND:N  spoils what happens with the N-th finished receive of this process (from 0):
//     flip      one byte in the middle of the message is inverted     skip      the message's last byte is left out
//     overrun   one byte after the message is written                 underrun  one byte before the buffer is written
//     size      test reports one byte too few                         error     test returns ncclSystemError
//     hang      test says "not yet" for ever                          block     test does not return
//     crash     the process dies of SIGKILL
//   LOOPBACK_FAULT=init | connect: init fails, respectively connect stays "not yet" for ever.
//
// Threads: as NCCL calls it; one driver per comm, no lock.
// Units:   bytes.
// Errors:  ncclSystemError for the local kernel, ncclRemoteError when the peer is gone, ncclInvalidUsage for a message
//          that does not fit.
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <string>

#include "nccl/net_tables.h"

namespace {

constexpr int kRequestsMax = NCCL_NET_MAX_REQUESTS;

ncclDebugLogger_t the_log = nullptr;
int the_finished_receives = 0;

struct Comm;

struct Request {
  Comm* comm = nullptr;
  uint8_t* data = nullptr;
  uint64_t header = 0;  // the message's length, as it travels
  size_t capacity = 0;  // of the buffer
  size_t moved = 0;     // header included
};

struct Comm {
  int fd = -1;
  bool sends = false;
  Request requests[kRequestsMax];
  uint64_t posted = 0;
  uint64_t moved = 0;  // messages complete on the socket
  uint64_t tested = 0;
};

struct Handle {
  sockaddr_in address;
  int dialling;  // the socket of a connect under way, plus one
};

bool FaultIs(const char* kind) {
  const char* fault = getenv("LOOPBACK_FAULT");
  return fault != nullptr && std::string(fault) == kind;
}

// The kind of fault that is due for receive number `number`, or "".
std::string FaultFor(int number) {
  const char* fault = getenv("LOOPBACK_FAULT");
  const char* colon = fault == nullptr ? nullptr : strchr(fault, ':');
  if (colon == nullptr || atoi(colon + 1) != number) return "";
  return std::string(fault, colon);
}

ncclResult_t Warn(const char* what) {
  const int err = errno;
  if (the_log != nullptr) the_log(NCCL_LOG_WARN, ~0ul, __FILE__, __LINE__, "loopback: %s: %s", what, strerror(err));
  return ncclSystemError;
}

ncclResult_t Init(void** ctx, uint64_t, ncclNetCommConfig_v12_t*, ncclDebugLogger_t log, ncclProfilerCallback_t) {
  the_log = log;
  if (FaultIs("init")) return Warn("init fails because LOOPBACK_FAULT says so");
  *ctx = &the_finished_receives;
  log(NCCL_LOG_INFO, NCCL_INIT | NCCL_NET, __FILE__, __LINE__, "loopback: engine %s, mode caller-driven", "poll");
  return ncclSuccess;
}

ncclResult_t Finalize(void*) { return ncclSuccess; }

ncclResult_t Devices(int* count) {
  *count = 1;
  return ncclSuccess;
}

ncclResult_t GetProperties(int, ncclNetProperties_v12_t* props) {
  static char name[] = "lo";
  *props = {};
  props->name = name;
  props->ptrSupport = NCCL_PTR_HOST;
  props->speed = 10000;
  props->maxComms = 65536;
  props->maxRecvs = 1;
  props->netDeviceType = NCCL_NET_DEVICE_HOST;
  props->vProps.ndevs = 1;
  props->maxP2pBytes = NCCL_MAX_NET_SIZE_BYTES;
  props->maxCollBytes = NCCL_MAX_NET_SIZE_BYTES;
  props->maxMultiRequestSize = 1;
  props->railId = NCCL_NET_ID_UNDEF;
  props->planeId = NCCL_NET_ID_UNDEF;
  return ncclSuccess;
}

ncclResult_t Listen(void*, int, void* handle, void** listen_comm) {
  Handle h = {};
  h.address.sin_family = AF_INET;
  h.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(h.address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&h.address), length) != 0 || listen(fd, 16) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&h.address), &length) != 0) {
    return Warn("listen");
  }
  memcpy(handle, &h, sizeof(h));
  *listen_comm = new int(fd);
  return ncclSuccess;
}

Comm* NewComm(int fd, bool sends) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  Comm* comm = new Comm;
  comm->fd = fd;
  comm->sends = sends;
  return comm;
}

ncclResult_t Connect(void*, int, void* handle, void** send_comm, ncclNetDeviceHandle_v12_t**) {
  *send_comm = nullptr;
  if (FaultIs("connect")) return ncclSuccess;
  Handle h;
  memcpy(&h, handle, sizeof(h));
  if (h.dialling == 0) h.dialling = 1 + socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  memcpy(handle, &h, sizeof(h));
  const int fd = h.dialling - 1;
  if (fd < 0) return Warn("socket");
  if (connect(fd, reinterpret_cast<sockaddr*>(&h.address), sizeof(h.address)) != 0 && errno != EISCONN) {
    return errno == EINPROGRESS || errno == EALREADY ? ncclSuccess : Warn("connect");
  }
  *send_comm = NewComm(fd, /*sends=*/true);
  return ncclSuccess;
}

ncclResult_t Accept(void* listen_comm, void** recv_comm, ncclNetDeviceHandle_v12_t**) {
  *recv_comm = nullptr;
  const int fd = accept4(*static_cast<int*>(listen_comm), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return errno == EAGAIN ? ncclSuccess : Warn("accept");
  *recv_comm = NewComm(fd, /*sends=*/false);
  return ncclSuccess;
}

ncclResult_t RegMr(void*, void*, size_t, int, void** mhandle) {
  *mhandle = nullptr;
  return ncclSuccess;
}

ncclResult_t DeregMr(void*, void*) { return ncclSuccess; }

// Header and payload, from the request's position on.
int Pieces(Request* r, iovec* pieces) {
  const size_t header_left = r->moved < sizeof(r->header) ? sizeof(r->header) - r->moved : 0;
  const size_t payload_moved = r->moved - (sizeof(r->header) - header_left);
  int count = 0;
  if (header_left > 0) pieces[count++] = {reinterpret_cast<uint8_t*>(&r->header) + r->moved, header_left};
  // A receiver doesn't know the length before it has the header, and reads nothing of what follows the message.
  const bool payload = r->comm->sends || header_left == 0;
  if (payload && r->header > payload_moved) pieces[count++] = {r->data + payload_moved, r->header - payload_moved};
  return count;
}

bool Complete(const Request& r) { return r.moved >= sizeof(r.header) && r.moved - sizeof(r.header) == r.header; }

// Moves what it can of the oldest incomplete request.
ncclResult_t Progress(Comm* comm) {
  while (comm->moved < comm->posted) {
    Request* r = &comm->requests[comm->moved % kRequestsMax];
    while (!Complete(*r)) {
      iovec pieces[2];
      const int count = Pieces(r, pieces);
      const ssize_t moved = comm->sends ? writev(comm->fd, pieces, count) : readv(comm->fd, pieces, count);
      if (moved < 0 && errno == EAGAIN) return ncclSuccess;
      if (moved <= 0) {
        Warn(comm->sends ? "send" : "receive");
        return ncclRemoteError;
      }
      r->moved += static_cast<size_t>(moved);
      if (!comm->sends && r->moved >= sizeof(r->header) && r->header > r->capacity) return ncclInvalidUsage;
    }
    ++comm->moved;
  }
  return ncclSuccess;
}

ncclResult_t Post(Comm* comm, void* data, size_t bytes, void** request) {
  *request = nullptr;
  if (comm->posted - comm->tested == kRequestsMax) return ncclSuccess;
  Request* r = &comm->requests[comm->posted % kRequestsMax];
  *r = {};
  r->comm = comm;
  r->data = static_cast<uint8_t*>(data);
  r->header = comm->sends ? bytes : 0;
  r->capacity = bytes;
  ++comm->posted;
  *request = r;
  return comm->sends ? Progress(comm) : ncclSuccess;
}

ncclResult_t Isend(void* send_comm, void* data, size_t size, int, void*, void*, void** request) {
  return Post(static_cast<Comm*>(send_comm), data, size, request);
}

ncclResult_t Irecv(void* recv_comm, int, void** data, size_t* sizes, int*, void**, void**, void** request) {
  return Post(static_cast<Comm*>(recv_comm), data[0], sizes[0], request);
}

ncclResult_t Iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return ncclSuccess;
}

// Spoils a receive that is about to be reported.
ncclResult_t Spoil(const std::string& fault, Request* r, int* done, int* sizes) {
  if (fault == "flip" && r->header > 0) r->data[r->header / 2] ^= 0xff;
  if (fault == "skip" && r->header > 0) r->data[r->header - 1] = static_cast<uint8_t>(~r->data[r->header - 1]);
  if (fault == "overrun") r->data[r->header] ^= 0xff;
  if (fault == "underrun") r->data[-1] ^= 0xff;
  if (fault == "size" && sizes != nullptr) --sizes[0];
  if (fault == "crash") raise(SIGKILL);
  if (fault == "error") return ncclSystemError;
  if (fault == "hang") *done = 0;
  while (fault == "block") pause();
  return ncclSuccess;
}

ncclResult_t Test(void* request, int* done, int* sizes) {
  Request* r = static_cast<Request*>(request);
  Comm* comm = r->comm;
  *done = 0;
  const ncclResult_t result = Progress(comm);
  if (result != ncclSuccess || !Complete(*r)) return result;
  *done = 1;
  if (sizes != nullptr) sizes[0] = static_cast<int>(r->header);
  if (!comm->sends) {
    const ncclResult_t spoiled = Spoil(FaultFor(the_finished_receives), r, done, sizes);
    if (spoiled != ncclSuccess || *done == 0) return spoiled;
    ++the_finished_receives;
  }
  ++comm->tested;
  return ncclSuccess;
}

// A sender holds no unread data, so close sends what is left.
ncclResult_t CloseComm(void* comm) {
  close(static_cast<Comm*>(comm)->fd);
  delete static_cast<Comm*>(comm);
  return ncclSuccess;
}

ncclResult_t CloseListen(void* listen_comm) {
  close(*static_cast<int*>(listen_comm));
  delete static_cast<int*>(listen_comm);
  return ncclSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ncclNet_v12_t ncclNetPlugin_v12 = {
    "loopback", Init,   Devices, GetProperties, Listen,    Connect,     Accept,  RegMr,   nullptr, DeregMr,  Isend,
    Irecv,      Iflush, Test,    CloseComm,     CloseComm, CloseListen, nullptr, nullptr, nullptr, Finalize, nullptr,
};
