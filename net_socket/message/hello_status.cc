#include "net_socket/message/hello_status.h"

#include <algorithm>
#include <iterator>

namespace tcpx {
namespace {

// Who was rejected, as far as that is known: one, and several.
struct Who {
  const char* one;
  const char* all;
};
constexpr Who kStranger = {"stranger", "strangers"};
constexpr Who kLane = {"lane, or stranger,", "lanes, or strangers"};
constexpr Who kPeer = {"peer, or stranger,", "peers, or strangers"};

constexpr char kNeverSaid[] = "the peer refused for a reason this build does not know";
constexpr char kNoRejection[] = "is strange";

struct Row {
  HelloStatus status;
  const char* to_dialler;
  const char* in_log;
  Who who = kStranger;
};

constexpr Row kRows[] = {
    {HelloStatus::kAccepted, "accepted", kNoRejection},
    {HelloStatus::kWrongVersion, "the peer speaks another wire version: install one build of tcpx on all ranks",
     "speaks another wire version: install one build of tcpx on all ranks", kPeer},
    {HelloStatus::kUnknownTicket, "nobody listens with this handle any more",
     "has a ticket that nobody listens for (any more)"},
    {HelloStatus::kBadLane, "the peer refused the lane index", "asked for a lane that its connection can't have"},
    {HelloStatus::kDuplicateLane, "the peer has this lane already", "asked for a lane that is there already"},
    {HelloStatus::kBusy,
     "the peer has no room for it now: connections that it has not accepted, or strangers, have a quarter of its "
     "`ulimit -n`",
     "asked for a lane that its connection can't have", kLane},
    {HelloStatus::kBadTrafficClass, "the peer refused the traffic class", "asked for a traffic class that is none"},
    {HelloStatus::kUnknownKind, "the peer does not know this kind of socket: install one build of tcpx on all ranks",
     "asked for a kind of socket that this build does not know"},
    {HelloStatus::kProve, "the peer asks for a proof", kNoRejection},
    {HelloStatus::kSecretMissing,
     "the peer has a shared secret and this process has none: set TCPX_SECRET_FILE alike on all ranks",
     "has no shared secret: set TCPX_SECRET_FILE alike on all ranks", kPeer},
    {HelloStatus::kSecretAlone,
     "this process has a shared secret and the peer has none: set TCPX_SECRET_FILE alike on all ranks",
     "has a shared secret and this process has none: set TCPX_SECRET_FILE alike on all ranks", kPeer},
    {HelloStatus::kSecretWrong, "the peer has another shared secret: give all ranks the same TCPX_SECRET_FILE",
     "did not prove the shared secret: give all ranks the same TCPX_SECRET_FILE", kPeer},
    {HelloStatus::kGone, "the peer no longer has this connection", "asked for a lane of a connection that is gone"},
    {HelloStatus::kEncryptMissing,
     "the peer has TCPX_ENCRYPT=1 and this process has not: set TCPX_ENCRYPT alike on all ranks",
     "does not encrypt, and this process has TCPX_ENCRYPT=1: set TCPX_ENCRYPT alike on all ranks", kPeer},
    {HelloStatus::kEncryptAlone,
     "this process has TCPX_ENCRYPT=1 and the peer has not: set TCPX_ENCRYPT alike on all ranks",
     "has TCPX_ENCRYPT=1 and this process has not: set TCPX_ENCRYPT alike on all ranks", kPeer},
    {HelloStatus::kNoCipher, "the peer has none of the ciphers that this process has: see TCPX_ENCRYPT_CIPHER",
     "has none of the ciphers that this process has: see TCPX_ENCRYPT_CIPHER", kPeer},
    {HelloStatus::kSilent, kNeverSaid, "said nothing within TCPX_HELLO_TIMEOUT"},
    {HelloStatus::kScan, kNeverSaid,
     "sent nothing and left (a port scan, a probe, or a lane that its dialler gave up)"},
    {HelloStatus::kUnfinished, kNeverSaid, "did not finish its hello"},
    {HelloStatus::kForeign, kNeverSaid, "does not speak tcpx (HTTP, TLS or garbage)"},
    {HelloStatus::kLeft, kNeverSaid, "left before this process, which was late or stopped, answered it", kLane},
    {HelloStatus::kChanged, kNeverSaid,
     "proved the secret, but what came after that was changed on the path (TCPX_ENCRYPT)", kPeer},
    {HelloStatus::kUnaccepted, kNeverSaid,
     "has to come again: connections that were not accepted, and health sockets without one, have a quarter of the "
     "descriptors",
     kLane},
    {HelloStatus::kCrowd, kNeverSaid, "had to make room: too many sockets have not said their hello", kLane},
};

const Row& RowOf(HelloStatus status) {
  static constexpr Row kUnknown = {HelloStatus::kLocalOnly, kNeverSaid, kNoRejection};
  const Row* const end = std::end(kRows);
  const Row* const row = std::find_if(kRows, end, [status](const Row& each) { return each.status == status; });
  return row == end ? kUnknown : *row;
}

}  // namespace

const char* HelloStatusText(HelloStatus status) { return RowOf(status).to_dialler; }

const char* RejectedText(HelloStatus status) { return RowOf(status).who.one; }

const char* AllRejectedText(HelloStatus status) { return RowOf(status).who.all; }

const char* RejectionText(HelloStatus status) { return RowOf(status).in_log; }

}  // namespace tcpx
