// A library that is linked as the plugin is, and throws.
#include <stdexcept>
#include <string>
#include <thread>

namespace {

// Counts the frames that are unwound.
struct Frame {
  explicit Frame(int* frames) : unwound(frames) {}
  ~Frame() { ++*unwound; }
  int* const unwound;
};

__attribute__((noinline)) void Descend(int depth, int* unwound) {
  const Frame frame(unwound);
  if (depth == 0) throw std::runtime_error("from the depth");
  Descend(depth - 1, unwound);
}

}  // namespace

extern "C" {

// How many of `depth` frames were unwound until the exception was caught; -1: it was another one.
__attribute__((visibility("default"))) int ThrowAndCatch(int depth) {
  int unwound = 0;
  try {
    Descend(depth - 1, &unwound);
  } catch (const std::exception& error) {
    return error.what() == std::string("from the depth") ? unwound : -1;
  }
  return -1;
}

// The same in a thread that the library starts.
__attribute__((visibility("default"))) int ThrowInThread(int depth) {
  int unwound = -1;
  std::thread([&] { unwound = ThrowAndCatch(depth); }).join();
  return unwound;
}

}  // extern "C"
