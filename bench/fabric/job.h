// job.h: what the hosts of one job send each other, again and again.
//
// Purpose: the connections of a collective, those that go on at one rate together (a ring is as fast as its slowest
//          connection), how much each of them sends, and the gap in which the job computes.
// Threads: any; values. Units: bytes, seconds. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "bench/fabric/connection.h"

namespace tcpx {
namespace fabric {

struct Job {
  struct Link {
    Connection::Ends ends;
    int process = 0;  // of its host
    int group = -1;   // those of one go on at one rate; -1: alone
  };

  std::string name;
  std::vector<Link> links;
  int groups = 0;
  double bytes = kUnlimited;  // of each connection and collective; kUnlimited: one that never ends
  double gap = 0;
  double start = 0;
};

// A ring over `hosts`, `channels` times; channels go by rails, and belong to a host's processes, in turn. `bytes`: of
// the all-reduce.
struct RingSpec {
  std::vector<int> hosts;
  int channels = 1;
  int rails = 1;
};
Job Ring(const RingSpec& spec, double bytes, double gap);
// Two binary trees, each with half of the bytes, up and down.
Job Trees(int hosts, double bytes, double gap);
// Each host sends `bytes` to each of `peers` others, spread over all hosts.
Job AllToAll(int hosts, int peers, double bytes, double gap);
// Each host sends to the next one, and it back.
Job Pipeline(int hosts, double bytes, double gap);
// All hosts send to host 0.
Job Incast(int hosts, double bytes, double gap);
// `connections` that always send, from host 0 to host 1, each of a process of its own.
Job Streams(int connections);

}  // namespace fabric
}  // namespace tcpx
