// plugin_link.h: connections of a plugin between two workers: one comm each way, buffers registered.
//
// Purpose: does what NCCL's proxy does: listen on each side, handles over the bootstrap, connect and accept polled in
//          turn, closeListen after the accept, regMr of each region, then isend, irecv and test; at the end deregMr
//          before the comms are closed.
// Threads: one driver. Lifetime: borrows host, control and slot rings, which outlive it.
// Units:   bytes.
// Errors:  set-up and Close: a Status. Traffic: Step::kFailed with ResultText.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/net_bench/buffers.h"
#include "bench/net_bench/channel.h"
#include "bench/net_bench/control.h"
#include "bench/net_bench/plugin_channel.h"
#include "bench/net_bench/plugin_host.h"

namespace tcpx {
namespace bench {

struct PluginLinkShape {
  int connections = 1;
  // Which directions exist: a one-way link has null entries in the other list.
  bool sends = true;
  bool receives = true;
};

class PluginLink : public Link {
 public:
  // Both workers call it at the same time. With null rings nothing is registered.
  static absl::StatusOr<std::unique_ptr<PluginLink>> Create(const PluginLinkShape& shape, PluginHost* host,
                                                            Control* control, SlotRing* send_slots,
                                                            SlotRing* receive_slots, Position* position);
  // As above with different peers: handles go out over `from` (who sends to us) and come in over `to`.
  static absl::StatusOr<std::unique_ptr<PluginLink>> CreateBetween(const PluginLinkShape& shape, PluginHost* host,
                                                                   Control* from, Control* to, SlotRing* send_slots,
                                                                   SlotRing* receive_slots, Position* position);
  // For all receives posted from now on: with NCCL's hint, or without.
  void SetOptional(bool optional);
  // Registrations first, then the comms.
  absl::Status Close() override;

  const std::vector<Channel*>& sends() const override { return sends_; }
  const std::vector<Channel*>& receives() const override { return receives_; }

 private:
  using Handle = std::array<uint8_t, NCCL_NET_HANDLE_MAXSIZE>;
  struct Pending {
    Handle handle = {};  // of the peer's listen; the plugin's own from the first connect on
    void* listen = nullptr;
    void* send = nullptr;
    void* receive = nullptr;
  };

  PluginLink(const PluginLinkShape& shape, PluginHost* host, Position* position)
      : shape_(shape), host_(host), position_(position), pending_(static_cast<size_t>(shape.connections)) {}
  absl::StatusOr<std::vector<uint8_t>> ListenAll();
  absl::Status TakeHandles(const std::vector<uint8_t>& blob);
  absl::Status ConnectAll();
  // True when this connection needs no further poll.
  absl::StatusOr<bool> Poll(size_t index);
  absl::Status RegisterAll(SlotRing* send_slots, SlotRing* receive_slots);
  absl::StatusOr<Channel*> AddChannel(void* comm, SlotRing* slots, int region, bool sends);

  const PluginLinkShape shape_;
  PluginHost* const host_;
  Position* const position_;
  std::vector<Pending> pending_;
  bool registered_ = false;
  std::vector<std::unique_ptr<PluginChannel>> channels_;
  std::vector<Channel*> sends_;
  std::vector<Channel*> receives_;
};

}  // namespace bench
}  // namespace tcpx
