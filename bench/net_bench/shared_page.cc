#include "bench/net_bench/shared_page.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "bench/command_line/sizes.h"
#include "common/clock.h"
#include "common/status.h"

namespace tcpx {
namespace bench {

const char* StageName(Stage stage) {
  switch (stage) {
    case Stage::kStarting:
      return "starting";
    case Stage::kOpenPlugin:
      return "opening the plugin";
    case Stage::kInit:
      return "init";
    case Stage::kListen:
      return "listen";
    case Stage::kConnect:
      return "connect and accept";
    case Stage::kRegister:
      return "regMr";
    case Stage::kRawSockets:
      return "connecting the bare sockets";
    case Stage::kWarmUp:
      return "warm-up";
    case Stage::kTransfer:
      return "transfer";
    case Stage::kPhaseProbe:
      return "phase probe";
    case Stage::kPeer:
      return "waiting for the other process";
    case Stage::kIdle:
      return "idle";
    case Stage::kDeregister:
      return "deregMr";
    case Stage::kCloseComm:
      return "closing connections";
    case Stage::kFinalize:
      return "finalize";
    case Stage::kUnload:
      return "unloading the plugin";
    case Stage::kExit:
      return "exit";
  }
  return "?";
}

const char* ImplementationName(Implementation implementation) {
  switch (implementation) {
    case Implementation::kPlugin:
      return "plugin";
    case Implementation::kRawOne:
      return "raw-1";
    case Implementation::kRawEachWay:
      return "raw-each-way";
    case Implementation::kRawTwo:
      return "raw-2";
    case Implementation::kRawFour:
      return "raw-4";
    case Implementation::kVs:
      return "vs";
    case Implementation::kSendReceive:
      return "isend-irecv";
  }
  return "?";
}

std::string Position::Describe() const {
  const Stage now = stage.load(std::memory_order_relaxed);
  std::string text = StageName(now);
  const bool moving = now == Stage::kTransfer || now == Stage::kWarmUp;
  if (moving) {
    absl::StrAppend(&text, ": ", ImplementationName(implementation.load(std::memory_order_relaxed)), ", ",
                    FormatSize(bytes.load(std::memory_order_relaxed)), " messages");
  }
  const bool per_connection = moving || now == Stage::kListen || now == Stage::kConnect || now == Stage::kRegister ||
                              now == Stage::kDeregister || now == Stage::kCloseComm;
  if (per_connection) absl::StrAppend(&text, ", connection ", connection.load(std::memory_order_relaxed));
  if (moving) absl::StrAppend(&text, ", message ", message.load(std::memory_order_relaxed));
  return text;
}

absl::StatusOr<SharedPage*> SharedPage::Create() {
  void* memory = mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "mmap of the shared page");
  return new (memory) SharedPage;
}

void SharedPage::SetError(int rank, absl::string_view text) {
  if (errors[rank][0] != '\0') return;
  error_ns[rank] = MonotonicNanos();
  const size_t bytes = std::min(text.size(), sizeof(errors[rank]) - 1);
  memcpy(errors[rank], text.data(), bytes);
  errors[rank][bytes] = '\0';
}

}  // namespace bench
}  // namespace tcpx
