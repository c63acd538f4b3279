// The shared library's life: the one plugin object, its end, and what becomes of it in a forked child.
#include <pthread.h>

#include <atomic>
#include <new>

#include "common/fd.h"
#include "common/log.h"
#include "common/mutex.h"
#include "nccl/plugin_api.h"
#include "nccl/rma_api.h"
#include "net_socket/plugin/plugin.h"
#include "net_socket/plugin/refused_rma.h"
#include "net_socket/rma/rma.h"

#ifdef TCPX_OWN_LIBSTDCXX
// libstdc++ keeps 72 KiB for exceptions that are thrown when memory is short, and frees them only when asked. Hidden:
// those of the copy that is linked in. Null where that has no such function (before GCC 6).
namespace __gnu_cxx {
__attribute__((weak, visibility("hidden"))) void __freeres();
}  // namespace __gnu_cxx
#endif

namespace tcpx {
namespace {

// Where the two objects are, which are never destroyed: at exit a thread may call at any time, and is refused.
alignas(Plugin) char g_plugin_place[sizeof(Plugin)];
alignas(Rma) char g_rma_place[sizeof(Rma)];
std::atomic<Plugin*> g_plugin{nullptr};
std::atomic<Rma*> g_rma{nullptr};
bool g_forked = false;  // this process is a child of one that used the library
bool g_in_use = false;  // after the end: threads may be inside

void DisableInForkedChild() {
  Plugin* plugin = g_plugin.load(std::memory_order_relaxed);
  if (plugin == nullptr) return;
  g_forked = true;
  g_rma.store(nullptr, std::memory_order_relaxed);  // Its thread is not here.
  CloseAllOwnedFdsInChild();
  plugin->DisableInChild();
  SetLogSink(nullptr);  // NCCL's logger has a lock that another thread may have held at the fork.
}

bool HasGroups() {
  Rma* const rma = g_rma.load(std::memory_order_acquire);
  return rma != nullptr && !rma->Unused();
}

// Runs at dlclose and at exit. NCCL's threads may still be inside the plugin at exit, so that comms are left as they
// are.
__attribute__((destructor)) void UnloadPlugin() {
  Plugin* plugin = g_plugin.load(std::memory_order_acquire);
  if (plugin == nullptr) return;
  Rma* const rma = g_rma.load(std::memory_order_acquire);
  if (rma != nullptr) rma->EndThread();
  g_in_use = !plugin->Unload(&HasGroups);
}

#ifdef TCPX_OWN_LIBSTDCXX
// The lowest priority there is runs last, after static destructors. Where threads may still be inside nothing is freed.
__attribute__((destructor(101))) void FreeExceptionPool() {
  if (__gnu_cxx::__freeres != nullptr && !g_in_use) __gnu_cxx::__freeres();
}
#endif

// What `make` gives the first caller.
template <typename Object, typename Make>
Object& Installed(std::atomic<Object*>* installed, const Make& make) {
  if (Object* const object = installed->load(std::memory_order_acquire)) return *object;
  static Mutex mutex;
  MutexLock lock(mutex);
  if (Object* const object = installed->load(std::memory_order_acquire)) return *object;
  Object* const made = make();
  installed->store(made, std::memory_order_release);
  return *made;
}

Plugin& InstalledPlugin() {
  return Installed(&g_plugin, [] {
    // glibc forgets the handler when the library is unloaded.
    pthread_atfork(nullptr, nullptr, &DisableInForkedChild);
    return new (g_plugin_place) Plugin;
  });
}

}  // namespace

PluginApi& ThePlugin() { return InstalledPlugin(); }

RmaApi& TheRma() {
  if (g_forked) {
    static RefusedRma* const refused = new RefusedRma(&InstalledPlugin());
    return *refused;
  }
  return Installed(&g_rma, [] {
    Plugin* const plugin = &InstalledPlugin();
    return new (g_rma_place) Rma(plugin, [plugin] { return plugin->OfferRma(); });
  });
}

}  // namespace tcpx
