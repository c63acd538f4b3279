// Prints docs/parameters.md.
#include <stdio.h>

#include "tools/parameters/pages.h"

int main() {
  const std::string text = tcpx::ParametersMarkdown();
  const bool written = fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0;
  return written ? 0 : 1;
}
