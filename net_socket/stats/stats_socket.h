// stats_socket.h: answers each connection with one JSON document, and closes.
//
// Purpose: TCPX_STATS_SOCKET. Nothing is read of a client, so nothing that it says can do harm; nobody waits for it.
//          At most kClientsMax are served at once, each for kClientNs; more are turned away, at most kAcceptsMax in
//          each kAcceptNs: a crowd must not keep the thread from the connections. Other users are turned away at once,
//          in kStrangersNs of each kAcceptNs at most, and have a long queue to fill before they keep anybody from
//          asking.
// Names:   "@name" is in the abstract name space of this network namespace; else a file's path, which with ".MARK"
//          after it it must have place in an address (107 bytes). "auto" is "@tcpx-UID-MARK" (this_host.h). %p is
//          the process's PID.
// Threads: one at a time.
// Errors:  Open: what the kernel says, or that a living process has the name. A file that a dead process left is
//          replaced. Those of other names are left alone: a socket of another host's living process, in a folder that
//          both share, refuses connections just as one that was left.
// Source:  unix(7): SO_PEERCRED.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/fd.h"

namespace tcpx {

class StatsSocket {
 public:
  static constexpr size_t kClientsMax = 16;
  static constexpr int64_t kClientNs = 2 * kSecond;
  static constexpr int kAcceptsMax = 8;
  static constexpr int64_t kAcceptNs = 50 * kMillisecond;
  static constexpr int64_t kStrangersNs = 5 * kMillisecond;
  static constexpr int kBacklog = 4096;

  static absl::StatusOr<std::unique_ptr<StatsSocket>> Open(const std::string& name);
  ~StatsSocket();

  const std::string& name() const { return name_; }

  // What to poll for. Returns when Serve is to be called at the latest, however quiet it is.
  int64_t AddPolls(int64_t now_ns, std::vector<pollfd>* polls) const;
  using Document = std::function<std::shared_ptr<const std::string>()>;
  void Serve(const std::vector<pollfd>& polls, int64_t now_ns, const Document& document);

 private:
  struct Client {
    OwnedFd fd;
    std::shared_ptr<const std::string> document;
    size_t sent = 0;
    int64_t until_ns = 0;
  };

  explicit StatsSocket(std::string name) : name_(std::move(name)) {}
  absl::Status Bind();
  // Gives the socket that is bound by the name `bound` its own.
  absl::Status Publish(const std::string& bound);
  void Accept(int64_t now_ns, const Document& document);
  // False: it is done with.
  static bool Send(Client* client);

  const std::string name_;
  OwnedFd listening_;
  dev_t device_ = 0;  // of the file
  ino_t inode_ = 0;
  int64_t accept_again_ns_ = 0;
  int accepts_ = 0;  // until accept_again_ns_
  std::vector<Client> clients_;
};

}  // namespace tcpx
