// releases.h: which version of the interface each release of NCCL takes from a plugin that exports them all.
//
// Purpose: tools say beforehand what a job's log will say.
// Threads: any; pure.
// Units:   a release is what ncclGetVersion gives: 22803 is 2.28.3 (2.8 and before: 2803).
// Errors:  0: the release takes none of them.
// Source:  nccl/net_tables.h names the first and the last release that has each version as its newest.
#pragma once

namespace tcpx {

constexpr int NetVersionOf(int release) {
  constexpr struct {
    int first_release;
    int version;
  } kNewest[] = {{23003, 12}, {22803, 11}, {22602, 10}, {22403, 9}, {22003, 8}, {21900, 7}, {21304, 6}};
  for (const auto& row : kNewest) {
    if (release >= row.first_release) return row.version;
  }
  return 0;
}

}  // namespace tcpx
