#include "net_socket/message/hello_status.h"

#include <algorithm>
#include <iterator>

namespace tcpx {
namespace {

struct Row {
  HelloStatus status;
  const char* to_dialler;  // null: never in an answer
  const char* in_log;      // null: no rejection
};

constexpr Row kRows[] = {
    {HelloStatus::kAccepted, "accepted", nullptr},
    {HelloStatus::kWrongVersion, "the peer speaks another wire version: install one build of tcpx on all ranks",
     "speaks another wire version: install one build of tcpx on all ranks"},
    {HelloStatus::kUnknownTicket, "nobody listens with this handle any more",
     "has a ticket that nobody listens for (any more)"},
    {HelloStatus::kBadLane, "the peer refused the lane index", "asked for a lane that its connection can't have"},
    {HelloStatus::kDuplicateLane, "the peer has this lane already", "asked for a lane that is there already"},
    {HelloStatus::kBusy,
     "the peer has no room for it now: connections that it has not accepted, or strangers, have a quarter of its "
     "`ulimit -n`",
     "asked for a lane that its connection can't have"},
    {HelloStatus::kBadTrafficClass, "the peer refused the traffic class", "asked for a traffic class that is none"},
    {HelloStatus::kUnknownKind, "the peer does not know this kind of socket: install one build of tcpx on all ranks",
     "asked for a kind of socket that this build does not know"},
    {HelloStatus::kProve, "the peer asks for a proof", nullptr},
    {HelloStatus::kSecretMissing,
     "the peer has a shared secret and this process has none: set TCPX_SECRET_FILE alike on all ranks",
     "has no shared secret: set TCPX_SECRET_FILE alike on all ranks"},
    {HelloStatus::kSecretAlone,
     "this process has a shared secret and the peer has none: set TCPX_SECRET_FILE alike on all ranks",
     "has a shared secret and this process has none: set TCPX_SECRET_FILE alike on all ranks"},
    {HelloStatus::kSecretWrong, "the peer has another shared secret: give all ranks the same TCPX_SECRET_FILE",
     "did not prove the shared secret: give all ranks the same TCPX_SECRET_FILE"},
    {HelloStatus::kGone, "the peer no longer has this connection", "asked for a lane of a connection that is gone"},
    {HelloStatus::kEncryptMissing,
     "the peer has TCPX_ENCRYPT=1 and this process has not: set TCPX_ENCRYPT alike on all ranks",
     "does not encrypt, and this process has TCPX_ENCRYPT=1: set TCPX_ENCRYPT alike on all ranks"},
    {HelloStatus::kEncryptAlone,
     "this process has TCPX_ENCRYPT=1 and the peer has not: set TCPX_ENCRYPT alike on all ranks",
     "has TCPX_ENCRYPT=1 and this process has not: set TCPX_ENCRYPT alike on all ranks"},
    {HelloStatus::kNoCipher, "the peer has none of the ciphers that this process has: see TCPX_ENCRYPT_CIPHER",
     "has none of the ciphers that this process has: see TCPX_ENCRYPT_CIPHER"},
    {HelloStatus::kSilent, nullptr, "said nothing within TCPX_HELLO_TIMEOUT"},
    {HelloStatus::kScan, nullptr, "sent nothing and left (a port scan, a probe, or a lane that its dialler gave up)"},
    {HelloStatus::kUnfinished, nullptr, "did not finish its hello"},
    {HelloStatus::kForeign, nullptr, "does not speak tcpx (HTTP, TLS or garbage)"},
    {HelloStatus::kLeft, nullptr, "left before this process, which was late or stopped, answered it"},
    {HelloStatus::kChanged, nullptr,
     "proved the secret, but what came after that was changed on the path (TCPX_ENCRYPT)"},
    {HelloStatus::kUnaccepted, nullptr,
     "has to come again: connections that were not accepted, and health sockets without one, have a quarter of the "
     "descriptors"},
    {HelloStatus::kCrowd, nullptr, "had to make room: too many sockets have not said their hello"},
};

const char* Text(HelloStatus status, const char* Row::*column, const char* otherwise) {
  const Row* row =
      std::find_if(std::begin(kRows), std::end(kRows), [status](const Row& each) { return each.status == status; });
  return row == std::end(kRows) || row->*column == nullptr ? otherwise : row->*column;
}

bool MayBeLane(HelloStatus status) {
  return status == HelloStatus::kBusy || status == HelloStatus::kLeft || status == HelloStatus::kCrowd ||
         status == HelloStatus::kUnaccepted;
}

bool MayBePeer(HelloStatus status) {
  return status == HelloStatus::kSecretMissing || status == HelloStatus::kSecretAlone ||
         status == HelloStatus::kSecretWrong || status == HelloStatus::kWrongVersion ||
         status == HelloStatus::kEncryptMissing || status == HelloStatus::kEncryptAlone ||
         status == HelloStatus::kNoCipher || status == HelloStatus::kChanged;
}

}  // namespace

const char* HelloStatusText(HelloStatus status) {
  return Text(status, &Row::to_dialler, "the peer refused for a reason this build does not know");
}

const char* RejectedText(HelloStatus status) {
  return MayBeLane(status) ? "lane, or stranger," : MayBePeer(status) ? "peer, or stranger," : "stranger";
}

const char* AllRejectedText(HelloStatus status) {
  return MayBeLane(status) ? "lanes, or strangers" : MayBePeer(status) ? "peers, or strangers" : "strangers";
}

const char* RejectionText(HelloStatus status) { return Text(status, &Row::in_log, "is strange"); }

}  // namespace tcpx
