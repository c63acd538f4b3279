#include "bench/fabric/job.h"

#include <algorithm>

namespace tcpx {
namespace fabric {
namespace {

constexpr int kProcesses = 8;  // of a host: one for each GPU

Job Make(const std::string& name, double bytes, double gap) {
  Job job;
  job.name = name;
  job.bytes = bytes;
  job.gap = gap;
  return job;
}

}  // namespace

Job Ring(const RingSpec& spec, double bytes, double gap) {
  // Each connection of a ring carries about twice its channel's part.
  Job job = Make("ring", 2 * bytes / spec.channels, gap);
  job.groups = spec.channels;
  for (int channel = 0; channel < spec.channels; ++channel) {
    for (size_t i = 0; i < spec.hosts.size(); ++i) {
      const int to = spec.hosts[(i + 1) % spec.hosts.size()];
      job.links.push_back({{spec.hosts[i], to, channel % spec.rails}, channel % kProcesses, channel});
    }
  }
  return job;
}

Job Trees(int hosts, double bytes, double gap) {
  Job job = Make("trees", bytes / 2, gap);
  job.groups = 2;
  for (int tree = 0; tree < 2; ++tree) {
    for (int i = 1; i < hosts; ++i) {
      const int child = tree == 0 ? i : hosts - 1 - i;
      const int parent = tree == 0 ? (i - 1) / 2 : hosts - 1 - (i - 1) / 2;
      job.links.push_back({{child, parent, 0}, tree, tree});
      job.links.push_back({{parent, child, 0}, tree, tree});
    }
  }
  return job;
}

Job AllToAll(int hosts, int peers, double bytes, double gap) {
  Job job = Make("alltoall", bytes, gap);
  const int count = std::min(peers, hosts - 1);
  for (int host = 0; host < hosts; ++host) {
    for (int i = 0; i < count; ++i) {
      const int away = 1 + static_cast<int>(int64_t{i} * (hosts - 1) / count);
      job.links.push_back({{host, (host + away) % hosts, 0}, i % kProcesses, -1});
    }
  }
  return job;
}

Job Pipeline(int hosts, double bytes, double gap) {
  Job job = Make("pipeline", bytes, gap);
  for (int host = 0; host + 1 < hosts; ++host) {
    job.links.push_back({{host, host + 1, 0}, 0, -1});
    job.links.push_back({{host + 1, host, 0}, 0, -1});
  }
  return job;
}

Job Incast(int hosts, double bytes, double gap) {
  Job job = Make("incast", bytes, gap);
  for (int host = 1; host < hosts; ++host) job.links.push_back({{host, 0, 0}, 0, -1});
  return job;
}

Job Streams(int connections) {
  Job job = Make("streams", kUnlimited, 0);
  for (int i = 0; i < connections; ++i) job.links.push_back({{0, 1, 0}, i, -1});
  return job;
}

}  // namespace fabric
}  // namespace tcpx
