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

// What comes after the row's name that all of the type have.
std::string RestOfName(const EventFacts& facts, const EventFacts* parent, const std::string& lane) {
  switch (facts.type) {
    case ncclProfileP2p:
      return absl::StrCat(facts.peer);
    case ncclProfileProxyOp:
      return ProxyName(facts);
    case ncclProfileProxyStep:
      return parent != nullptr ? ProxyName(*parent) : "";
    case ncclProfileKernelCh:
      return absl::StrCat(facts.channel);
    case ncclProfileNetPlugin:
      return lane;
    default:
      return "";
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
  return absl::StrCat(communicator, ": ", EventTypeOf(facts.type).row, RestOfName(facts, parent, lane));
}

}  // namespace tcpx
