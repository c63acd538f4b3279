// greeting.h: what two doctors tell each other first: their devices, and proofs of their secrets.
//
// Threads: any; no state. Units: bytes, Mbit/s.
// Errors:  as Channel's. A secret is proved by the plugin's handshake of an encrypted socket, and never sent.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/doctor/channel.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/patient.h"

namespace tcpx {
namespace doctor {

// One interface of a device, by one address.
struct PeerLink {
  int device = 0;
  std::string name;
  SocketAddress address;
  int prefix_bits = 0;
  int mtu = 0;
  int speed_mbps = 0;
  // Other interfaces of its host in the same subnet ("eth1+eth2"), if packets for one may come in by another.
  std::string shares;
  bool drops = false;  // rp_filter is 1: what comes in by an interface that its answer would not leave by is dropped
};

struct PeerFacts {
  std::string host;
  std::string version;
  std::string mark;                    // of its network namespace
  std::vector<PeerLink> links;         // of its devices
  std::vector<std::string> addresses;  // all that it has, but loopback and link-local
  // Parameters that do not have their defaults, as one word each.
  std::map<std::string, std::string> parameters;
};

// As this side tells them.
PeerFacts OwnFacts(const Patient& patient);
absl::Status SendFacts(const Patient& patient, Channel* channel);
absl::StatusOr<PeerFacts> AskFacts(Channel* channel);

// "pair": interfaces of one host that share a subnet, so that packets may take the wrong one.
void CheckSharedSubnets(const PeerFacts& facts, Report* report);

enum class SecretsAre { kSame, kDifferent, kNone, kOnlyHere, kOnlyThere };
absl::Status ProveSecret(const Patient& patient, absl::string_view question, Channel* channel);
absl::StatusOr<SecretsAre> CompareSecrets(const Patient& patient, Channel* channel);

// Round trips and the difference of the clocks, of the fastest of `count` questions.
struct Times {
  double rtt_us = 0;
  double clock_offset_us = 0;  // what the other clock is ahead
};
absl::Status AnswerTimes(Channel* channel);
absl::StatusOr<Times> AskTimes(Channel* channel, int count);

}  // namespace doctor
}  // namespace tcpx
