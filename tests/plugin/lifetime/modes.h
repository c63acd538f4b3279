// modes.h: the ways in which the plugin moves bytes, as parameters of a test.
//
// Threads: Apply changes the environment: before the library is opened, in a process with one thread.
// Errors:  MissingHere says why a mode can't run on this machine; a test then skips with that text.
#ifndef TCPX_TESTS_PLUGIN_LIFETIME_MODES_H_
#define TCPX_TESTS_PLUGIN_LIFETIME_MODES_H_

#include <string>
#include <vector>

namespace tcpx {

struct Mode {
  const char* name;
  const char* threads;
  const char* engine;
  int lanes;
  const char* zero_copy;

  void Apply() const;
  // Empty when the mode works here.
  std::string MissingHere() const;
};

// {caller-driven, io_uring pool of 2, epoll pool of 2} x {1, 4 lanes}, and io_uring without copies over 4 lanes.
std::vector<Mode> AllModes();
// Those with 4 lanes.
std::vector<Mode> ModesWithBulkLanes();

// For GoogleTest's names and messages.
std::string NameOf(const Mode& mode);
void PrintTo(const Mode& mode, std::ostream* out);

}  // namespace tcpx

#endif  // TCPX_TESTS_PLUGIN_LIFETIME_MODES_H_
