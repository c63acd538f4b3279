// counters.h: what is counted, one line each: the member, how JSON and Prometheus call it, and what it means.
//
// Purpose: a new counter is a member and a line here, and the place that counts. For what a lane's mover counts,
//          the member is in message/counts.h.
// Threads: plain data. Units: as the names say; all counts are of the whole life.
// Source:  the names: prometheus.io, "Metric and label naming".
#pragma once

#include <cstdint>

#include "net_socket/message/counts.h"

namespace tcpx {

// What has happened to a connection, seen from one end.
struct ConnectionCounts {
  uint64_t lost = 0;
  uint64_t moved = 0;
  uint64_t resumed = 0;
  uint64_t health = 0;  // each is counted by one of the connections that share it
  uint64_t added = 0;
  uint64_t dropped = 0;  // they may be opened again
  uint64_t dialled = 0;  // found or not
  uint64_t slow = 0;
};

// What the kernel counts of a lane.
struct TcpCounts {
  uint64_t busy_us = 0;
  uint64_t window_limited_us = 0;
  uint64_t buffer_limited_us = 0;
  uint64_t retransmits = 0;
};

enum class CountedAt : uint8_t { kBoth, kSenders };

// Describes the counter `member` of `Counts`. A name that is null: not shown there.
template <typename Counts>
struct CounterLine {
  uint64_t Counts::*member;
  const char* json;
  const char* metric;
  const char* help;
  CountedAt ends = CountedAt::kBoth;
  double unit = 1;  // of the metric
};

inline constexpr CounterLine<LaneSums> kLaneCounters[] = {
    {&LaneSums::bytes, "bytes", "tcpx_stream_bytes_total",
     "Bytes in the streams of the lanes, with headers and padding."},
    {&LaneSums::chunks, "chunks", "tcpx_chunks_total", "Chunks that travelled whole."},
    {&LaneSums::calls, "calls", "tcpx_calls_total", "System calls or ring operations that moved bytes."},
    {&LaneSums::short_calls, "short_writes", "tcpx_short_writes_total", "Sends that the kernel took only a part of.",
     CountedAt::kSenders},
    {&LaneSums::zero_copy, "zero_copy_sends", "tcpx_zero_copy_sends_total", "Chunks that were sent without a copy.",
     CountedAt::kSenders},
    {&LaneSums::copied, "zero_copy_copied", "tcpx_zero_copy_copied_total",
     "Chunks sent without a copy that the kernel copied after all.", CountedAt::kSenders},
};

inline constexpr CounterLine<ConnectionCounts> kConnectionCounters[] = {
    {&ConnectionCounts::lost, "lanes_lost", "tcpx_lanes_lost_total", "Lanes whose socket died."},
    {&ConnectionCounts::moved, "lanes_moved", "tcpx_lanes_moved_total",
     "Lanes that left a working socket for a better one."},
    {&ConnectionCounts::dialled, "lanes_redialled", "tcpx_lanes_redialled_total",
     "Sockets that were dialled in place of others.", CountedAt::kSenders},
    {&ConnectionCounts::resumed, "lanes_resumed", "tcpx_lanes_resumed_total",
     "Lanes that went on with another socket."},
    {&ConnectionCounts::added, "lanes_added", "tcpx_lanes_added_total",
     "Lanes that were opened while their connection was up."},
    {&ConnectionCounts::dropped, "lanes_dropped", "tcpx_lanes_dropped_total",
     "Lanes that were closed while their connection was up."},
    {&ConnectionCounts::slow, "lanes_slow", "tcpx_lanes_slow_total",
     "Lanes that were far slower than the others for long."},
    {&ConnectionCounts::health, nullptr, nullptr, "Health sockets that came back."},
};

inline constexpr CounterLine<TcpCounts> kTcpCounters[] = {
    {&TcpCounts::busy_us, "busy_us", "tcpx_tcp_busy_seconds_total",
     "Time in which lanes had data that was not acknowledged.", CountedAt::kSenders, 1e-6},
    {&TcpCounts::window_limited_us, "window_limited_us", "tcpx_tcp_window_limited_seconds_total",
     "Busy time in which the peer's window was closed.", CountedAt::kSenders, 1e-6},
    {&TcpCounts::buffer_limited_us, "buffer_limited_us", "tcpx_tcp_buffer_limited_seconds_total",
     "Busy time in which the send buffer was the limit.", CountedAt::kSenders, 1e-6},
    {&TcpCounts::retransmits, "retransmits", "tcpx_retransmitted_segments_total", "Segments that were sent again."},
};

// What one-sided transfers have done: of the whole life of the process, but for what is of now.
template <typename Count>
struct RmaNumbersOf {
  Count groups{};  // ever made; 0: there is nothing to show
  Count puts{};
  Count signals{};
  Count gets{};
  Count bytes{};
  Count in_batches{};
  Count following{};
  Count refused{};
  Count under_way{};      // now
  Count under_way_max{};  // of one group
};
using RmaNumbers = RmaNumbersOf<uint64_t>;

inline constexpr CounterLine<RmaNumbers> kRmaCounters[] = {
    {&RmaNumbers::puts, "puts", "tcpx_rma_puts_total", "One-sided puts with bytes."},
    {&RmaNumbers::signals, "signals", "tcpx_rma_signals_total",
     "Signals of one-sided transfers, with or without a put."},
    {&RmaNumbers::gets, "gets", "tcpx_rma_gets_total", "One-sided gets."},
    {&RmaNumbers::bytes, "bytes", "tcpx_rma_bytes_total", "Bytes of one-sided puts and gets."},
    {&RmaNumbers::in_batches, "in_batches", "tcpx_rma_batched_puts_total",
     "One-sided puts that shared a message with others."},
    {&RmaNumbers::following, "following", "tcpx_rma_long_puts_total",
     "One-sided puts that were a message of their own."},
    {&RmaNumbers::refused, "refused", "tcpx_rma_refused_total", "One-sided operations that were refused here."},
};

// Adds all counts of a table.
template <typename Counters, typename More, typename Sum>
void AddCounts(const Counters& counters, const More& more, Sum* sum) {
  for (const auto& counter : counters) sum->*counter.member += more.*counter.member;
}

}  // namespace tcpx
