#include "tests/plugin/encryption/middle.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/socket.h"

namespace tcpx {
namespace {

void Need(bool well) {
  if (well) return;
  perror("middle");
  abort();
}

}  // namespace

Middle::Middle(const SocketAddress& target, const Attack& attack)
    : target_(target), attack_(attack), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const SocketAddress local = *SocketAddress::Parse("127.0.0.1");
  Need(bind(listener_.get(), local.sockaddr(), local.length()) == 0 && listen(listener_.get(), 64) == 0);
  address_ = *LocalAddress(listener_.get());
  thread_ = std::thread([this] { Run(); });
}

Middle::~Middle() {
  stop_ = true;
  thread_.join();
}

std::vector<std::pair<std::string, std::string>> Middle::Said() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::pair<std::string, std::string>> said;
  for (const auto& relay : relays_) {
    if (relay != nullptr) said.emplace_back(relay->passed[0], relay->passed[1]);
  }
  return said;
}

std::string Middle::Passed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string all = over_;
  for (const auto& relay : relays_) {
    if (relay != nullptr) all += relay->passed[0] + relay->passed[1];
  }
  return all;
}

void Middle::AcceptOne() {
  auto relay = std::make_unique<Relay>();
  relay->ends[0] = OwnedFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  relay->ends[1] = OwnedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Need(relay->ends[0].valid() && relay->ends[1].valid());
  const int one = 1;
  for (const OwnedFd& end : relay->ends) setsockopt(end.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (connect(relay->ends[1].get(), target_.sockaddr(), target_.length()) != 0) relay = nullptr;
  relays_.push_back(std::move(relay));
}

bool Middle::ChangeMore(Relay* relay, int from, std::string* bytes) {
  const size_t passed = relay->passed[from].size();
  const size_t before = passed - bytes->size();
  if (passed <= attack_.at) return true;
  attacked_ = true;
  const size_t at = attack_.at > before ? attack_.at - before : 0;
  if (attack_.kind == Attack::Kind::kSwallowReset) {
    bytes->resize(at);
  } else if (attack_.at >= before) {
    (*bytes)[at] ^= 1;
  }
  relay->resets = passed >= attack_.at + attack_.bytes;
  return true;
}

void Middle::Replay(const Relay& relay, std::string* bytes) {
  const size_t before = relay.passed[0].size() - bytes->size();
  if (attack_.bytes < before || attack_.bytes > relay.passed[0].size()) return;
  bytes->insert(attack_.bytes - before, said_.substr(attack_.bytes));
  attacked_ = true;
}

bool Middle::Change(Relay* relay, int index, int from, std::string* bytes) {
  const size_t before = relay->passed[from].size() - bytes->size();
  if (from == 0 && index != attack_.socket && !said_.empty()) Replay(*relay, bytes);
  const bool here = index == attack_.socket && (from == 0) == attack_.forward && attack_.kind != Attack::Kind::kNone;
  const bool more = attack_.kind == Attack::Kind::kFlipReset || attack_.kind == Attack::Kind::kSwallowReset;
  if (here && more) return ChangeMore(relay, from, bytes);
  if (!here || attack_.at < before || attack_.at >= before + bytes->size()) return true;
  const size_t at = attack_.at - before;
  attacked_ = attack_.kind != Attack::Kind::kResetReplay;
  switch (attack_.kind) {
    case Attack::Kind::kNone:
    case Attack::Kind::kFlipReset:
    case Attack::Kind::kSwallowReset:
      break;
    case Attack::Kind::kFlip:
      (*bytes)[at] ^= 1;
      break;
    case Attack::Kind::kDrop:
      bytes->erase(at, attack_.bytes);
      break;
    case Attack::Kind::kRepeat:
      bytes->insert(at, relay->passed[from].substr(attack_.at - attack_.bytes, attack_.bytes));
      break;
    case Attack::Kind::kForeign:
      bytes->insert(at, std::string(attack_.bytes, '\0'));
      break;
    case Attack::Kind::kResetReplay:
      said_ = relay->passed[0];
      [[fallthrough]];
    case Attack::Kind::kReset:
      for (const OwnedFd& end : relay->ends) (void)SetResetOnClose(end.get());
      return false;
    case Attack::Kind::kEnd:
      (void)!send(relay->ends[1 - from].get(), bytes->data(), at, MSG_NOSIGNAL);
      return false;
  }
  return true;
}

bool Middle::Move(Relay* relay, int index, int from) {
  char buffer[65536];
  const ssize_t got = recv(relay->ends[from].get(), buffer, sizeof(buffer), MSG_DONTWAIT);
  if (got < 0) return true;
  if (got == 0) return false;
  std::string bytes(buffer, static_cast<size_t>(got));
  relay->passed[from] += bytes;
  if (!Change(relay, index, from, &bytes)) return false;
  relay->waiting[1 - from] += bytes;
  return true;
}

void Middle::Run() {
  while (!stop_) {
    std::vector<pollfd> asked = {{listener_.get(), POLLIN, 0}};
    for (const auto& relay : relays_) {
      if (relay == nullptr) continue;
      for (int end = 0; end < 2; ++end) {
        const short write = relay->waiting[end].empty() ? 0 : POLLOUT;
        const short read = relay->waiting[1 - end].size() > (size_t{1} << 20) ? 0 : POLLIN;
        asked.push_back({relay->ends[end].get(), static_cast<short>(read | write), 0});
      }
    }
    (void)poll(asked.data(), asked.size(), 20);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (asked[0].revents != 0) AcceptOne();
    for (size_t i = 0; i < relays_.size(); ++i) {
      Relay* const relay = relays_[i].get();
      if (relay == nullptr) continue;
      bool stands = true;
      for (int end = 0; end < 2; ++end) {
        stands =
            stands && (relay->waiting[1 - end].size() > (size_t{1} << 20) || Move(relay, static_cast<int>(i), end));
      }
      for (int end = 0; end < 2; ++end) {
        std::string& waiting = relay->waiting[end];
        const ssize_t sent = send(relay->ends[end].get(), waiting.data(), waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) waiting.erase(0, static_cast<size_t>(sent));
      }
      if (relay->resets && relay->waiting[0].empty() && relay->waiting[1].empty()) {
        for (const OwnedFd& end : relay->ends) (void)SetResetOnClose(end.get());
        stands = false;
      }
      if (stands) continue;
      over_ += relay->passed[0] + relay->passed[1];
      relays_[i] = nullptr;
    }
  }
}

}  // namespace tcpx
