// older_glibc: what lets a library or program that was linked with a new glibc load with an old one, down to 2.28.
// Purpose: the linker gives each symbol the newest version that the build machine's glibc has of it, and an older glibc
//          then refuses the whole library. What is defined here is in the file itself, hidden, so that it needs
//          none of them: functions that only got a new version go on to the old one, and those that are new are here.
//
// Threads: any.
// Errors:  as glibc's own.
// Source:  versions: the symbol tables of glibc 2.28 and 2.36. _dl_find_object: dlfcn.h, and what GCC's unwinder asks
//          of it (libgcc/unwind-dw2-fde-dip.c of GCC 12): where the object's table for exceptions is.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

// A jump: arguments and result are the caller's, and dlopen and dlsym see the caller's library.
#if defined(__x86_64__)
#define TCPX_JUMP(target) "jmp *" target "@GOTPCREL(%rip)\n"
#define TCPX_OLD_VERSION(x86_64, aarch64) x86_64
#elif defined(__aarch64__)
#define TCPX_JUMP(target) "b " target "\n"
#define TCPX_OLD_VERSION(x86_64, aarch64) aarch64
#else
#error "say here how to jump, and which versions glibc began with"
#endif

// `since`: of the old version, on x86-64.
#define TCPX_OLD_SYMBOL(name, since)                                                                  \
  asm(".pushsection .text." name ",\"ax\",%progbits\n.globl " name "\n.hidden " name "\n.type " name  \
      ",%function\n" name                                                                             \
      ":\n" TCPX_JUMP("tcpx_old_" name) ".size " name ", .-" name "\n.symver tcpx_old_" name "," name \
                                        "@" TCPX_OLD_VERSION(since, "GLIBC_2.17") "\n.popsection\n")

// In libpthread.so.0 and libdl.so.2 before 2.34, in libc.so.6 since.
TCPX_OLD_SYMBOL("__pthread_key_create", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("pthread_create", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("pthread_detach", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("pthread_getspecific", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("pthread_join", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("pthread_key_create", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("pthread_key_delete", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("pthread_mutex_trylock", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("pthread_once", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("pthread_setname_np", "GLIBC_2.12");
TCPX_OLD_SYMBOL("pthread_setspecific", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("dlerror", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("dlopen", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("dlsym", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("dlclose", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("dlinfo", "GLIBC_2.3.3");
// 2.32 and 2.29 gave them another version.
TCPX_OLD_SYMBOL("pthread_sigmask", "GLIBC_2.2.5");
TCPX_OLD_SYMBOL("log2", "GLIBC_2.2.5");

namespace tcpx {
namespace {

int StatAt(const char* path, void* status, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, status, flags));
}

#ifdef DLFO_EH_SEGMENT_TYPE
struct Wanted {
  uintptr_t address;
  dl_find_object* result;
};

// Not 0: this is the object.
int LookInto(dl_phdr_info* object, size_t, void* data) {
  auto* wanted = static_cast<Wanted*>(data);
  const ElfW(Phdr)* table = nullptr;
  const ElfW(Phdr)* holds = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && wanted->address - begin < part.p_memsz) holds = &part;
    if (part.p_type == DLFO_EH_SEGMENT_TYPE) table = &part;
  }
  if (holds == nullptr) return 0;
  if (table == nullptr) return -1;
  std::memset(wanted->result, 0, sizeof(*wanted->result));
  wanted->result->dlfo_map_start = reinterpret_cast<void*>(object->dlpi_addr + holds->p_vaddr);
  wanted->result->dlfo_map_end = reinterpret_cast<void*>(object->dlpi_addr + holds->p_vaddr + holds->p_memsz);
  wanted->result->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + table->p_vaddr);
  return 1;
}
#endif

}  // namespace

// They have other names here: the headers declare the real ones, each differently.
extern "C" {

// 2.32. Were it true, libstdc++ would count references without atomic instructions.
char OwnSingleThreaded asm("__libc_single_threaded") = 0;

// 2.33 made functions of them.
int OwnStat(const char* path, void* status) asm("stat");
int OwnStat(const char* path, void* status) { return StatAt(path, status, 0); }
int OwnLstat(const char* path, void* status) asm("lstat");
int OwnLstat(const char* path, void* status) { return StatAt(path, status, AT_SYMLINK_NOFOLLOW); }
int OwnFstat(int fd, void* status) asm("fstat");
int OwnFstat(int fd, void* status) { return static_cast<int>(syscall(SYS_fstat, fd, status)); }
int OwnFstat64(int fd, void* status) asm("fstat64");
int OwnFstat64(int fd, void* status) { return OwnFstat(fd, status); }

// 2.36. std::random_device's, which nothing of ours uses.
uint32_t OwnRandom() asm("arc4random");
uint32_t OwnRandom() {
  uint32_t value = 0;
  while (getrandom(&value, sizeof(value), 0) != sizeof(value)) {
    if (errno != EINTR) abort();  // As glibc does.
  }
  return value;
}

#ifdef DLFO_EH_SEGMENT_TYPE
// 2.35. What unwinders did before: through the list of objects, under the loader's lock.
int OwnFindObject(void* address, dl_find_object* result) asm("_dl_find_object");
int OwnFindObject(void* address, dl_find_object* result) {
  Wanted wanted{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(&LookInto, &wanted) == 1 ? 0 : -1;
}
#endif

}  // extern "C"

}  // namespace tcpx
