// rank.h: one process's plugin, in a test whose processes end where something is wrong.
//
// Purpose: what NCCL does around the traffic, in the few lines that a test of lifetimes needs: test_plugin.h in
//          TCPX_REQUIRE.
// Threads: as NetClient.
// Lifetime: the destructor unloads, without closing or finalizing.
// Errors:  every refusal that a healthy plugin does not give ends the process.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/plugin_log.h"
#include "tests/support/processes.h"
#include "tests/support/test_plugin.h"

namespace tcpx {

inline void Must(const absl::Status& status) { TCPX_REQUIRE(status.ok(), status.ToString()); }

template <class T>
T Must(absl::StatusOr<T> result) {
  Must(result.status());
  return *std::move(result);
}

class Rank {
 public:
  // Opens the library in the environment that is there, and makes a context. Version 0: the newest.
  explicit Rank(int version = 0) : plugin_(Must(TestPlugin::OpenAsIs(version))) {}

  NetClient& net() { return plugin_->net(); }
  void* context() const { return plugin_->context(); }
  // Another context of the same library.
  void* NewContext(int traffic_class = NCCL_NET_TRAFFIC_CLASS_UNDEF) {
    return Must(plugin_->NewContext(42, traffic_class));
  }

  void* Listen(char* handle) { return Must(plugin_->Listen(handle)); }
  void* Listen(void* context, char* handle, int device) { return Must(plugin_->Listen(context, handle, device)); }
  Ends ConnectTo(void* listen, const char* handle) { return Must(plugin_->ConnectTo(listen, handle)); }
  Ends ConnectTo(void* context, void* listen, const char* handle, int device) {
    return Must(plugin_->ConnectTo(context, listen, handle, device));
  }
  // One connection in each direction with the process at the other end of `peer`, which does the same.
  Ends Connect(Control& peer) {
    char handle[kHandleBytesMax] = {};
    void* const listen = Listen(handle);
    peer.Send(handle, sizeof(handle));
    peer.Receive(handle, sizeof(handle));
    const Ends ends = ConnectTo(listen, handle);
    CloseListen(listen);
    return ends;
  }
  // Both ends of one connection, in this process.
  Ends ConnectToSelf() { return ConnectToSelf(context()); }
  Ends ConnectToSelf(void* context) { return Must(plugin_->Connect(context, context)); }
  // Polls what `dialling` asks for, of the own context. The first refusal; the end of the time ends the process.
  ncclResult_t Poll(char* handle, void* listen, Ends* ends) {
    const ncclResult_t result = PollEnds(&net(), {context(), 0, handle, listen}, ends);
    TCPX_REQUIRE(result != ncclInProgress, "neither a connection nor an error; ", LogText());
    return result;
  }

  void Close(const Ends& ends) { Must(plugin_->Close(ends)); }
  void CloseSend(void* comm) { Close({comm, nullptr}); }
  void CloseReceive(void* comm) { Close({nullptr, comm}); }
  void CloseListen(void* listen) { Must(plugin_->CloseListen(listen)); }
  void Finalize() { Must(plugin_->Finalize()); }
  void Unload() { plugin_.reset(); }

 private:
  std::unique_ptr<TestPlugin> plugin_;
};

}  // namespace tcpx
