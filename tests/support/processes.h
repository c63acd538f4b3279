// processes.h: the two ends of a test in processes of their own.
//
// Purpose: the library under test reads its environment once, has threads, and some tests end a process on purpose. So
//          the process of the tests forks for every case and never loads the library itself.
// Use:     std::string wrong = RunTogether(
//              [](Control& peer) { peer.Tell('a'); },
//              [](Control& peer) { peer.Await('a'); });
//          EXPECT_EQ("", wrong);
// Threads: RunTogether by a process with one thread.
// Errors:  inside a body TCPX_REQUIRE prints what was wrong and ends the process; RunTogether returns it in words. A
//          process that is still there after the limit is killed and counts as hung.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/support/seed.h"

namespace tcpx {

// Far above what any case takes, sanitizers on a loaded machine included.
inline const absl::Duration kHungAfter = Patience() * absl::Seconds(60);

// Ends the process as a kill does, with that exit code. No sanitizer looks at it any more: the thread sanitizer sleeps
// for a second at an _exit, and calls a thread that ends meanwhile a leak.
[[noreturn]] void QuickExit(int code = 0);

// Prints and ends the process with exit code 1, at once.
[[noreturn]] void Die(const char* file, int line, const std::string& what);

#define TCPX_REQUIRE(ok, ...) \
  if (!(ok)) ::tcpx::Die(__FILE__, __LINE__, absl::StrCat(#ok " is false ", ##__VA_ARGS__))

// A pipe to the other process. Every wait ends the process when the other one has gone.
class Control {
 public:
  explicit Control(int fd) : fd_(fd) {}

  void Send(const void* data, size_t bytes);
  void Receive(void* data, size_t bytes);
  void Tell(char word) { Send(&word, 1); }
  void Await(char word);
  // True exactly when something waits to be received, or the other process has gone.
  bool Rings() const;

 private:
  const int fd_;
};

using Body = std::function<void(Control& peer)>;

// Runs each body in a child of its own, which ends by exit(0) when its body returns. Empty when both did so.
std::string RunTogether(const Body& one, const Body& other, absl::Duration limit = kHungAfter);
std::string RunAlone(const std::function<void()>& body, absl::Duration limit = kHungAfter);

// Runs each in a child of its own, all at the same time. Empty when none of them has said that something is wrong.
std::string RunBeside(const std::vector<std::function<std::string()>>& runs, absl::Duration limit = 2 * kHungAfter);

// Exit code of a child of a child, or -1 when it was killed or hung.
int ExitCodeOf(int pid, absl::Duration limit);

}  // namespace tcpx
