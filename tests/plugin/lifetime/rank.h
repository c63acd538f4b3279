// rank.h: one process's plugin: opened, initialised, connected.
//
// Purpose: what NCCL does around the traffic, in the few lines that a test of lifetimes needs.
//
// Killed:  with TCPX_TEST_KILL_US=N in the environment the socket of one of this process's lanes dies every N us, from
//          its first connection on, but not while it is making or closing one. TCPX_HEAL is set by
//          whoever sets that.
//
// Threads: as NetClient. The record of log lines may be read from any.
// Errors:  every refusal that a healthy plugin does not give ends the process (TCPX_REQUIRE).
#ifndef TCPX_TESTS_PLUGIN_LIFETIME_RANK_H_
#define TCPX_TESTS_PLUGIN_LIFETIME_RANK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "nccl/client/net_client.h"
#include "tests/plugin/lifetime/processes.h"

namespace tcpx {

class KillerThread;

inline constexpr char kPlugin[] = "net_socket/libnccl-net-tcpx.so";
inline constexpr size_t kHandleBytesMax = NCCL_NET_HANDLE_MAXSIZE;

// The two ends that one rank has: to the peer and from it.
struct Ends {
  void* send = nullptr;
  void* recv = nullptr;
};

class Rank {
 public:
  // Opens the library and makes a context. Version 0: the newest.
  explicit Rank(int version = 0);
  ~Rank();  // unloads, without closing or finalizing

  NetClient& net() { return *net_; }
  void* context() const { return context_; }

  // Another context of the same library.
  void* NewContext(int traffic_class = NCCL_NET_TRAFFIC_CLASS_UNDEF);
  // One connection each way with the process at the other end of `peer`, which does the same.
  Ends Connect(Control& peer);
  // Both ends of one connection, in this process.
  Ends ConnectToSelf() { return ConnectToSelf(context_); }
  Ends ConnectToSelf(void* context);
  void Close(const Ends& ends);
  void Finalize();
  void Unload() { net_.reset(); }

 private:
  void PollBoth(void* context, void* handle, void* listen, Ends* ends);
  void StartKilling();

  std::unique_ptr<NetClient> net_;
  void* context_ = nullptr;
  std::unique_ptr<KillerThread> killer_;  // null: nothing is killed
};

// What the plugin has logged in this process.
void RecordLog(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* fmt, ...);
int WarningCount();
// All lines of WARN and INFO, one below the other.
std::string LogText();

}  // namespace tcpx

#endif  // TCPX_TESTS_PLUGIN_LIFETIME_RANK_H_
