// secret_file.h: a file with a shared secret, for TCPX_SECRET_FILE.
//
// Threads: any. Errors: a folder that can't be written to shows when the plugin reads the file.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace tcpx {

// Its path. It is this process's alone: another one may be reading its own.
inline std::string SecretFile(const std::string& text = "correct horse battery staple", mode_t mode = 0600) {
  const char* const folder = getenv("TEST_TMPDIR");
  std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/secret." + std::to_string(getpid());
  std::ofstream(path) << text;
  (void)chmod(path.c_str(), mode);
  return path;
}

}  // namespace tcpx
