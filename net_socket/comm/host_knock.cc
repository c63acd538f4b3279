#include "net_socket/comm/host_knock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/socket.h"
#include "net_socket/comm/tuning.h"

namespace tcpx {
namespace {

std::string NameOf(const HostKnocks::Way& way) {
  return absl::StrCat(way.from.HostString(), " ", way.listens ? way.to.ToString() : way.to.HostString());
}

}  // namespace

bool HostKnocks::Answers(const Way& way, int64_t since_ns, int64_t now_ns) {
  Look(now_ns);
  wanted_ns_ = now_ns;
  const std::string name = NameOf(way);
  const Known& known = known_[name];
  const auto answered = [&] { return known.answered_ns != 0 && known.answered_ns >= since_ns; };
  if (answered()) return true;
  const bool paused =
      known.asked_ns != 0 && known.asked_ns >= since_ns && now_ns - known.asked_ns < tuning::kKnockAgainNs;
  bool room = questions_.size() < tuning::kKnocksAtOnce && !paused;
  for (const Question& question : questions_) room = room && question.way != name;
  if (room) Ask(name, way, now_ns);
  return answered();
}

void HostKnocks::Look(int64_t now_ns) {
  if (questions_.empty()) {
    if (!known_.empty() && now_ns - wanted_ns_ > tuning::kKnockForgottenNs) known_.clear();
    return;
  }
  pollfd sockets[tuning::kKnocksAtOnce];
  for (size_t i = 0; i < questions_.size(); ++i) sockets[i] = {questions_[i].fd.get(), POLLOUT, 0};
  if (poll(sockets, questions_.size(), 0) < 0) return;
  std::vector<Question> open;
  for (size_t i = 0; i < questions_.size(); ++i) {
    Question& question = questions_[i];
    if (sockets[i].revents != 0) {
      Note(question.way, question.asked_ns, TakeSocketError(question.fd.get()));
    } else if (now_ns - question.asked_ns < tuning::kKnockPatienceNs) {
      open.push_back(std::move(question));
    }
  }
  questions_ = std::move(open);
}

void HostKnocks::Ask(const std::string& name, const Way& way, int64_t now_ns) {
  OwnedFd fd(socket(way.to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  SocketAddress from = way.from;
  from.set_port(0);
  if (bind(fd.get(), from.sockaddr(), from.length()) != 0) return;
  const int err = connect(fd.get(), way.to.sockaddr(), way.to.length()) == 0 ? 0 : errno;
  if (err != EINPROGRESS) return Note(name, now_ns, err);
  known_[name].asked_ns = now_ns;
  questions_.push_back({name, std::move(fd), now_ns});
}

void HostKnocks::Note(const std::string& name, int64_t asked_ns, int err) {
  if (err == 0 || err == ECONNREFUSED) known_[name].answered_ns = asked_ns;
}

}  // namespace tcpx
