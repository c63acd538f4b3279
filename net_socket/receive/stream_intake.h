// stream_intake.h: how much of a lane's stream has come, and what a socket that was let go had left.
//
// Purpose: a lane is a stream of bytes, which outlives its sockets. Before a lane gets another socket, all that the old
//          one holds is read out: the count that the peer is told includes it, and the lane reads it first.
//
// Threads: one at a time.
// Units:   bytes.
// Errors:  Receive: as recvmsg(2).
#ifndef TCPX_NET_SOCKET_RECEIVE_STREAM_INTAKE_H_
#define TCPX_NET_SOCKET_RECEIVE_STREAM_INTAKE_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tcpx {

class StreamIntake {
 public:
  // Taken out of the stream so far, by whatever socket it came.
  uint64_t taken() const { return taken_; }
  // A read of the socket brought so many.
  void Took(size_t bytes) { taken_ += bytes; }
  // Reads `fd` out to its end; nothing that comes on it counts from here on. It is to be replaced.
  void Freeze(int fd);
  // Copies what an earlier socket had left into the places; 0: nothing is left.
  size_t ReadLeft(const iovec* iov, int count);
  // What comes next, without waiting.
  ssize_t Receive(int fd, iovec* iov, int count);

 private:
  uint64_t taken_ = 0;
  std::string left_;  // counted, and not read by the lane
  size_t read_ = 0;   // of it
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_RECEIVE_STREAM_INTAKE_H_
