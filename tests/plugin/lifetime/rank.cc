#include "tests/plugin/lifetime/rank.h"

#include <stdarg.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "absl/time/clock.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

struct Log {
  std::mutex mutex;
  int warnings = 0;
  std::string text;
};

Log& TheLog() {
  static Log* log = new Log;  // Lines may come while the process ends.
  return *log;
}

}  // namespace

void RecordLog(ncclDebugLogLevel level, unsigned long, const char*, int, const char* fmt, ...) {
  char line[2048];
  va_list arguments;
  va_start(arguments, fmt);
  std::vsnprintf(line, sizeof(line), fmt, arguments);
  va_end(arguments);
  const bool warning = level == NCCL_LOG_WARN;
  if (warning) std::fprintf(stderr, "[%d] WARN %s\n", static_cast<int>(getpid()), line);
  std::lock_guard<std::mutex> lock(TheLog().mutex);
  TheLog().warnings += warning ? 1 : 0;
  absl::StrAppend(&TheLog().text, warning ? "WARN " : "INFO ", line, "\n");
}

int WarningCount() {
  std::lock_guard<std::mutex> lock(TheLog().mutex);
  return TheLog().warnings;
}

std::string LogText() {
  std::lock_guard<std::mutex> lock(TheLog().mutex);
  return TheLog().text;
}

Rank::Rank(int version) {
  auto opened = NetClient::Open(kPlugin, version);
  TCPX_REQUIRE(opened.ok(), opened.status().ToString());
  net_ = *std::move(opened);
  context_ = NewContext();
  int devices = 0;
  TCPX_REQUIRE(net_->Devices(&devices) == ncclSuccess && devices >= 1, devices, " devices");
}

Rank::~Rank() = default;

void Rank::StartKilling() {
  const char* const every_us = std::getenv("TCPX_TEST_KILL_US");
  if (every_us == nullptr || killer_ != nullptr) return;
  killer_ = std::make_unique<KillerThread>(TestSeed() + static_cast<uint64_t>(getpid()), std::atoi(every_us));
}

void* Rank::NewContext(int traffic_class) {
  void* context = nullptr;
  TCPX_REQUIRE(net_->Init(&context, 42, traffic_class, &RecordLog, nullptr) == ncclSuccess);
  return context;
}

void Rank::PollBoth(void* context, void* handle, void* listen, Ends* ends) {
  const KillerThread::Truce truce(killer_.get());
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  while (ends->send == nullptr || ends->recv == nullptr) {
    if (ends->send == nullptr) {
      TCPX_REQUIRE(net_->Connect(context, 0, handle, &ends->send) == ncclSuccess, LogText());
    }
    if (ends->recv == nullptr) TCPX_REQUIRE(net_->Accept(listen, &ends->recv) == ncclSuccess, LogText());
    TCPX_REQUIRE(absl::Now() < deadline, "no connection; ", LogText());
  }
}

Ends Rank::Connect(Control& peer) {
  char handle[kHandleBytesMax] = {};
  void* listen = nullptr;
  TCPX_REQUIRE(net_->Listen(context_, 0, handle, &listen) == ncclSuccess, LogText());
  peer.Send(handle, sizeof(handle));
  peer.Receive(handle, sizeof(handle));
  Ends ends;
  PollBoth(context_, handle, listen, &ends);
  TCPX_REQUIRE(net_->CloseListen(listen) == ncclSuccess);
  StartKilling();
  return ends;
}

Ends Rank::ConnectToSelf(void* context) {
  char handle[kHandleBytesMax] = {};
  void* listen = nullptr;
  TCPX_REQUIRE(net_->Listen(context, 0, handle, &listen) == ncclSuccess, LogText());
  Ends ends;
  PollBoth(context, handle, listen, &ends);
  TCPX_REQUIRE(net_->CloseListen(listen) == ncclSuccess);
  StartKilling();
  return ends;
}

void Rank::Close(const Ends& ends) {
  const KillerThread::Truce truce(killer_.get());
  TCPX_REQUIRE(net_->CloseSend(ends.send) == ncclSuccess);
  TCPX_REQUIRE(net_->CloseRecv(ends.recv) == ncclSuccess);
}

void Rank::Finalize() { TCPX_REQUIRE(net_->Finalize(context_) == ncclSuccess); }

}  // namespace tcpx
