// without_io_uring ERRNO COMMAND...: the command under a seccomp filter that ends io_uring's calls with ERRNO.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/plugin/lifetime/sandbox.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  tcpx::DenyIoUring(atoi(argv[1]));
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
