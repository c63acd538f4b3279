// rma_numbers.h: what one-sided transfers have done, and how it is called.
//
// Threads: plain data. Units: bytes; all counts are of the whole life of the process, but for those of now.
#pragma once

#include <cstdint>

#include "net_socket/stats/counters.h"

namespace tcpx {

struct RmaNumbers {
  uint64_t groups = 0;  // ever made; 0: there is nothing to show
  uint64_t puts = 0;
  uint64_t signals = 0;
  uint64_t gets = 0;
  uint64_t bytes = 0;
  uint64_t in_batches = 0;
  uint64_t following = 0;
  uint64_t refused = 0;
  uint64_t under_way = 0;      // now
  uint64_t under_way_max = 0;  // of one group
};

inline constexpr CounterLine<RmaNumbers> kRmaCounters[] = {
    {&RmaNumbers::puts, "puts", "tcpx_rma_puts_total", CountedAt::kBoth, "One-sided puts with bytes."},
    {&RmaNumbers::signals, "signals", "tcpx_rma_signals_total", CountedAt::kBoth,
     "Signals of one-sided transfers, with or without a put."},
    {&RmaNumbers::gets, "gets", "tcpx_rma_gets_total", CountedAt::kBoth, "One-sided gets."},
    {&RmaNumbers::bytes, "bytes", "tcpx_rma_bytes_total", CountedAt::kBoth, "Bytes of one-sided puts and gets."},
    {&RmaNumbers::in_batches, "in_batches", "tcpx_rma_batched_puts_total", CountedAt::kBoth,
     "One-sided puts that shared a message with others."},
    {&RmaNumbers::following, "following", "tcpx_rma_long_puts_total", CountedAt::kBoth,
     "One-sided puts that were a message of their own."},
    {&RmaNumbers::refused, "refused", "tcpx_rma_refused_total", CountedAt::kBoth,
     "One-sided operations that were refused here."},
};

// Who counts them.
class RmaSource {
 public:
  virtual RmaNumbers ReadRma() = 0;

 protected:
  ~RmaSource() = default;
};

}  // namespace tcpx
