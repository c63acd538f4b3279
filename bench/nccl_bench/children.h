// children.h: starts processes and waits for all of them.
//
// Purpose: what a launcher is for a job, on one machine: when one fails the others are ended, so that nothing is left.
// Threads: one.
// Units:   seconds.
// Errors:  RunChildren: the number of children that failed, with one line each on stderr.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tcpx {
namespace nccl_bench {

struct Child {
  std::string name;                    // in messages
  std::vector<std::string> arguments;  // [0] is the program's path
  // Variables set in addition to those of this process; an empty value removes the variable.
  std::map<std::string, std::string> environment;
  bool killed_on_purpose = false;  // SIGKILL is its right end, and the only one
};

struct ChildLimits {
  // What the others get to notice by themselves that one has failed, before they are killed.
  int grace_s = 5;
  // What the others get after the first one has ended well.
  int straggler_s = 120;
};

int RunChildren(const std::vector<Child>& children, const ChildLimits& limits);

}  // namespace nccl_bench
}  // namespace tcpx
