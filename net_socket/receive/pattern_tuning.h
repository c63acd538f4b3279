// pattern_tuning.h: the receiving socket of lane 0, set for the pattern at which its peer sends.
//
// Purpose: on a socket that carries data in one direction only, acknowledgements are packets of their own: where the
//          peer waits for our answer they are put off, or sent when nobody waits for a CPU; a stream gets them at once.
//          On the same host large messages get a larger window than others, which should stay in the caches. Between
//          hosts it does nothing (PathProfile): acknowledgements held back there showed the sender round trips of 13 to
//          17 ms where the path had 0.1 to 0.3, and lost packets were missed that late.
// Threads: one at a time. Units: bytes, nanoseconds. Errors: none; a kernel that refuses an option is only slower.
#pragma once

#include <cstdint>

#include "net_socket/nic/path_profile.h"
#include "net_socket/receive/traffic_pattern.h"

namespace tcpx {

class PatternTuning {
 public:
  // `acks_awaited`: the sender keeps what is not acknowledged, and waits for that beyond kCopiedPayloadBytesMax. The
  // socket has answered its hello.
  PatternTuning(int fd, const PathProfile& path, bool acks_awaited = false);

  // To be called after every read: the pattern the peer now sends at, and the size of the largest message that the read
  // was about.
  void Keep(TrafficPattern pattern, uint64_t message_bytes);
  // The socket has sent something: the kernel puts acknowledgements off from here on.
  void Answered() { acks_at_once_ = false; }
  // The descriptor names another socket, as ConfigureLane set it.
  void SocketReplaced();
  // From here on the socket may be polled: every byte wakes.
  void Stop() { SetLowWater(1); }

 private:
  void AckAtOnce(bool awaited);
  void SetLowWater(int bytes);
  void SetReceiveBuffer(int bytes);
  void DelayAcks();

  const int fd_;
  const bool may_delay_acks_;
  const bool acks_awaited_;
  const bool may_set_low_water_;
  const bool may_set_receive_buffer_;
  int low_water_ = 1;                    // the kernel's default
  int receive_buffer_ = kSameHostBytes;  // as ConfigureLane set it
  int64_t delayed_at_ns_ = 0;            // 0: acknowledgements are not delayed
  bool acks_at_once_ = false;            // as far as is known
  int64_t awaited_at_ns_ = 0;            // a message whose sender waits came at the latest; 0: none
};

}  // namespace tcpx
