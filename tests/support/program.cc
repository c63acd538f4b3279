#include "tests/support/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

namespace tcpx {

std::string Runfile(const std::string& path) {
  const char* root = getenv("TEST_SRCDIR");
  const char* workspace = getenv("TEST_WORKSPACE");
  return std::string(root == nullptr ? "." : root) + "/" + (workspace == nullptr ? "" : workspace) + "/" + path;
}

ProgramResult RunCommand(const std::string& command) {
  ProgramResult result;
  FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof(buffer), pipe)) result.output.append(buffer, got);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
}

}  // namespace tcpx
