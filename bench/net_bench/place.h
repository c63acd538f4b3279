// place.h: which worker this is, and where it runs.
//
// Threads: plain values.
#pragma once

#include "bench/net_bench/shared_page.h"

namespace tcpx {
namespace bench {

struct WorkerPlace {
  int rank = 0;
  SharedPage* page = nullptr;
  bool same_machine = false;  // rank 0 and 1 share the page
  int cpu = -1;               // -1: unpinned
  int peer_cpu = -1;
  int usable_cpus = 1;    // before pinning
  bool priority = false;  // raised
};

}  // namespace bench
}  // namespace tcpx
