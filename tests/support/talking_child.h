// talking_child.h: a forked child, and what it writes to its standard error.
//
// Threads: one.
// Errors:  what a healthy kernel does not refuse ends the process (TCPX_REQUIRE).
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "tests/support/lost_threads.h"
#include "tests/support/processes.h"

namespace tcpx {

class TalkingChild {
 public:
  explicit TalkingChild(const std::function<void()>& body) {
    int ends[2];
    TCPX_REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      ThreadsAreLost();
      dup2(ends[1], STDERR_FILENO);
      body();
      _exit(0);
    }
    close(ends[1]);
    read_end_ = ends[0];
  }

  pid_t pid() const { return pid_; }
  // To its end.
  std::string Text() {
    std::string text;
    char piece[4096];
    for (ssize_t got; (got = read(read_end_, piece, sizeof(piece))) > 0;) text.append(piece, static_cast<size_t>(got));
    close(read_end_);
    return text;
  }

 private:
  pid_t pid_ = -1;
  int read_end_ = -1;
};

}  // namespace tcpx
