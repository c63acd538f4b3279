// hello_status.h: what becomes of a hello, with what either side says about it.
//
// Purpose: one list for both ends. Values below kLocalOnly travel in an answer and never change; those from there on
//          are what the acceptor sees, and mean nothing in one: such a socket gets no answer, or kBusy.
// Threads: pure. Errors: none; a value that this build does not know has a text, too.
#pragma once

#include <cstdint>

namespace tcpx {

enum class HelloStatus : uint16_t {
  kAccepted = 0,
  kWrongVersion = 1,
  kUnknownTicket = 2,  // nobody listens with this ticket (any more)
  kBadLane = 3,        // lane index or count out of range, or other than that of the first lane
  kDuplicateLane = 4,
  kBusy = 5,  // no room at the acceptor: it may come again
  kBadTrafficClass = 6,
  kUnknownKind = 7,      // of hello
  kProve = 8,            // no refusal: kNonceBytes follow, and a proof is awaited
  kSecretMissing = 9,    // the acceptor has a secret, the dialler says that it has none
  kSecretAlone = 10,     // the dialler has a secret, the acceptor has none
  kSecretWrong = 11,     // the proof is not that of the acceptor's secret
  kGone = 12,            // of kResume: the connection is closed, has failed, or was never here
  kEncryptMissing = 13,  // the acceptor encrypts, the dialler does not
  kEncryptAlone = 14,    // the dialler encrypts, the acceptor does not
  kNoCipher = 15,        // both do, and have no cipher in common

  kLocalOnly = 0x8000,
  kSilent = 0x8000,      // said nothing until TCPX_HELLO_TIMEOUT
  kScan = 0x8001,        // sent nothing and left
  kUnfinished = 0x8002,  // left, or ran out of time, within its hello
  kForeign = 0x8003,     // HTTP, TLS, garbage
  kCrowd = 0x8004,       // had to make room for another
  kLeft = 0x8005,        // said its hello and closed before it was answered
  kChanged = 0x8006,     // what was sealed after its hello is not what a peer has said
  kUnaccepted = 0x8007,  // no room among those that the application has not accepted
};

// What the dialler says of an answer.
const char* HelloStatusText(HelloStatus status);

// Who was rejected, for the acceptor's log, as far as that is known: "stranger"; "lane, or stranger," if a peer of this
// job may be turned away, too, and may come again; "peer, or stranger," if ranks may have different settings.
const char* RejectedText(HelloStatus status);
// The same of several.
const char* AllRejectedText(HelloStatus status);

// What the acceptor's log says about a peer that it turned away, after the address.
const char* RejectionText(HelloStatus status);

}  // namespace tcpx
