// consumer.h: a profiler that keeps a plugin's network events and finds fault with those that NCCL does not allow.
//
// Purpose: rebuilds from the events alone how many bytes each request moved over each socket. A test takes a parent for
//          each request, says when a thread of its is inside isend, irecv or test, and when a request is over.
//
//   Consumer::Reset(Reading::kUpdates);
//   void* parent = Consumer::NewParent();
//   { Consumer::Inside inside; net.Isend(..., parent, &request); }
//   Consumer::Over(parent);
//   Consumer::Moved(parent)  // {fd, bytes}
// Threads: any; there is one consumer per process, because NCCL's callback is a plain function.
// Units:   bytes.
// Errors:  Faults lists what was wrong, in words.
// Source:  NCCL 2.26 to 2.30.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "nccl/net_types.h"

namespace tcpx {

class Consumer {
 public:
  enum class Reading {
    kUpdates,    // NCCL 2.27.3 and later
    kStopOnly,   // 2.26: every type but start is a stop, and the data of a stop is not read
    kNotWanted,  // the profiler does not look at network events: handles stay null
  };

  struct Event {
    int fd = -1;
    int op = -1;  // 0 send, 1 receive
    size_t bytes = 0;
    bool stopped = false;
  };

  // The calling thread is in isend, irecv or test.
  class Inside {
   public:
    Inside();
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };

  static void Reset(Reading reading);
  static ncclProfilerCallback_t Callback();

  static void* NewParent();
  // The request was reported done: all its events must have stopped, and none may come.
  static void Over(void* parent);
  static std::vector<Event> Events(void* parent);
  // Bytes by fd.
  static std::map<int, size_t> Moved(void* parent);
  // Calls of the callback so far.
  static size_t Calls();
  static std::vector<std::string> Faults();
};

size_t Sum(const std::map<int, size_t>& moved);
// The lanes of both ends by one name: the dialling side's port. Fails the test where an fd is no lane. Where the
// sockets die meanwhile (pair.h), no name lasts: lanes are numbered by what they moved.
std::map<int, size_t> ByPort(const std::map<int, size_t>& moved, bool receive);

}  // namespace tcpx
