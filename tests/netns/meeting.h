// meeting.h: two ranks on hosts of their own that find each other through files of a folder they share.
//
// Threads: one. Errors: as TCPX_REQUIRE: the process ends with what was wrong.
#pragma once

#include <string>

#include "tests/support/rank.h"

namespace tcpx {

// The files of the two handles; each rank writes its own.
struct Places {
  std::string own_handle;
  std::string peer_handle;
};

// One connection in each direction, with the rank whose places are exchanged.
Ends Connect(Rank* rank, void* context, int device, const Places& places);

}  // namespace tcpx
