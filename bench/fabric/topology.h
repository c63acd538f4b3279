// topology.h: networks: which links a flow crosses from one host to another, and which of them its port chooses.
//
// Purpose: hashed paths between two hosts, leaf and spine with oversubscription, rails, a limit per flow, virtual
//          switches with a limit per host. Hosts are numbered; leaves hold neighbours.
// Threads: one at a time. Units: bytes per second. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/fabric/max_min.h"

namespace tcpx {
namespace fabric {

inline constexpr double kMbit = 1e6 / 8;

struct TopologySpec {
  enum class Kind { kPaths, kLeafSpine, kRails, kVirtual };
  Kind kind = Kind::kPaths;
  int hosts = 2;
  double nic = 25000 * kMbit;    // of a host, or of each of its rails
  std::vector<double> paths;     // kPaths: from any host to any other
  double per_flow = kUnlimited;  // of each flow
  int leaf_hosts = 16;           // kLeafSpine: hosts of a leaf
  int spines = 8;                // kLeafSpine
  double oversubscription = 1;   // kLeafSpine: what its hosts may send, by what leaves the leaf
  int rails = 1;                 // kRails: a switch for each, without a limit of its own
  int slow_host = -1;            // a straggler: its interface has half
  double queue_bytes = 0;        // of each flow at its bottleneck; 0: nobody sees a queue
  double buffer = kUnlimited;    // bytes that wait for a link at the most
  bool blind = false;            // the speed is not visible: a virtual interface
  bool perfect = false;          // flows spread themselves over all paths: the oracle's network
};

class Topology {
 public:
  Topology(const TopologySpec& spec, MaxMin* links);

  // Adds the links from `from` to `to` by the path that `port` hashes to.
  void Route(int from, int to, int rail, uint64_t port, Flow* flow) const;
  void SetPath(int path, double rate) { links_->SetCapacity(first_path_ + path, rate); }
  bool queues() const { return spec_.queue_bytes > 0; }
  // Queues are as the latest shares fill them.
  void FillQueues();
  // How long a flow waits in the queues of its path; without its own bytes: what it finds when it is new. [us]
  int64_t WaitUs(const Flow& flow, bool own) const;
  const TopologySpec& spec() const { return spec_; }
  int leaves() const { return (spec_.hosts + spec_.leaf_hosts - 1) / spec_.leaf_hosts; }

 private:
  void AddPaths();
  void AddSpines();
  double WaitFor(int link, int flows) const;

  const TopologySpec spec_;
  MaxMin* const links_;
  int spines_ = 1;             // as flows see them
  int first_nic_ = 0;          // from a host, and then to it, for each rail of each host
  int first_path_ = 0;         // kPaths: one each; kLeafSpine: up and down for each spine of each leaf
  int links_end_ = 0;          // later ones are not the network's
  std::vector<double> waits_;  // in the queue of each link [s]
};

}  // namespace fabric
}  // namespace tcpx
