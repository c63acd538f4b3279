#include "profiler/tracks.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

// In a key.
constexpr int kCommunicatorAt = 32;
constexpr uint64_t kCommunicatorMask = 0xffff;

std::string ProxyName(const EventFacts& operation) {
  return absl::StrCat("channel ", operation.channel, operation.sends ? ", to rank " : ", from rank ", operation.peer);
}

std::string KindName(const EventFacts& facts, const EventFacts* parent, const std::string& lane) {
  switch (facts.type) {
    case ncclProfileGroup:
      return "2 groups";
    case ncclProfileGroupApi:
      return "0 application's groups";
    case ncclProfileCollApi:
    case ncclProfileP2pApi:
      return "0 application's calls";
    case ncclProfileKernelLaunch:
      return "1 launches";
    case ncclProfileColl:
      return "3 collectives";
    case ncclProfileP2p:
      return absl::StrCat("3 point-to-point with rank ", facts.peer);
    case ncclProfileCeColl:
    case ncclProfileCeSync:
    case ncclProfileCeBatch:
      return "3 copy engines";
    case ncclProfileProxyOp:
      return absl::StrCat("5 proxy, ", ProxyName(facts));
    case ncclProfileProxyStep:
      return absl::StrCat("6 steps, ", parent != nullptr ? ProxyName(*parent) : "");
    case ncclProfileProxyCtrl:
      return "8 proxy thread";
    case ncclProfileKernelCh:
      return absl::StrCat("4 GPU, channel ", facts.channel);
    case ncclProfileNetPlugin:
      return absl::StrCat("7 lane ", lane);
    default:
      return "9 other";
  }
}

}  // namespace

std::vector<uint32_t>* Tracks::RowsOf(uint64_t key) {
  if (!IsFull()) return &rows_[key];
  const auto rows = rows_.find(key);
  return rows != rows_.end() ? &rows->second : nullptr;
}

uint32_t Tracks::Add(const std::string& name, int64_t until_ns, std::vector<uint32_t>* rows) {
  const uint32_t row = ++latest_;
  new_.push_back({row, rows->empty() ? name : absl::StrCat(name, " (", rows->size() + 1, ")")});
  until_ns_[row] = until_ns;
  rows->push_back(row);
  return row;
}

std::vector<NewTrack> Tracks::TakeNew() { return std::exchange(new_, {}); }

std::vector<uint32_t> Tracks::Forget(uint32_t communicator) {
  std::vector<uint32_t> gone;
  absl::erase_if(rows_, [&](const auto& kind) {
    if ((kind.first >> kCommunicatorAt & kCommunicatorMask) != (communicator & kCommunicatorMask)) return false;
    gone.insert(gone.end(), kind.second.begin(), kind.second.end());
    return true;
  });
  for (const uint32_t row : gone) until_ns_.erase(row);
  return gone;
}

uint64_t TrackKey(const EventFacts& facts, const EventFacts* parent, uint32_t communicator, uint32_t lane) {
  // Steps lie in the rows of their operation.
  const EventFacts& of = facts.type == ncclProfileProxyStep && parent != nullptr ? *parent : facts;
  const uint64_t kind = static_cast<uint64_t>(__builtin_ctz(facts.type | 1u << 15));
  const uint64_t where = facts.type == ncclProfileNetPlugin ? lane
                                                            : static_cast<uint64_t>(of.channel & 0xff) << 20 |
                                                                  static_cast<uint64_t>(of.peer & 0xfffff);
  return kind << 60 | static_cast<uint64_t>(of.sends) << 59 | (communicator & kCommunicatorMask) << kCommunicatorAt |
         where;
}

std::string TrackName(const EventFacts& facts, const EventFacts* parent, const std::string& communicator,
                      const std::string& lane) {
  return absl::StrCat(communicator, ": ", KindName(facts, parent, lane));
}

}  // namespace tcpx
