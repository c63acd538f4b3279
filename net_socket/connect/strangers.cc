#include "net_socket/connect/strangers.h"

#include "common/log.h"

namespace tcpx {
namespace {

const char* What(Stranger kind) {
  switch (kind) {
    case Stranger::kSilent:
      return "said nothing within TCPX_HELLO_TIMEOUT";
    case Stranger::kScan:
      return "left without a word (a port scan or a probe)";
    case Stranger::kHalf:
      return "did not finish its hello";
    case Stranger::kForeign:
      return "does not speak tcpx (HTTP, TLS or garbage)";
    case Stranger::kCrowd:
      return "had to make room: too many sockets have not said their hello";
    case Stranger::kVersion:
      return "speaks another wire version: install one build of tcpx on all ranks";
    case Stranger::kTicket:
      return "has a ticket that nobody listens for (any more)";
    case Stranger::kLane:
      return "asked for a lane that its connection can't have";
    case Stranger::kDuplicate:
      return "asked for a lane that is there already";
    case Stranger::kTrafficClass:
      return "asked for a traffic class that is none";
    case Stranger::kPurpose:
      return "asked for a kind of socket that this build does not know";
    case Stranger::kNoSecret:
      return "has no shared secret: set TCPX_SECRET_FILE alike on all ranks";
    case Stranger::kSecretAlone:
      return "has a shared secret and this process has none: set TCPX_SECRET_FILE alike on all ranks";
    case Stranger::kOtherSecret:
      return "did not prove the shared secret: give all ranks the same TCPX_SECRET_FILE";
  }
  return "is strange";
}

}  // namespace

Stranger StrangerOf(HelloStatus status) {
  switch (status) {
    case HelloStatus::kWrongVersion:
      return Stranger::kVersion;
    case HelloStatus::kUnknownTicket:
      return Stranger::kTicket;
    case HelloStatus::kDuplicateLane:
      return Stranger::kDuplicate;
    case HelloStatus::kBadTrafficClass:
      return Stranger::kTrafficClass;
    case HelloStatus::kUnknownKind:
      return Stranger::kPurpose;
    case HelloStatus::kSecretMissing:
      return Stranger::kNoSecret;
    case HelloStatus::kSecretAlone:
      return Stranger::kSecretAlone;
    case HelloStatus::kSecretWrong:
      return Stranger::kOtherSecret;
    default:
      return Stranger::kLane;
  }
}

void Strangers::NoteInLoop(Stranger kind, const SocketAddress& from) {
  Kind& state = At(kind);
  if (state.counting) {
    ++state.counted;
    state.latest = from;
    return;
  }
  TCPX_INFO("stranger %s %s; more of this kind are counted for %d s", from.ToString(), What(kind),
            period_ns_ / kSecond);
  StartCountingInLoop(kind);
}

void Strangers::StartCountingInLoop(Stranger kind) {
  At(kind).counting = true;
  At(kind).timer = reactor_->AddTimerInLoop(MonotonicNanos() + period_ns_, [this, kind] {
    At(kind).counting = false;
    if (At(kind).counted == 0) return;
    SayCounted(kind);
    StartCountingInLoop(kind);
  });
}

void Strangers::SayCounted(Stranger kind) {
  Kind& state = At(kind);
  TCPX_INFO("strangers: %d more, the latest %s: %s", state.counted, state.latest.ToString(), What(kind));
  state.counted = 0;
}

void Strangers::CloseInLoop() {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (!kinds_[i].counting) continue;
    reactor_->CancelTimerInLoop(kinds_[i].timer);
    kinds_[i].counting = false;
    if (kinds_[i].counted > 0) SayCounted(static_cast<Stranger>(i));
  }
}

}  // namespace tcpx
