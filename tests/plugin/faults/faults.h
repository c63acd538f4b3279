// faults.h: what goes wrong in a seeded run, and how often.
//
// Purpose: one place decides for every call that moves bytes, whether it is made by the calling thread, by housekeeping
//          (socket_shim.cc) or by an engine (faulty_engine.h), what becomes of it. The n-th call of a direction of a
//          descriptor meets the same fault whenever a seed runs; how the threads interleave is the machine's.
// Threads: any. Begin and End while no thread of the plugin lives.
// Units:   "one in N" for the rates, 0 for never; bytes.
// Errors:  Violation records what an engine may not see; the run reports the first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace tcpx {

class Rng;

enum class FlowDirection { kSend, kReceive, kOther };

struct Fault {
  enum class Kind {
    kNone,
    kShort,  // moves `bytes` at the most
    kAgain,  // nothing is there, or nothing fits: several times in a row
    kZero,   // the end of the stream, which is none
    kReset,  // the socket is reset under its owner, and the peer hears of it
    kErrno,  // `err`, from this call only
  };
  Kind kind = Kind::kNone;
  size_t bytes = 0;
  int err = 0;
};

struct FaultRates {
  // Those that nobody may notice.
  uint64_t shorten = 0;
  size_t short_bytes_max = 1;
  uint64_t again = 0;
  uint64_t storm_max = 1;
  uint64_t late = 0;
  uint64_t late_rounds_max = 1;
  uint64_t duplicate = 0;  // notifications: twice, or too early
  // Those that end the connection.
  uint64_t zero = 0;
  uint64_t reset = 0;
  uint64_t err = 0;
  // True: only of lanes, and an errno only what the network may cause, so that lanes that heal survive it.
  bool deaths_of_lanes = false;
  // The kernel never tells how an operation ended, until that is cancelled.
  uint64_t lost = 0;
};

class Faults {
 public:
  // The process's: a shim below libc's names finds it only here.
  static Faults& Get();

  void Begin(uint64_t seed, const FaultRates& rates);
  void End() { Pause(); }
  // From here on nothing more happens.
  void Pause() { on_.store(false); }
  // Sockets are being set up: what is sent there fits a fresh socket, and never goes in part.
  void SetConnecting(bool connecting) { connecting_.store(connecting); }

  bool only_deaths_of_lanes() const { return only_deaths_of_lanes_.load(); }

  // What becomes of the next call. `may_wait`: the caller asks again by itself when it hears that nothing is there.
  Fault Next(int fd, FlowDirection direction, bool may_wait);
  // Rounds by which something comes late, 0: in time.
  uint64_t Late(int fd);
  bool Lose(int fd);
  bool Duplicate(int fd);

  // Faults so far that may end a connection, and operations that were lost.
  int fatal() const { return fatal_.load(); }
  int lost() const { return lost_.load(); }
  // What went wrong in all runs so far, in words: a test in which nothing goes wrong would prove nothing.
  std::string Tally();
  void Violation(const std::string& text);
  std::string violation();

 private:
  bool OneIn(uint64_t n, uint64_t random) const { return n != 0 && random % n == 0; }
  uint64_t Random(int fd, int purpose);
  Fault Choose(int fd, FlowDirection direction, bool may_wait);
  // What ends the connection, or its lane; none for most calls.
  Fault ChooseDeath(int fd, FlowDirection direction, Rng* rng) const;

  std::atomic<bool> on_{false};
  std::atomic<bool> connecting_{false};
  std::atomic<bool> only_deaths_of_lanes_{false};
  std::atomic<int> fatal_{0};
  std::atomic<int> lost_{0};
  std::mutex mutex_;  // all below
  uint64_t seed_ = 0;
  FaultRates rates_;
  std::map<std::pair<int, int>, uint64_t> calls_;   // by descriptor and purpose
  std::map<std::pair<int, int>, uint64_t> storms_;  // refusals still to come
  std::string violation_;
  std::map<std::string, int> tally_;
};

// True in threads that test again and again, and so may hear that nothing is there though something is.
void SetPolling(bool polling);
bool Polling();

// While one lives, calls of this thread reach the kernel as they are.
class Faultless {
 public:
  Faultless();
  ~Faultless();
  static bool InForce();

 private:
  const bool before_;
};

// As a reset from the network: the owner finds a dead socket, and the peer a reset one. What the owner has not read is
// gone, but with deaths_of_lanes, as where the kernel resets.
void ResetSocket(int fd);

}  // namespace tcpx
