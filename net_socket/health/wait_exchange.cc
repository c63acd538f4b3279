#include "net_socket/health/wait_exchange.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "net_socket/health/verdict.h"

namespace tcpx {
namespace {

std::string OwnName(const ConnectionId& id, uint64_t number) {
  WaitNews news;
  news.who = ThisProcessName();
  news.process = number;
  return WaitsNotice(id, EncodeNews(news));
}

}  // namespace

void WaitExchange::Begin() {
  MutexLock lock(mutex_);
  introduced_ = false;
  if (dialled_) Introduce();
}

// A peer that closes resets what it has not read: after its bye that is no death.
void WaitExchange::Introduce() {
  if (std::exchange(introduced_, true)) return;
  (void)socket_->SayNow(OwnName(ConnectionId{}, ThisProcessNumber()), HealthSocket::Passing::kGreeting);
}

void WaitExchange::Hear(const HealthNotice& notice) {
  WaitNews news;
  if (!DecodeNews(notice.waits, &news)) return;
  if (notice.connection != ConnectionId{}) {
    if (news.asks) (void)socket_->SayNow(OwnName(notice.connection, 0));
    return;
  }
  MutexLock lock(mutex_);
  peer_name_ = news.who;
  if (process_.empty()) process_ = news.process == 0 ? news.who : absl::StrCat("number ", news.process);
  if (!dialled_) Introduce();
}

}  // namespace tcpx
