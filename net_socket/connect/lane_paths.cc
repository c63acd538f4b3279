#include "net_socket/connect/lane_paths.h"

#include <algorithm>

namespace tcpx {
namespace {

struct Choice {
  const LanePath* path;
  int carrying;  // lanes that go by it
};

}  // namespace

bool SamePath(const LanePath& one, const LanePath& other) { return one.nic == other.nic && one.peer == other.peer; }

LanePaths::LanePaths(std::vector<LanePath> own, int open) : own_(own), at_(std::move(own)), open_(own_.size(), true) {
  for (size_t lane = open < 0 ? own_.size() : static_cast<size_t>(open); lane < own_.size(); ++lane)
    open_[lane] = false;
}

const LanePath* LanePaths::Other(const LanePath& taken, int turn, const Serves& serves, const Carries& carries) const {
  std::vector<Choice> choices;
  for (const LanePath& path : own_) {
    const auto known = [&path](const Choice& choice) { return SamePath(*choice.path, path); };
    if (SamePath(path, taken) || !serves(path) || std::any_of(choices.begin(), choices.end(), known)) continue;
    int carrying = 0;
    for (int lane = 0; lane < lanes(); ++lane) {
      carrying += open_[static_cast<size_t>(lane)] && SamePath(at(lane), path) && carries(lane);
    }
    choices.push_back({&path, carrying});
  }
  if (choices.empty()) return nullptr;
  // None comes after all others.
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& one, const Choice& other) {
    return static_cast<unsigned>(one.carrying - 1) < static_cast<unsigned>(other.carrying - 1);
  });
  return choices[static_cast<size_t>(turn) % choices.size()].path;
}

}  // namespace tcpx
