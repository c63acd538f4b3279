// control.h: lines to a running relay, and its answers, over a UNIX socket.
//
// Purpose: a connection brings lines and half-closes; each gets its answer, then the connection is closed.
// Threads: one; a server's calls never block. Lifetime: the socket's name goes with the server.
// Units:   a request has 4 KiB at most.
// Errors:  a Status that names the call. A client that breaks off is forgotten.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/fd.h"

namespace tcpx {
namespace wire {

class ControlServer {
 public:
  // Answers one line with text that ends in a newline.
  using Handler = std::function<std::string(absl::string_view line)>;

  ControlServer() = default;  // listens nowhere
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  // What is left of an earlier server of this name goes.
  absl::Status Listen(const std::string& path);
  void Serve(const Handler& handler);
  // To be waited for with POLLIN.
  std::vector<int> fds() const;

 private:
  struct Client {
    OwnedFd fd;
    std::string request;
  };
  // False: it is done with.
  static bool Hear(Client* client, const Handler& handler);

  std::string path_;
  OwnedFd listener_;
  std::vector<Client> clients_;
};

// Sends `request` to the server there and returns its answer.
absl::StatusOr<std::string> Ask(const std::string& path, absl::string_view request);

}  // namespace wire
}  // namespace tcpx
