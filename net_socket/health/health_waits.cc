// What passes on a health socket of what its ends wait for.
#include <string>

#include "common/address.h"
#include "net_socket/health/health.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/wait_news.h"
#include "net_socket/message/wire.h"

namespace tcpx {
namespace {

// Of a peer that does not read them: what it is told of failures matters more.
constexpr size_t kOutboxBytesMax = size_t{64} << 10;

}  // namespace

// A peer that closes resets what it has not read: behind its bye that is no death.
void Health::IntroduceLocked() {
  said_left_ = true;
  WaitNews news;
  news.who = ThisProcessName();
  SendNowLocked(WaitsNotice(ConnectionId{}, EncodeNews(news)));
}

void Health::HearWaitsLocked(const HealthNotice& notice) {
  WaitNews news;
  const auto found = members_.find(notice.connection);
  if (found != members_.end() && found->second.link != nullptr) return;
  if (!DecodeNews(notice.waits, &news)) return;
  if (notice.connection != ConnectionId{}) {
    if (news.asks) AnswerForNobodyLocked(notice.connection);
    return;
  }
  peer_name_ = news.who;
  if (!dialled_ && state_ == HealthState::kUp && !end_.has_value()) IntroduceLocked();
}

// Of a connection that is not there yet, or no more: the process lives, and nothing of it is posted.
void Health::AnswerForNobodyLocked(const ConnectionId& id) {
  if (state_ != HealthState::kUp || end_.has_value() || outbox_.size() > kOutboxBytesMax) return;
  said_left_ = true;
  WaitNews answer;
  answer.who = ThisProcessName();
  SendNowLocked(WaitsNotice(id, EncodeNews(answer)));
}

std::string Health::peer_name() {
  MutexLock lock(mutex_);
  return peer_name_;
}

bool Health::TellWaits(const ConnectionId& id, const std::string& news) {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp || end_.has_value() || outbox_.size() > kOutboxBytesMax) return false;
  said_left_ = true;
  SendNowLocked(WaitsNotice(id, news));
  return true;
}

bool Health::ReadTcp(LaneTcpInfo* info, std::string* hosts) {
  MutexLock lock(mutex_);
  if (state_ != HealthState::kUp || end_.has_value()) return false;
  if (hosts != nullptr) {
    *hosts = LocalAddress(fd_.get()).value_or(SocketAddress()).HostString() + " " +
             PeerAddress(fd_.get()).value_or(SocketAddress()).HostString();
  }
  return ReadLaneTcpInfo(fd_.get(), info);
}

}  // namespace tcpx
