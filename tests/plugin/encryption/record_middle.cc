#include "tests/plugin/encryption/record_middle.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/socket.h"
#include "net_socket/seal/record.h"
#include "tests/plugin/encryption/detour.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

// Nobody is read whose words the other end does not take.
constexpr size_t kWaitingMax = size_t{1} << 20;
constexpr auto kMoment = std::chrono::milliseconds(100);

void Need(bool well) {
  if (well) return;
  perror("record_middle");
  abort();
}

}  // namespace

RecordMiddle::RecordMiddle(const SocketAddress& target, const RecordAttack& attack, uint64_t seed)
    : target_(target), attack_(attack), rng_(seed), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const SocketAddress local = *SocketAddress::Parse("127.0.0.1");
  Need(bind(listener_.get(), local.sockaddr(), local.length()) == 0 && listen(listener_.get(), 64) == 0);
  Detour(target.port(), LocalAddress(listener_.get())->port());
  thread_ = std::thread([this] { Run(); });
}

RecordMiddle::~RecordMiddle() {
  Detour(0, 0);
  stop_ = true;
  thread_.join();
}

void RecordMiddle::AcceptOne() {
  auto flow = std::make_unique<Flow>();
  flow->number = accepted_++;
  flow->ends[0] = OwnedFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  flow->ends[1] = OwnedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Need(flow->ends[0].valid() && flow->ends[1].valid());
  const int one = 1;
  for (const OwnedFd& end : flow->ends) setsockopt(end.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (ConnectStraight(flow->ends[1].get(), target_) != 0) return;
  flows_.push_back(std::move(flow));
}

size_t RecordMiddle::NextBytes(const Flow& flow, int from, absl::string_view held) const {
  if (flow.bare) return held.size();
  if (flow.parts[from] < 2) {
    if (from == 0) return flow.parts[from] == 0 ? kHelloBytes : kProofBytes;
    Answer answer;
    int nics = 0;
    if (held.size() < kAnswerFixedBytes || DecodeAnswer(held.data(), &answer, &nics) != nullptr) return 0;
    if (answer.status == HelloStatus::kProve) return kAnswerFixedBytes + kNonceBytes;
    const size_t mac = answer.status == HelloStatus::kAccepted ? kMacBytes : 0;
    return kAnswerFixedBytes + static_cast<size_t>(nics) * kPeerNicBytes + mac;
  }
  uint32_t plain = 0;
  if (held.size() < sizeof(plain)) return 0;
  std::memcpy(&plain, held.data(), sizeof(plain));
  return plain + kSealBytes;
}

void RecordMiddle::PartPasses(Flow* flow, int from, const std::string& part) {
  const int number = flow->parts[from]++;
  if (from == 0 && number == 0) {
    Need(DecodeHello(part.data(), &flow->hello) == nullptr);
    const auto& id = flow->hello.connection_id;
    const auto known = std::find(connections_.begin(), connections_.end(), id);
    flow->connection = static_cast<int>(known - connections_.begin());
    if (known == connections_.end() && flow->hello.kind != HelloKind::kHealth) connections_.push_back(id);
  }
  if (from == 0) return;
  Answer answer;
  int nics = 0;
  Need(DecodeAnswer(part.data(), &answer, &nics) == nullptr);
  flow->bare = answer.status != HelloStatus::kProve && answer.status != HelloStatus::kAccepted;
}

bool RecordMiddle::Is(const Flow& flow, int from, const Place& place) const {
  if (flow.parts[0] == 0 || (from == 0) != place.forward) return false;
  if ((flow.hello.kind == HelloKind::kHealth) != place.health) return false;
  return place.health || (flow.connection == place.connection && flow.hello.lane == place.lane);
}

RecordMiddle::Flow* RecordMiddle::Newest(const Place& place) {
  const int from = place.forward ? 0 : 1;
  for (auto flow = flows_.rbegin(); flow != flows_.rend(); ++flow) {
    const bool open = (*flow)->parts[0] == 2 && (*flow)->parts[1] == 2 && !(*flow)->bare;
    if (open && (*flow)->end == End::kNone && Is(**flow, from, place)) return flow->get();
  }
  return nullptr;
}

bool RecordMiddle::GoesOn(Flow* flow, int from, std::string* record) {
  if (begun_ < 0) return false;
  if (attacked_ || !Is(*flow, from, attack_.at)) return true;
  if (attack_.kind == RecordAttack::Kind::kSwap && flow->number == begun_) {
    *record += said_;
    attacked_ = true;
  } else if (attack_.kind == RecordAttack::Kind::kReplay && flow->number != begun_) {
    record->insert(0, said_);
    attacked_ = true;
  } else if (attack_.kind == RecordAttack::Kind::kSwallowReset && flow->number == begun_) {
    record->clear();
  }
  return true;
}

void RecordMiddle::Attack(Flow* flow, int from, std::string* record) {
  using Kind = RecordAttack::Kind;
  if (attack_.kind == Kind::kNone || GoesOn(flow, from, record)) return;
  if (attack_.kind == Kind::kReplay && Is(*flow, from, attack_.at)) said_ += *record;
  const Place& moment = attack_.from.has_value() ? *attack_.from : attack_.at;
  if (!Is(*flow, from, moment) || flow->records[from] <= attack_.record) return;
  Flow* const target = attack_.from.has_value() ? Newest(attack_.at) : flow;
  if (target == nullptr) return;
  begun_ = target->number;
  std::string none;
  Begin(target, *record, attack_.from.has_value() ? &none : record);
}

void RecordMiddle::Begin(Flow* target, const std::string& said, std::string* record) {
  using Kind = RecordAttack::Kind;
  const auto flip = [&](size_t low, size_t high) {
    (*record)[rng_.Between(low, high)] ^= static_cast<char>(1 << rng_.Between(0, 7));
  };
  attacked_ = attack_.kind != Kind::kSwap && attack_.kind != Kind::kReplay && attack_.kind != Kind::kSwallowReset;
  switch (attack_.kind) {
    case Kind::kNone:
      break;
    case Kind::kFlip:
    case Kind::kFlipReset:
      flip(kSealedHeaderBytes, record->size() - 1);
      if (attack_.kind == Kind::kFlipReset) target->end = End::kReset;
      break;
    case Kind::kFlipLength:
      flip(0, kSealedHeaderBytes - 1);
      break;
    case Kind::kDrop:
      record->clear();
      break;
    case Kind::kRepeat:
      *record += said;
      break;
    case Kind::kSwap:
      said_ = said;
      record->clear();
      break;
    case Kind::kPutIn:
      target->waiting[attack_.at.forward ? 1 : 0] += said;
      break;
    case Kind::kCutReset:
      record->resize(rng_.Between(0, record->size() - 1));
      target->end = End::kReset;
      break;
    case Kind::kEnd:
    case Kind::kReset:
    case Kind::kReplay:
      target->end = attack_.kind == Kind::kEnd ? End::kInOrder : End::kReset;
      target->lossless = true;
      break;
    case Kind::kSwallowReset:
      over_at_ = std::chrono::steady_clock::now() + kMoment;
      record->clear();
      break;
  }
}

void RecordMiddle::Take(Flow* flow, int from) {
  std::string& held = flow->held[from];
  size_t at = 0;
  while (flow->end == End::kNone) {
    const size_t next = NextBytes(*flow, from, absl::string_view(held).substr(at));
    if (next == 0 || held.size() - at < next) break;
    std::string part = held.substr(at, next);
    at += next;
    if (!flow->bare && flow->parts[from] < 2) {
      PartPasses(flow, from, part);
    } else if (!flow->bare) {
      flow->records[from]++;
      Attack(flow, from, &part);
    }
    flow->waiting[1 - from] += part;
  }
  held.erase(0, at);
}

void RecordMiddle::Read(Flow* flow, int from) {
  if (flow->ended[from] || flow->end != End::kNone || flow->waiting[1 - from].size() > kWaitingMax) return;
  char buffer[65536];
  const ssize_t got = recv(flow->ends[from].get(), buffer, sizeof(buffer), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) flow->ended[from] = true;
  if (got < 0) flow->end = End::kReset;
  if (got == 0) flow->waiting[1 - from] += std::exchange(flow->held[from], std::string());
  if (got <= 0) return;
  flow->held[from].append(buffer, static_cast<size_t>(got));
  Take(flow, from);
}

void RecordMiddle::Write(Flow* flow, int to) {
  std::string& waiting = flow->waiting[to];
  const ssize_t sent = send(flow->ends[to].get(), waiting.data(), waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) waiting.erase(0, static_cast<size_t>(sent));
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    waiting.clear();
    flow->end = End::kReset;
  }
  if (waiting.empty() && flow->ended[1 - to] && flow->end == End::kNone) shutdown(flow->ends[to].get(), SHUT_WR);
}

void RecordMiddle::Drain(Flow* flow, int from) {
  (void)Swallow(flow->ends[from].get());
  std::string& waiting = flow->waiting[1 - from];
  waiting += std::exchange(flow->held[from], std::string());
  char buffer[65536];
  for (;;) {
    const ssize_t got = recv(flow->ends[from].get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got <= 0) break;
    waiting.append(buffer, static_cast<size_t>(got));
  }
}

bool RecordMiddle::Drained(Flow* flow) {
  if (flow->drained == 0) {
    Drain(flow, 0);
    flow->drained = 1;
  }
  if (!flow->waiting[1].empty() || QueuedBytes(flow->ends[1].get()) > 0) return false;
  if (flow->drained == 1) {
    Drain(flow, 1);
    flow->drained = 2;
  }
  return flow->waiting[0].empty();
}

bool RecordMiddle::Ends(Flow* flow) {
  const auto now = std::chrono::steady_clock::now();
  const bool swallows = attack_.kind == RecordAttack::Kind::kSwallowReset && flow->number == begun_ && !attacked_;
  if (swallows && now >= over_at_) {
    flow->end = End::kReset;
    attacked_ = true;
  }
  if (flow->end == End::kNone) return flow->ended[0] && flow->ended[1] && Idle(*flow);
  if (flow->lossless ? !Drained(flow) : !Idle(*flow)) return false;
  if (flow->end == End::kInOrder) {
    if (!std::exchange(flow->said_end, true)) {
      for (const OwnedFd& end : flow->ends) shutdown(end.get(), SHUT_WR);
      over_at_ = now + kMoment;
    }
    if (now < over_at_) return false;
  }
  for (const OwnedFd& end : flow->ends) (void)SetResetOnClose(end.get());
  return true;
}

void RecordMiddle::Run() {
  while (!stop_) {
    std::vector<pollfd> asked = {{listener_.get(), POLLIN, 0}};
    for (const auto& flow : flows_) {
      for (int end = 0; end < 2; ++end) {
        const bool reads = !flow->ended[end] && flow->end == End::kNone && flow->waiting[1 - end].size() <= kWaitingMax;
        const int events = (reads ? POLLIN : 0) | (flow->waiting[end].empty() ? 0 : POLLOUT);
        if (events != 0) asked.push_back({flow->ends[end].get(), static_cast<short>(events), 0});
      }
    }
    (void)poll(asked.data(), asked.size(), 20);
    if (asked[0].revents != 0) AcceptOne();
    for (auto& flow : flows_) {
      for (int end = 0; end < 2; ++end) Read(flow.get(), end);
    }
    for (auto& flow : flows_) {
      for (int end = 0; end < 2; ++end) Write(flow.get(), end);
    }
    const auto over = [this](auto& flow) { return Ends(flow.get()); };
    flows_.erase(std::remove_if(flows_.begin(), flows_.end(), over), flows_.end());
  }
}

}  // namespace tcpx
