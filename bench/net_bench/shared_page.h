// shared_page.h: the memory that the supervisor and the workers of one machine share.
//
// Purpose: each worker says where it is, so that a hang or a crash can be reported with its place; two workers bounce
//          a cache line and meet at barriers there.
// Threads: a Position is written by its worker's driver thread and read by the supervisor. Everything is atomic with
//          relaxed order but for the ball and the barrier.
// Lifetime: mapped before the workers are forked, until the process ends.
// Errors:  Create: the kernel's, with the errno text.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {
namespace bench {

inline constexpr int kRanksMax = 64;

// In the order a worker goes through them; kTransfer to kCloseComm repeat.
enum class Stage : uint32_t {
  kStarting,
  kOpenPlugin,
  kInit,
  kListen,
  kConnect,
  kRegister,
  kRawSockets,
  kWarmUp,
  kTransfer,
  kPhaseProbe,
  kPeer,
  kIdle,
  kDeregister,
  kCloseComm,
  kFinalize,
  kUnload,
  kExit,
};
const char* StageName(Stage stage);

// What moves the bytes of a sample.
enum class Implementation : uint32_t {
  kPlugin,
  kRawOne,      // one socket per connection, used both ways
  kRawEachWay,  // one socket per connection and direction
  kRawTwo,      // two sockets per connection, used both ways
  kRawFour,
  kVs,           // the second plugin
  kSendReceive,  // isend and irecv of the same plugin, compared with one-sided transfers
};
inline constexpr int kImplementationCount = 7;
const char* ImplementationName(Implementation implementation);

// Where a worker is. Alone on its cache lines: written per message, read ten times a second.
struct alignas(128) Position {
  std::atomic<uint64_t> ticks{0};  // changes exactly when there was progress
  std::atomic<Stage> stage{Stage::kStarting};
  std::atomic<Implementation> implementation{Implementation::kPlugin};
  std::atomic<uint32_t> connection{0};
  std::atomic<uint64_t> message{0};
  std::atomic<uint64_t> bytes{0};

  void Enter(Stage next) {
    stage.store(next, std::memory_order_relaxed);
    Tick();
  }
  void Tick() { ticks.store(ticks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void At(uint32_t connection_index, uint64_t message_index) {
    connection.store(connection_index, std::memory_order_relaxed);
    message.store(message_index, std::memory_order_relaxed);
    Tick();
  }
  // "transfer: plugin, 64K messages, connection 0, message 17".
  std::string Describe() const;
};

struct SharedPage {
  static absl::StatusOr<SharedPage*> Create();

  alignas(128) std::atomic<uint32_t> ball{0};
  alignas(128) std::atomic<uint32_t> arrived{0};  // at barriers of all ranks, since the start
  Position positions[kRanksMax];
  // What ended a worker; written before it exits, read after.
  char errors[kRanksMax][1024] = {};
  int64_t error_ns[kRanksMax] = {};  // when

  // The first error of a rank stays.
  void SetError(int rank, absl::string_view text);
};

}  // namespace bench
}  // namespace tcpx
