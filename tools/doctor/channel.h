// channel.h: what two doctors say to each other: lines of text over TCP.
//
// Purpose: one question a connection. The first line is "tcpx_doctor 1 QUESTION name=value...", and both sides know
//          from it what follows.
// Threads: one. Lifetime: closes its socket.
// Units:   nanoseconds. Errors: kUnavailable: the peer, the network, or nothing came in time; a line above kLineMax.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/fd.h"

namespace tcpx {
namespace doctor {

inline constexpr size_t kLineMax = 8192;
inline constexpr int64_t kPatienceNs = 5 * kSecond;

class Channel {
 public:
  // From `own` where that is an address, else from wherever routes lead.
  static absl::StatusOr<Channel> Dial(const SocketAddress& peer, const SocketAddress& own,
                                      int64_t patience_ns = 3 * kSecond);
  explicit Channel(OwnedFd fd) : fd_(std::move(fd)) {}

  absl::Status Send(absl::string_view line);
  absl::StatusOr<std::string> Receive(int64_t patience_ns = kPatienceNs);
  // Sends, and gives the answer.
  absl::StatusOr<std::string> Ask(absl::string_view line, int64_t patience_ns = kPatienceNs);
  int fd() const { return fd_.get(); }

 private:
  absl::Status Wait(short events, int64_t until);

  OwnedFd fd_;
  std::string received_;
};

// "a=1 b=two" -> {{"a", "1"}, {"b", "two"}}; words without "=" are left out.
using Fields = std::map<std::string, std::string>;
Fields ParseFields(absl::string_view line);
// `fallback` where there is no such number.
int64_t NumberOf(const Fields& fields, const std::string& name, int64_t fallback);
std::string TextOf(const Fields& fields, const std::string& name);

}  // namespace doctor
}  // namespace tcpx
