#include "net_socket/health/wait_exchange.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "net_socket/health/wait_news.h"

namespace tcpx {
namespace {

std::string OwnName(uint64_t number) {
  WaitNews news;
  news.who = ThisProcessName();
  news.process = number;
  return EncodeNews(news);
}

}  // namespace

void WaitExchange::Begin() {
  {
    MutexLock lock(mutex_);
    introduced_ = false;
  }
  if (dialled_) Introduce();
}

// A peer that closes resets what it has not read: after its bye that is no death.
void WaitExchange::Introduce() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(introduced_, true)) return;
  }
  (void)socket_->SayNow(WaitsNotice(ConnectionId{}, OwnName(ThisProcessNumber())), HealthSocket::Passing::kGreeting);
}

void WaitExchange::Hear(const HealthNotice& notice) {
  WaitNews news;
  if (!DecodeNews(notice.waits, &news)) return;
  if (notice.connection != ConnectionId{}) {
    if (news.asks) (void)Send(notice.connection, OwnName(0));
    return;
  }
  {
    MutexLock lock(mutex_);
    peer_name_ = news.who;
    if (process_.empty()) process_ = news.process == 0 ? news.who : absl::StrCat("number ", news.process);
  }
  if (!dialled_) Introduce();
}

bool WaitExchange::Send(const ConnectionId& id, const std::string& news) {
  return socket_->SayNow(WaitsNotice(id, news));
}

std::string WaitExchange::peer_name() const {
  MutexLock lock(mutex_);
  return peer_name_;
}

std::string WaitExchange::process() const {
  MutexLock lock(mutex_);
  return process_;
}

}  // namespace tcpx
