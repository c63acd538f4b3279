// older_start.cc: what lets a program that was linked with a new glibc start with an old one, down to 2.28.
// Purpose: since glibc 2.34 the object that calls main asks for a __libc_start_main of that version, and leaves it to
//          glibc to find the program's constructors. Here is one that takes the old version, which every glibc has,
//          and gives it a function that runs them, as programs had one before.
//
// Threads: before main. Errors: as glibc's own.
// Source:  csu/elf-init.c of glibc before 2.34 says what that function does; csu/libc-start.c since, that it is called
//          instead of glibc's own look.
#include <cstddef>

#if defined(__x86_64__)
#define TCPX_START_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define TCPX_START_VERSION "GLIBC_2.17"
#else
#error "say here which version glibc began with"
#endif

asm(".symver tcpx_old_start,__libc_start_main@" TCPX_START_VERSION);

extern "C" {

using Main = int(int, char**, char**);
using Constructor = void(int, char**, char**);

// The linker's.
extern Constructor* __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((visibility("hidden")));
void _init();

int tcpx_old_start(Main* main, int argc, char** argv, Constructor* init, void (*fini)(), void (*rtld_fini)(),
                   void* stack);

static void RunConstructors(int argc, char** argv, char** environment) {
  // There are no others: a program of ours has no .preinit_array, and the loader would run it.
  _init();
  const size_t count = static_cast<size_t>(__init_array_end - __init_array_start);
  for (size_t i = 0; i < count; ++i) __init_array_start[i](argc, argv, environment);
}

__attribute__((visibility("hidden"))) int OwnStart(Main* main, int argc, char** argv, Constructor*, void (*)(),
                                                   void (*rtld_fini)(), void* stack) asm("__libc_start_main");
int OwnStart(Main* main, int argc, char** argv, Constructor*, void (*)(), void (*rtld_fini)(), void* stack) {
  return tcpx_old_start(main, argc, argv, &RunConstructors, nullptr, rtld_fini, stack);
}

}  // extern "C"
