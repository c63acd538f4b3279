// program.h: runs a program that a test names in its data, and keeps what it says.
//
// Threads: any.
// Errors:  a program that cannot be started has no code and says nothing.
#pragma once

#include <string>

namespace tcpx {

// Where a file of the test's data lies; `path` is that in the project.
std::string Runfile(const std::string& path);

struct ProgramResult {
  int code = -1;  // -1: ended by a signal
  std::string output;
};

// Runs a line of the shell: output and errors together, nothing to read.
ProgramResult RunCommand(const std::string& command);

}  // namespace tcpx
