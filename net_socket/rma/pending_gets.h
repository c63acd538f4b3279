// pending_gets.h: the gets of a group whose answers have not come.
//
// Purpose: an answer names a get by its token; only the rank that was asked may answer, once, and with as many bytes.
// Threads: under the group's mutex. Units: bytes.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "net_socket/rma/record.h"
#include "net_socket/rma/region_table.h"
#include "net_socket/rma/request.h"
#include "net_socket/rma/rma_receiver.h"

namespace tcpx {

class PendingGets {
 public:
  // The token.
  uint64_t Add(const RmaReceiver::Wanted& wanted, uint64_t bytes, RmaRequest* request);
  // Null: nobody has asked `rank` for that.
  RmaReceiver::Wanted* Find(uint32_t rank, const RmaRecord& gotten);
  void Answered(uint64_t token);
  // True: an answer would be written there.
  bool Uses(uint32_t region) const;
  // Requests whose slots are free belong to nobody.
  void Disown();

 private:
  struct Get {
    RmaReceiver::Wanted wanted;
    uint64_t bytes = 0;
    uint32_t rank = 0;
    RmaRequest* request = nullptr;
  };

  absl::flat_hash_map<uint64_t, Get> gets_;  // by token
  uint64_t next_token_ = 0;
};

}  // namespace tcpx
