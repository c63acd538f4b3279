#include "tools/doctor/stream.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nccl/client/net_client.h"
#include "tools/doctor/kept_lines.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr uint64_t kCommId = 0x7463707865;
constexpr size_t kMessageBytes = 1 << 20;
constexpr size_t kLastBytes = 4;  // a message of this size is one of the last ones
constexpr int kRequests = 16;
constexpr int64_t kConnectNs = 20 * kSecond;
// What 16 messages take on 10 Mbit/s.
constexpr int64_t kDrainNs = 30 * kSecond;

ncclResult_t IgnoreEvent(void**, int, void*, int64_t, void*) { return ncclSuccess; }

using Handle = std::array<char, NCCL_NET_HANDLE_MAXSIZE>;

// One side of the connection.
class Side {
 public:
  explicit Side(const StreamOrder& order) : order_(order) {}
  ~Side() {
    if (client_ == nullptr) return;
    if (region_ != nullptr) client_->DeregMr(comm_, region_);
    if (comm_ != nullptr && order_.sends) client_->CloseSend(comm_);
    if (comm_ != nullptr && !order_.sends) client_->CloseRecv(comm_);
    if (listen_ != nullptr) client_->CloseListen(listen_);
    if (open_) client_->Finalize(context_);
  }

  absl::Status Open();
  absl::Status Connect(Channel* channel);
  absl::StatusOr<double> Receive();
  absl::Status Send();

 private:
  struct Place {
    void* request = nullptr;
    size_t bytes = 0;
  };

  absl::Status Check(const char* function, ncclResult_t result) const;
  // Posts into a free place what fits there. False: not now.
  absl::StatusOr<bool> Post(int place, size_t bytes);
  // The bytes of the message there, once it is done; -1: it is not, or there is none.
  absl::StatusOr<int> Test(int place);

  const StreamOrder& order_;
  std::unique_ptr<NetClient> client_;
  bool open_ = false;
  void* context_ = nullptr;
  void* listen_ = nullptr;
  void* comm_ = nullptr;
  void* region_ = nullptr;
  alignas(uint64_t) Handle handle_{};
  std::vector<char> memory_ = std::vector<char>(kRequests * kMessageBytes);
  std::array<Place, kRequests> places_;
};

absl::Status Side::Check(const char* function, ncclResult_t result) const {
  if (result == ncclSuccess) return absl::OkStatus();
  const KeptLines lines = TakeLines();
  return absl::UnavailableError(
      absl::StrCat(function, " failed", lines.warnings.empty() ? "" : absl::StrCat(": ", lines.warnings.back())));
}

absl::Status Side::Open() {
  if (order_.lanes > 0) setenv("TCPX_LANES", absl::StrCat(order_.lanes).c_str(), 1);
  // What does not answer is known sooner than a job would give up.
  setenv("TCPX_HELLO_TIMEOUT", "3", 0);
  setenv("NCCL_SOCKET_RETRY_CNT", "2", 0);
  auto client = NetClient::Open(order_.plugin, order_.version);
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  const absl::Status status =
      Check("init", client_->Init(&context_, kCommId, NCCL_NET_TRAFFIC_CLASS_UNDEF, KeepPluginLine, IgnoreEvent));
  open_ = status.ok();
  return status;
}

// The receiver's handle goes to the sender, as NCCL's bootstrap carries it.
absl::Status Side::Connect(Channel* channel) {
  if (!order_.sends) {
    const absl::Status listens = Check("listen", client_->Listen(context_, order_.device, handle_.data(), &listen_));
    if (!listens.ok()) return listens;
    const absl::string_view bytes(handle_.data(), handle_.size());
    const absl::Status sent = channel->Send(absl::StrCat("handle ", absl::BytesToHexString(bytes)));
    if (!sent.ok()) return sent;
  } else {
    const auto line = channel->Receive(kConnectNs);
    if (!line.ok()) return line.status();
    absl::string_view hex = *line;
    if (!absl::ConsumePrefix(&hex, "handle ") || hex.size() != 2 * handle_.size()) return absl::UnavailableError(*line);
    memcpy(handle_.data(), absl::HexStringToBytes(hex).data(), handle_.size());
  }
  const int64_t until = MonotonicNanos() + kConnectNs;
  while (comm_ == nullptr) {
    const absl::Status status =
        order_.sends ? Check("connect", client_->Connect(context_, order_.device, handle_.data(), &comm_))
                     : Check("accept", client_->Accept(listen_, &comm_));
    if (!status.ok()) return status;
    if (MonotonicNanos() > until) {
      const absl::Status late = Check("the connection", ncclRemoteError);
      return absl::UnavailableError(absl::StrCat(late.message(), " (none in ", kConnectNs / kSecond, " s)"));
    }
    usleep(200);
  }
  return Check("regMr", client_->RegMr(comm_, memory_.data(), memory_.size(), NCCL_PTR_HOST, &region_));
}

absl::StatusOr<bool> Side::Post(int place, size_t bytes) {
  Place& at = places_[static_cast<size_t>(place)];
  void* data = memory_.data() + static_cast<size_t>(place) * kMessageBytes;
  ncclResult_t result;
  if (order_.sends) {
    result = client_->Isend(comm_, data, bytes, 0, region_, nullptr, &at.request);
  } else {
    int tag = 0;
    void* parent = nullptr;
    result = client_->Irecv(comm_, 1, &data, &bytes, &tag, &region_, &parent, &at.request);
  }
  const absl::Status status = Check(order_.sends ? "isend" : "irecv", result);
  if (!status.ok()) return status;
  at.bytes = bytes;
  return at.request != nullptr;
}

absl::StatusOr<int> Side::Test(int place) {
  Place& at = places_[static_cast<size_t>(place)];
  if (at.request == nullptr) return -1;
  int done = 0;
  int size = 0;
  const absl::Status status = Check("test", client_->Test(at.request, &done, &size));
  if (!status.ok()) return status;
  if (done == 0) {
    sched_yield();
    return -1;
  }
  at.request = nullptr;
  return order_.sends ? static_cast<int>(at.bytes) : size;
}

absl::StatusOr<double> Side::Receive() {
  const int64_t first = MonotonicNanos();
  int64_t last = 0;
  double bytes = 0;
  const int64_t until = MonotonicNanos() + order_.milliseconds * kMillisecond + kDrainNs;
  int ended = 0;
  // Messages arrive in the order of their receives: place after place.
  for (int place = 0, post = 0; ended < kRequests;) {
    if (MonotonicNanos() > until) return absl::UnavailableError("the stream stalled");
    if (places_[static_cast<size_t>(post)].request == nullptr) {
      const auto posted = Post(post, kMessageBytes);
      if (!posted.ok()) return posted.status();
      if (*posted) post = (post + 1) % kRequests;
    }
    const auto size = Test(place);
    if (!size.ok()) return size.status();
    if (*size < 0) continue;
    place = (place + 1) % kRequests;
    if (*size == static_cast<int>(kLastBytes)) {
      ++ended;
      continue;
    }
    last = MonotonicNanos();
    bytes += *size;
  }
  return last > first ? bytes * 8 * 1000 / static_cast<double>(last - first) : 0;
}

absl::Status Side::Send() {
  const int64_t deadline = MonotonicNanos() + order_.milliseconds * kMillisecond;
  const int64_t until = deadline + kDrainNs;
  int last = 0;
  int done = 0;
  // One more with each that is through: what is under way at the deadline must drain, on a slow network too.
  int posted_now = 0;
  int allowed = 2;
  for (int place = 0, post = 0; done < kRequests;) {
    if (MonotonicNanos() > until) return absl::UnavailableError("the stream stalled");
    if (places_[static_cast<size_t>(post)].request == nullptr && last < kRequests && posted_now < allowed) {
      const bool ends = MonotonicNanos() > deadline;
      const auto posted = Post(post, ends ? kLastBytes : kMessageBytes);
      if (!posted.ok()) return posted.status();
      if (*posted) post = (post + 1) % kRequests;
      if (*posted) ++posted_now;
      if (*posted && ends) ++last;
    }
    const auto size = Test(place);
    if (!size.ok()) return size.status();
    if (*size < 0) continue;
    place = (place + 1) % kRequests;
    --posted_now;
    allowed = std::min(allowed + 1, kRequests);
    if (*size == static_cast<int>(kLastBytes)) ++done;
  }
  return absl::OkStatus();
}

absl::StatusOr<double> RunSide(const StreamOrder& order, Channel* channel) {
  Side side(order);
  absl::Status status = side.Open();
  if (status.ok()) status = side.Connect(channel);
  if (!status.ok()) return status;
  if (!order.sends) {
    const auto speed = side.Receive();
    if (speed.ok()) status = channel->Send(absl::StrCat("speed ", *speed));
    // The sender still reads the end of its last message.
    if (status.ok()) (void)channel->Receive(kDrainNs);
    return status.ok() ? speed : absl::StatusOr<double>(status);
  }
  status = side.Send();
  if (!status.ok()) return status;
  const auto line = channel->Receive(kDrainNs);
  if (!line.ok()) return line.status();
  absl::string_view text = *line;
  double speed = 0;
  if (!absl::ConsumePrefix(&text, "speed ") || !absl::SimpleAtod(text, &speed)) return absl::UnavailableError(*line);
  (void)channel->Send("done");
  return speed;
}

}  // namespace

absl::StatusOr<double> RunStream(const StreamOrder& order, Channel* channel) {
  auto speed = RunSide(order, channel);
  if (!speed.ok()) (void)channel->Send(absl::StrCat("error ", speed.status().message()));
  return speed;
}

std::string InChild(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "error pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const std::string line = work();
    const bool written = write(ends[1], line.data(), line.size()) == static_cast<ssize_t>(line.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string line;
  char bytes[4096];
  for (ssize_t count; (count = read(ends[0], bytes, sizeof(bytes))) > 0;)
    line.append(bytes, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  return line.empty() ? absl::StrCat("error the child ended with status ", status) : line;
}

}  // namespace doctor
}  // namespace tcpx
