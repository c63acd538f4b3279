// channel.h: one direction of one connection, as the driver loop sees it, whatever moves the bytes.
//
// Purpose: the plugin and the bare sockets run under the very same loop.
// Threads: one driver. Lifetime: a posted buffer stays valid until its Test says kDone.
// Units:   bytes.
// Errors:  Step::kFailed; Failure() then says what and why, and the channel is of no further use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tcpx {
namespace bench {

enum class Step { kAgain, kDone, kFailed };

class Channel {
 public:
  virtual ~Channel() = default;
  // Posts the next message: a send of `bytes`, or a receive of up to `bytes` + kSpareCapacity (buffers.h). kAgain: not
  // now, call again with the same arguments.
  virtual Step Post(uint8_t* data, size_t bytes) = 0;
  // Looks after the oldest posted message and nothing else. kDone: it is finished; *bytes is its real size.
  virtual Step Test(size_t* bytes) = 0;
  virtual std::string Failure() const = 0;
};

// The channels of one process: sends[i] and receives[i] are connection i's.
class Link {
 public:
  virtual ~Link() = default;
  virtual const std::vector<Channel*>& sends() const = 0;
  virtual const std::vector<Channel*>& receives() const = 0;
  // Ends what the plugin has made for it. Bare sockets end with the link.
  virtual absl::Status Close() { return absl::OkStatus(); }
};

}  // namespace bench
}  // namespace tcpx
