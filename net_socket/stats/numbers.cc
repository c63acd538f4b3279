#include "net_socket/stats/numbers.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "common/socket.h"
#include "common/tcp_info.h"

namespace tcpx {
namespace {

uint64_t Since(uint64_t before, uint64_t now) { return now > before ? now - before : 0; }

int Dscp(int fd) {
  int octet = 0;
  socklen_t length = sizeof(octet);
  sockaddr_storage address{};
  socklen_t address_length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &address_length) != 0) return 0;
  const bool v6 = address.ss_family == AF_INET6;
  if (getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &octet, &length) != 0) return 0;
  return octet >> 2;
}

// Counts what is new, and remembers it. What was guessed too high before comes back by not counting for a while.
uint64_t Take(uint64_t now, uint64_t* seen) {
  const uint64_t more = Since(*seen, now);
  *seen += more;
  return more;
}

void AddBlocked(Blocked kind, uint64_t ns, ConnectionNumbers* numbers) {
  numbers->blocked[static_cast<size_t>(kind)] += ns;
}

// Nanoseconds in which TCP held bytes of lanes, summed over them, and how much of it the peer's window was closed, 0 to
// 1.
struct TcpBusy {
  uint64_t ns = 0;
  double window = 0;
};

TcpBusy TakeTcpBusy(ConnectionNumbers* numbers) {
  uint64_t busy_us = 0;
  uint64_t window_us = 0;
  for (const LaneNumbers& lane : numbers->lanes) {
    busy_us += lane.tcp.busy_us;
    window_us += lane.tcp.window_limited_us;
  }
  const uint64_t busy = Take(busy_us, &numbers->attributed_busy_us);
  const double window = static_cast<double>(Take(window_us, &numbers->attributed_window_us));
  return {busy * 1000, busy == 0 ? 0 : std::min(1.0, window / static_cast<double>(busy))};
}

bool AnyLost(const ConnectionNumbers& numbers) {
  return std::any_of(numbers.lanes.begin(), numbers.lanes.end(), [](const LaneNumbers& lane) { return lane.lost; });
}

// A sender's time with bytes to move, and without a call of the thread that moves them. What TCP did not hold, nor a
// lane that has lost its socket, was not sent yet.
void AttributeSending(uint64_t moving, uint64_t uncalled, const ThreadUse& use, ConnectionNumbers* numbers) {
  const TcpBusy busy = TakeTcpBusy(numbers);
  const uint64_t held = AnyLost(*numbers) ? moving + uncalled : std::min(moving + uncalled, busy.ns);
  const uint64_t window = static_cast<uint64_t>(static_cast<double>(held) * busy.window);
  const uint64_t unsent = moving + uncalled - held;
  const uint64_t copying = std::min(unsent - std::min(unsent, uncalled), use.cpu_ns);
  AddBlocked(Blocked::kPeerWindow, window, numbers);
  AddBlocked(Blocked::kNetworkPath, held - window, numbers);
  AddBlocked(Blocked::kHereCopying, copying, numbers);
  AddBlocked(Blocked::kNcclUntested, unsent - copying, numbers);
}

}  // namespace

std::string GpuName(int gpu) { return gpu < 0 ? "unknown" : "GPU" + std::to_string(gpu); }

void ReadTcpNumbers(int fd, LaneNumbers* lane) {
  TcpInfo info;
  if (!ReadTcpInfo(fd, &info)) return;
  TcpNumbers now;
  socklen_t length = sizeof(now.cookie);
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &now.cookie, &length) != 0) now.cookie = 0;
  now.rtt_us = info.rtt_us;
  now.rtt_min_us = info.rtt_min_us;
  now.delivery_bytes_per_second = info.delivery_bytes_per_second;
  now.retransmits = info.retransmissions;
  now.busy_us = info.busy_us;
  now.window_limited_us = info.window_limited_us;
  now.buffer_limited_us = info.buffer_limited_us;
  const int held = QueuedBytes(fd);
  now.unacked_bytes = held > 0 ? static_cast<uint32_t>(held) : 0;
  if (!lane->read) {
    // These are as the lane was made with; another socket of it gets the same.
    auto congestion = GetCongestion(fd);
    if (congestion.ok()) lane->tcp.congestion = *congestion;
    lane->tcp.dscp = Dscp(fd);
  }
  AddTcpNumbers(now, lane);
}

void AddTcpNumbers(const TcpNumbers& now, LaneNumbers* lane) {
  const bool another = now.cookie != lane->socket.cookie || now.busy_us < lane->socket.busy_us ||
                       now.retransmits < lane->socket.retransmits;
  const TcpNumbers none;
  const TcpNumbers& old = another ? none : lane->socket;
  TcpNumbers* const sum = &lane->tcp;
  sum->rtt_us = now.rtt_us;
  sum->rtt_min_us = now.rtt_min_us;
  sum->delivery_bytes_per_second = now.delivery_bytes_per_second;
  sum->unacked_bytes = now.unacked_bytes;
  for (const auto& counter : kTcpCounters) sum->*counter.member += Since(old.*counter.member, now.*counter.member);
  lane->socket = now;
  lane->read = true;
}

void Attribute(const ThreadUse& use, ConnectionNumbers* numbers) {
  const WaitNumbers& waits = numbers->waits;
  WaitNumbers* const seen = &numbers->attributed;
  AddBlocked(Blocked::kNcclIdle, Take(waits.idle_ns, &seen->idle_ns), numbers);
  AddBlocked(Blocked::kNcclUntested, Take(waits.untested_ns, &seen->untested_ns), numbers);
  AddBlocked(Blocked::kPeerNotPosted, Take(waits.no_credit_ns, &seen->no_credit_ns), numbers);
  AddBlocked(Blocked::kPeerSilent, Take(waits.unheard_ns, &seen->unheard_ns), numbers);
  uint64_t uncalled = Take(waits.uncalled_ns, &seen->uncalled_ns);
  uint64_t moving = Take(waits.moving_ns, &seen->moving_ns);
  const uint64_t uncalled_no_cpu = std::min(uncalled, use.no_cpu_ns);
  const uint64_t moving_no_cpu = std::min(moving, use.no_cpu_ns - uncalled_no_cpu);
  uncalled -= uncalled_no_cpu;
  moving -= moving_no_cpu;
  AddBlocked(Blocked::kHereNoCpu, uncalled_no_cpu + moving_no_cpu, numbers);
  if (numbers->sends) return AttributeSending(moving, uncalled, use, numbers);
  AddBlocked(Blocked::kNcclUntested, uncalled, numbers);
  AddBlocked(Blocked::kNetworkPath, moving, numbers);
}

}  // namespace tcpx
