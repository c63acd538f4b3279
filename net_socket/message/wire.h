// wire.h: every byte that tcpx puts on a socket or into a handle, and the checks of every byte that comes in.
//
// Purpose: encode and decode the chunk header, the hello of a lane, its answer, and NCCL's connection handle. Pure: no
//          system call, no state.
//
//   a lane's stream:  hello (dialler) -> answer (acceptor) -> { header [payload] [padding] }*
//                     On lane 0 kEstablished comes first, where both know kFeatureEstablished.
//   with a secret:    hello -> challenge (an answer that asks for proof, and a nonce) -> proof -> answer, then its MAC
//   with TCPX_ENCRYPT the nonces are public keys, and all after the answer is in records (seal/record.h)
//   reverse stream:   { header [body] }*     records only: credit, bye, error
//   a lane again:     hello of kind kResume -> answer, with the count of bytes taken -> the stream from there on
//   a health socket:  hello of that kind -> answer -> { header [body] }* in both directions, records only:
//                     error, parting, left, silent, waits, clock, bye. health_records.h says what is in them
// Versions: kWireVersion is in the hello and the handle. A record of an unknown kind is skipped by its length, so a
//           newer peer may add kinds (from kFirstRecord on) without a new version.
// Units:   bytes. Byte order is little endian, as on every machine that NCCL runs on.
// Errors:  decoders return a text (static storage) that says what is wrong, or null when all is right. Offset and
//          length of a decoded chunk always lie inside its message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/address.h"
#include "common/limits.h"
#include "common/traffic_class.h"
#include "net_socket/message/fields.h"
#include "net_socket/message/hello_status.h"

namespace tcpx {

inline constexpr uint16_t kWireVersion = 1;
// Largest message: NCCL_MAX_NET_SIZE_BYTES, NCCL 2.24 and later.
inline constexpr uint64_t kMessageBytesMax = uint64_t{1} << 40;
// Largest chunk: keeps the length in 32 bits; NCCL core never sends more than 1 GiB at once (2.12 to 2.30).
inline constexpr size_t kChunkBytesMax = size_t{1} << 30;
// Where lanes heal, the sender copies payload of lane 0 up to this size, and awaits acknowledgements for longer ones:
// the receiver puts them off after short ones only. A frame beyond it is more than one segment of loopback's: one that
// is as long as those before is acknowledged late before Linux 6.6, whatever the socket's options. Copies of 64 KiB and
// more cost a tenth of the rate (docs/experiments.md).
inline constexpr size_t kCopiedPayloadBytesMax = (64 << 10) - 1;
// Longest text that says why a connection has failed.
inline constexpr size_t kCauseBytesMax = 512;
// Longest body of a record; longer ones are refused as garbage.
inline constexpr uint32_t kRecordBytesMax = 64 * 1024;

// 65 was given away once, and never sent.
enum class FrameKind : uint8_t {
  kChunk = 1,         // a part of a message, payload follows
  kFirstRecord = 64,  // everything from here on is a record: skipped where it is not known
  kCredit = 64,       // receiver -> sender: a grouped receive was posted
  kBye = 66,          // no further frame follows on this lane
  kError = 67,        // the connection has failed; the body is a text that says why
  kParting = 68,      // an end has given the connection up; the body as of kError, and news only where it is missed
  kEstablished = 69,  // dialler -> acceptor, first on lane 0: all lanes are answered, and none will be dialled
  kLeft = 70,         // on a health socket: this end of the connection is closed, none of its lanes comes back
  kSilent = 71,       // there, receiver -> sender: what the receiver says on a lane is not acknowledged; move the lane
  kWaits = 76,        // on a health socket: what an end waits for (health_records.h)
  kClock = 77,        // there, too: what time it is, and the answer (health_records.h)
  kClose = 75,        // on a lane: if its socket ends after this record, the lane is closed and not lost
};

// A cache line, with 36 bytes in use: payload of a multiple of 64 bytes then lies on line boundaries in the
// kernel's buffers and in ours, and copies to other addresses are up to three times slower (docs/experiments.md).
inline constexpr size_t kHeaderBytes = 64;

struct FrameHeader {
  FrameKind kind = FrameKind::kChunk;
  uint16_t padding = 0;  // bytes after the payload that mean nothing
  uint32_t length = 0;   // bytes of payload, or of a record's body
  uint64_t sequence = 0;
  uint64_t offset = 0;         // of the payload in its message
  uint64_t message_bytes = 0;  // of the whole message
  int32_t tag = 0;
};

void EncodeHeader(const FrameHeader& header, char* out);
const char* DecodeHeader(const char* in, FrameHeader* header);
// A record of a health socket: a header and its body.
std::string EncodeRecord(FrameKind kind, absl::string_view body);
// The record that the acceptor waits for: kHeaderBytes, and no body.
void EncodeEstablished(char* out);
bool IsEstablished(const char* in);
// The body of an error record, fit for one log line: at most kCauseBytesMax bytes, what is not printable ASCII as '?'.
std::string CauseText(absl::string_view body);

using Ticket = std::array<uint8_t, 16>;
using ConnectionId = std::array<uint8_t, 16>;

// What NCCL carries from listen to connect. The first bytes of the 128; the rest is zero when sent.
struct Handle {
  SocketAddress address;
  Ticket ticket{};
  uint16_t nics = 1;  // interfaces of the device that listens: 1 to kNicsMax; the answer has their addresses
  // Where the same listener is found by the other family; not valid: nowhere, as in handles of older builds.
  SocketAddress other_address;
  uint16_t other_nics = 0;
};
inline constexpr size_t kHandleUsedBytes = 80;
// Where connect keeps its key, in the dialler's own copy of the handle.
inline constexpr size_t kHandleKeyOffset = 112;

void EncodeHandle(const Handle& handle, char* out);
const char* DecodeHandle(const char* in, Handle* handle);

// What a socket is for.
enum class HelloKind : uint16_t {
  kLane = 0,
  kHealth = 1,  // the first bytes of the connection id are the tag; no lane
  kResume = 2,  // another socket for a lane of a connection that is up, where both have kFeatureHeal
};

// Features of a hello: what the dialler has; of an answer: what the acceptor uses of it.
// The connection has a health socket; the first bytes of its id are that socket's tag.
inline constexpr uint64_t kFeatureHealth = 1;
// Both have a shared secret, and prove it (handshake.h).
inline constexpr uint64_t kFeatureSecret = 2;
// The dialler says kEstablished, and the acceptor takes nothing else for it (connect's pending_connection.h).
inline constexpr uint64_t kFeatureEstablished = 4;
// Lanes may get other sockets.
inline constexpr uint64_t kFeatureHeal = 8;
// With kFeatureHeal: so may the health socket.
inline constexpr uint64_t kFeatureHealHealth = 16;
// With kFeatureHeal: the dialler may open lanes that the connection did not begin with, below kLanesPilotedMax, and
// close bulk lanes. A hello of kResume, attempt 1, brings the first socket of such a lane.
inline constexpr uint64_t kFeaturePilot = 32;
// Both encrypt what follows the hello, by one of these ciphers (seal/cipher_suites.h), a bit each from
// kFeatureCipherShift on: in a hello those that the dialler has, in a challenge the one that the acceptor has chosen.
inline constexpr uint64_t kFeatureEncrypt = 64;
// The dialler's build knows encryption, used or not: older ones have no words for a refusal that is due to it.
inline constexpr uint64_t kFeatureKnowsEncrypt = 128;
inline constexpr int kFeatureCipherShift = 8;
inline constexpr uint64_t kFeatureCiphers = uint64_t{0xff} << kFeatureCipherShift;
// Lane 0 included.
inline constexpr int kLanesPilotedMax = 33;
// Whether lanes of a connection that begins with `lanes` of them may come and go.
inline constexpr bool LanesMayBePiloted(int lanes) { return lanes > 1 && lanes <= kLanesPilotedMax; }

// The first bytes on every lane, from the dialler.
struct Hello {
  uint16_t version = kWireVersion;
  Ticket ticket{};
  ConnectionId connection_id{};
  uint16_t lane = 0;
  uint16_t lanes = 1;
  HelloKind kind = HelloKind::kLane;
  uint64_t features = 0;
  // Messages up to this size travel whole on lane 0. In kResume: bytes of the reverse stream that were taken, modulo
  // 2^32; the receiver's records go on from there.
  uint32_t express_bytes = 0;
  // For the acceptor's packets: an octet without ECN bits, or kNoTrafficClass, which leaves them; else it is refused.
  int32_t traffic_class = kNoTrafficClass;
  // How often this socket was dialled before: a later one takes the place of an earlier one. Older builds say 0. In
  // kResume the lane's own count, from 1 on.
  uint32_t attempt = 0;
};
inline constexpr size_t kHelloBytes = 64;
// Bytes that tell a hello from another protocol.
inline constexpr size_t kHelloMagicBytes = 4;

void EncodeHello(const Hello& hello, char* out);
// A hello of another version decodes (the answer then says so); garbage does not.
const char* DecodeHello(const char* in, Hello* hello);

// Which health socket a connection belongs to.
uint64_t HealthTag(const ConnectionId& connection_id);

// One interface of the acceptor's device, and where it listens. The dialler fills in the scope of a link-local IPv6
// address: that of its own interface, since a scope means nothing on another host.
struct PeerNic {
  SocketAddress address;
  uint32_t speed_mbps = 0;
};
inline constexpr size_t kPeerNicBytes = SocketAddress::kEncodedBytes + 8;

// The acceptor's answer on every lane: a fixed part and `nics.size()` interfaces of kPeerNicBytes each.
struct Answer {
  uint16_t version = kWireVersion;
  HelloStatus status = HelloStatus::kAccepted;
  uint32_t max_receives = 1;  // of the acceptor's receive comm: above 1 sends wait for credits
  uint64_t features = 0;
  uint64_t taken = 0;         // of kResume: bytes of the lane's stream that have come
  std::vector<PeerNic> nics;  // where further lanes may go; empty: the handle's address
};
inline constexpr size_t kAnswerFixedBytes = 32;
inline constexpr size_t kAnswerBytesMax = kAnswerFixedBytes + kNicsMax * kPeerNicBytes;

// What both sides add with a shared secret. Every 32 bytes are a nonce (or a public key), or a MAC that is wrong.
inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kMacBytes = 32;
// The dialler's nonce and MAC.
inline constexpr size_t kProofBytes = kNonceBytes + kMacBytes;

size_t EncodeAnswer(const Answer& answer, char* out);
// Decodes the fixed part; `*nics` is how many follow, at most kNicsMax.
const char* DecodeAnswer(const char* in, Answer* answer, int* nics);
const char* DecodeAnswerNics(const char* in, int count, Answer* answer);

// Where a handle says on which host, and in which network namespace, its listener is (HostMark, common/this_host.h; 0:
// unknown): after the rest and before connect's key, so that builds without it are none the wiser. They say 0.
inline constexpr size_t kHandleHostMarkOffset = 104;
static_assert(kHandleUsedBytes <= kHandleHostMarkOffset);
static_assert(kHandleHostMarkOffset + sizeof(uint64_t) <= kHandleKeyOffset);

inline void WriteHostMark(uint64_t mark, char* handle) { PutFields(handle + kHandleHostMarkOffset, mark); }
inline uint64_t ReadHostMark(const char* handle) { return GetNumber<uint64_t>(handle + kHandleHostMarkOffset); }

}  // namespace tcpx
