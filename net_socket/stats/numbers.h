// numbers.h: what is known of one end of a connection, copied out of it.
//
// Threads: plain data. Units: as the names say; all counts are of the whole life.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "net_socket/message/counts.h"
#include "net_socket/stats/counters.h"

namespace tcpx {

// See TransferTimes (comm/end_numbers.h).
struct WaitNumbers {
  uint64_t idle_ns = 0;
  uint64_t no_credit_ns = 0;
  uint64_t unheard_ns = 0;
  uint64_t moving_ns = 0;
  uint64_t untested_ns = 0;
  uint64_t uncalled_ns = 0;
};

// The stretch that no transfer has ended yet, as looks have guessed it so far.
struct OpenWait {
  int64_t from_ns = 0;
  int64_t looked_ns = 0;
  WaitNumbers guessed;
  // Not of this stretch alone: what waited for a call, of the time that counts as unheard and as moving once a stretch
  // is over.
  uint64_t uncalled_unheard_ns = 0;
  uint64_t uncalled_moving_ns = 0;
  uint32_t calls = 0;  // NCCL's, until the latest look
};

// Who a connection waited for, and why.
enum class Blocked : uint8_t {
  kNetworkPath,    // bytes were under way, and the path or its congestion control held them
  kPeerWindow,     // the peer's kernel accepted nothing: its receiver did not read
  kPeerNotPosted,  // isend had no credit: the peer's irecv was not posted
  kPeerSilent,     // irecv was posted, and nothing had come
  kNcclIdle,       // nothing was posted here
  kNcclUntested,   // all was done and not tested; or NCCL's thread moves the bytes, and did not call
  kHereCopying,    // bytes were to be sent and TCP had none of them: our threads were at it
  kHereNoCpu,      // this host had no CPU for the thread that moves the bytes
};
inline constexpr size_t kBlockedKinds = 8;
using BlockedNumbers = std::array<uint64_t, kBlockedKinds>;  // nanoseconds
inline constexpr struct {
  const char* cause;
  const char* reason;
} kBlockedWords[kBlockedKinds] = {
    {"network", "path"},      {"peer", "window_closed"}, {"peer", "receive_not_posted"},
    {"peer", "nothing_sent"}, {"nccl", "nothing_to_do"}, {"nccl", "not_tested"},
    {"here", "copying"},      {"here", "no_cpu"},
};

// "GPU0", as NCCL's Inspector calls it; "unknown" below 0.
std::string GpuName(int gpu);

// TcpCounts: of all of its sockets. Else of the present one.
struct TcpNumbers : TcpCounts {
  uint64_t cookie = 0;  // no other socket of this boot has it; 0: the kernel does not tell (before Linux 4.12)
  uint32_t rtt_us = 0;
  uint32_t rtt_min_us = 0;
  uint64_t delivery_bytes_per_second = 0;
  uint32_t unacked_bytes = 0;
  int dscp = 0;
  std::string congestion;
};

struct LaneNumbers : LaneSums {
  bool open = true;                   // else it never had a socket, or is closed and may be opened again
  bool lost = false;                  // just now
  int64_t pace_bytes_per_second = 0;  // the striper's; 0: unknown
  std::string local;
  std::string peer;
  TcpNumbers tcp;
  TcpNumbers socket;  // as last read: what the present one counts
  bool read = false;  // at least once
};

// What a connection has moved, by class: express, bulk; and what has become of it.
struct TrafficNumbers {
  std::array<uint64_t, 2> messages{};
  std::array<uint64_t, 2> bytes{};
  std::array<LogHistogramValues, 2> sizes;
  std::array<LogHistogramValues, 2> durations;  // nanoseconds
  ConnectionCounts counts;
  BlockedNumbers blocked{};
};

struct ConnectionNumbers : TrafficNumbers {
  // These never change.
  uint64_t communicator = 0;
  std::string connection;  // the first 8 bytes of its id, in hexadecimal: the same at both ends
  int device = 0;
  bool sends = false;
  std::string interfaces;  // "eth0", or of a fused device "eth0+eth1"
  std::string peer_host;
  int gpu = -1;  // whose memory it carries, by CUDA's number in this process; -1: none so far

  WaitNumbers waits;
  OpenWait open_wait;
  // What of the waits, and of the lanes' times, `blocked` has in it.
  WaitNumbers attributed;
  uint64_t attributed_busy_us = 0;
  uint64_t attributed_window_us = 0;
  int posted = 0;  // messages under way
  int caller = 0;  // NCCL's thread; 0: none yet
  bool failed = false;
  // Why the connection is stalled, once that is known: health/verdict.h.
  std::string cause;
  std::string culprit;
  std::string why;
  std::vector<LaneNumbers> lanes;
};

// Reads the kernel's numbers of the lane's socket into it. What another socket counted before stays counted.
void ReadTcpNumbers(int fd, LaneNumbers* lane);

// Adds `now` to what the lane's sockets have counted. One with another cookie is another one, and so is one that counts
// less than at the last time.
void AddTcpNumbers(const TcpNumbers& now, LaneNumbers* lane);

// What the threads that move a connection did between two looks.
struct ThreadUse {
  uint64_t cpu_ns = 0;     // they ran
  uint64_t no_cpu_ns = 0;  // they waited for a CPU
};
// Where that is not known.
inline constexpr ThreadUse kUseUnknown{~uint64_t{0}, 0};

// Finds who was waited for since the last call, and adds the time to `blocked`.
void Attribute(const ThreadUse& use, ConnectionNumbers* numbers);

}  // namespace tcpx
