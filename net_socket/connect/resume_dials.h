// resume_dials.h: dials for the lanes of one connection that have lost their socket, or are opened late.
//
// Purpose: the hello names connection, lane and attempt, and is proven like the first one; the answer says where the
//          stream goes on.
//
// Threads: made anywhere; the rest as Redialler.
// States:  of a lane: dialling -> offered to its connection -> over.
// Units:   nanoseconds.
// Errors:  LaneGone: at once where the peer's port refuses or its process knows the connection no more, else once no
//          lane has stood for TCPX_RECONNECT_TIMEOUT.
#ifndef TCPX_NET_SOCKET_CONNECT_RESUME_DIALS_H_
#define TCPX_NET_SOCKET_CONNECT_RESUME_DIALS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "net_socket/comm/redialler.h"
#include "net_socket/connect/dial_lane.h"
#include "net_socket/health/health.h"

namespace tcpx {

class ResumeDials final : public Redialler, public std::enable_shared_from_this<ResumeDials> {
 public:
  // `paths` by lane. `secret` null: none is shared.
  ResumeDials(Runtime* runtime, const Secret* secret, DialRequest request, const ConnectionId& id,
              std::shared_ptr<Health> health, std::vector<LanePath> paths);
  ~ResumeDials() override;

  void RedialInLoop(int lane, uint32_t records_taken, std::shared_ptr<CommLink> link) override;
  void TryBesideInLoop(int lane, std::shared_ptr<CommLink> link) override;
  void OpenInLoop(int lane, std::shared_ptr<CommLink> link) override;
  void CloseInLoop() override;

 private:
  class Dial;
  enum class Purpose;

  // So far of one lane.
  struct History {
    uint32_t attempts = 0;
    int64_t began_ns = 0;  // the latest dial
  };

  Runtime* const runtime_;
  const Secret* const secret_;
  const DialRequest request_;
  const ConnectionId id_;
  const std::shared_ptr<Health> health_;
  const std::vector<LanePath> paths_;
  std::vector<History> histories_;
  absl::flat_hash_map<int, std::unique_ptr<Dial>> dials_;  // by lane
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_CONNECT_RESUME_DIALS_H_
