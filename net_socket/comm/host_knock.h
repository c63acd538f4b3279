// host_knock.h: whether hosts answer a new connect, while none of the sockets to them is heard.
//
// Purpose: a firewall that drops flows lets a new one through; a host that is gone answers nothing. A port that refuses
//          is an answer of the host's kernel as well. One question serves all connections on the same path, and few
//          are under way at once, however many connections and hosts are silent.
// Threads: one at a time. Units: nanoseconds of MonotonicNanos.
// Errors:  what can't be asked has no answer; it is asked again at the next look.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/address.h"
#include "common/fd.h"

namespace tcpx {

class HostKnocks {
 public:
  struct Way {
    SocketAddress from;  // its port does not matter
    SocketAddress to;
    // It listens at `to`. Else it has dialled from there, its kernel refuses, and another port would do as well.
    bool listens = false;
  };

  // Whether the host has answered what was asked since `since_ns`, when the silence began. Asks where that was not
  // asked, and never waits.
  bool Answers(const Way& way, int64_t since_ns, int64_t now_ns);
  // Hears answers, and gives up what has none.
  void Look(int64_t now_ns);

 private:
  struct Question {
    std::string way;
    OwnedFd fd;
    int64_t asked_ns = 0;
  };
  // When the latest question was asked, and the latest of those that have an answer; 0: none.
  struct Known {
    int64_t asked_ns = 0;
    int64_t answered_ns = 0;
  };

  void Ask(const std::string& name, const Way& way, int64_t now_ns);
  // The result of a connect: an answer, or an error of the path.
  void Note(const std::string& name, int64_t asked_ns, int err);

  std::vector<Question> questions_;
  std::map<std::string, Known> known_;
  int64_t wanted_ns_ = 0;  // when anybody last wanted to know
};

}  // namespace tcpx
