#include "bench/netns/wire/chance.h"

namespace tcpx {
namespace wire {

uint64_t Random::Next() {
  uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

bool LossModel::Lose(double share, double run, Random* random) {
  if (share <= 0) return bad_ = false;
  if (share >= 1) return bad_ = true;
  if (run <= 1) return random->Share() < share;
  // In balance share = enter / (enter + leave), and a stay in the bad state takes 1 / leave segments.
  const double leave = 1 / run;
  const double enter = leave * share / (1 - share);
  bad_ = bad_ ? random->Share() >= leave : random->Share() < enter;
  return bad_;
}

}  // namespace wire
}  // namespace tcpx
