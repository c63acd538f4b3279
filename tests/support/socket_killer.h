// socket_killer.h: ends the lanes' sockets of this process, as networks and operators do.
//
// Purpose: finds the TCP sockets that the plugin has connected to itself, and kills one of them at random: by a reset
//          of the kernel's (SOCK_DESTROY, what `ss -K` does, in a network of the test's own), by ending it
//          (shutdown), or, at the end that dialled it, by connect to nothing, which resets the other end. The health
//          socket, which has TCP_USER_TIMEOUT, is spared, or alone meant.
// Threads: one killer at a time, and any others.
// Units:   as the names say.
// Errors:  a kill that the kernel refuses is not counted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/seed.h"

namespace tcpx {

struct LaneEnd {
  int fd = -1;
  uint64_t cookie = 0;  // the socket's own (SO_COOKIE): descriptors are used again
};

// Connected sockets of lanes, both ends.
std::vector<LaneEnd> FindLaneEnds();
// Those of health sockets.
std::vector<LaneEnd> FindHealthEnds();
// Whether this end dialled: it is connected to a port at which this process listens.
bool IsDialled(int fd);
// From here on nothing that is sent to this socket arrives, and neither end hears of it. False: the kernel refuses
// that.
bool Swallow(int fd);
// From here on every dial of this process to itself is refused.
void StopListening();

// As a reset by the kernel: what has come may still be read. Only in a network of the test's own. False: it was not.
bool DestroySocket(int fd);

class SocketKiller {
 public:
  // `health`: not those of lanes, but health sockets.
  explicit SocketKiller(uint64_t seed, bool health = false) : health_(health), rng_(seed) {}

  // Kills one at random; true exactly when one was killed.
  bool KillOne();

 private:
  const bool health_;
  Rng rng_;
};

// Kills every now and then, in a thread of its own, until it goes.
class KillerThread {
 public:
  // So many lanes die at most while no message arrives: a machine that makes no new lane between two kills would try
  // for ever.
  static constexpr int kKillsPerMessage = 16;
  // Where nobody counts messages, the lanes are left alone for so long after that many. A guess: 50 handshakes of a
  // busy machine under a sanitizer.
  static constexpr auto kRest = std::chrono::milliseconds(500);

  // While one lives, nothing is killed.
  class Truce {
   public:
    // Null: there is no killer.
    explicit Truce(KillerThread* killer) {
      if (killer != nullptr) lock_ = std::unique_lock<std::mutex>(killer->mutex_);
    }

   private:
    std::unique_lock<std::mutex> lock_;
  };

  // `every_us`: longer where a sanitizer slows the plugin down, so that as many die per message.
  // `received_total`: counts messages; null: nobody does. `health`: it kills health sockets, and never rests.
  KillerThread(uint64_t seed, int every_us, const std::atomic<uint64_t>* received_total = nullptr, bool health = false);
  ~KillerThread() { Stop(); }

  void Stop();
  int kills() const { return kills_.load(); }

 private:
  std::mutex mutex_;  // held while something is killed
  std::atomic<bool> stop_{false};
  std::atomic<int> kills_{0};
  std::thread thread_;
};

}  // namespace tcpx
