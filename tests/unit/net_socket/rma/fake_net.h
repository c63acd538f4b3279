// fake_net.h: connections that a test of one-sided transfers plays the peer of.
//
// Purpose: remembers every message sent, gives out connections when a test lets it, and receives what a test delivers.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "net_socket/rma/record.h"
#include "tests/unit/nccl/fake_plugin.h"

namespace tcpx {

class FakeNet final : public FakePlugin {
 public:
  struct Posted {
    Request request;
    Comm* comm = nullptr;
    char* data = nullptr;
    size_t capacity = 0;
    int bytes = -1;  // what has come; -1: nothing
  };

  // What a test sets.
  bool dials = true;
  int busy = 0;             // so many sends find no room
  int unfinished = 0;       // so many tests find that what was sent is not done
  bool peer_gone = false;   // the peer has closed its end
  size_t stuck = SIZE_MAX;  // what was sent so many sends after the first is not done
  std::set<const Comm*> broken;
  std::vector<Comm*> incoming;  // what Accept gives out, the first first
  // What it was asked for.
  std::vector<std::pair<Comm*, std::string>> sent;
  int tests_of_sent = 0;
  int tests_of_posts = 0;
  std::vector<size_t> next_bytes;  // of each of those, as SendArgs has it
  std::vector<ConnectOptions> dialled;
  std::vector<std::unique_ptr<Posted>> posts;
  std::vector<std::pair<Comm*, absl::Status>> failures;

  absl::StatusOr<Comm*> Connect(Context*, int, void*, const ConnectOptions& options) override {
    if (!dials) return nullptr;
    dialled.push_back(options);
    comms_.push_back(std::make_unique<Comm>());
    return comms_.back().get();
  }
  absl::StatusOr<Comm*> Accept(ListenComm*) override {
    if (incoming.empty()) return nullptr;
    Comm* const first = incoming.front();
    incoming.erase(incoming.begin());
    return first;
  }
  absl::Status Send(Comm* comm, const SendArgs& args, Request** posted) override {
    *posted = nullptr;
    if (busy > 0) {
      --busy;
      return absl::OkStatus();
    }
    if (peer_gone) {
      if (args.peer_gone == nullptr) return absl::UnavailableError("the peer has closed");
      *args.peer_gone = true;
      return absl::OkStatus();
    }
    sent.emplace_back(comm, std::string(static_cast<const char*>(args.data), args.bytes));
    next_bytes.push_back(args.next_bytes);
    *posted = &sent_requests_.emplace_back();
    return absl::OkStatus();
  }
  absl::Status Receive(Comm* comm, const ReceiveArgs& args, Request** posted) override {
    posts.push_back(std::make_unique<Posted>());
    posts.back()->comm = comm;
    posts.back()->data = static_cast<char*>(args.data[0]);
    posts.back()->capacity = args.bytes[0];
    *posted = &posts.back()->request;
    return absl::OkStatus();
  }
  absl::Status Test(Request* asked, bool* is_done, int* sizes) override {
    for (size_t i = 0; i < sent_requests_.size(); ++i) {
      if (asked != &sent_requests_[i]) continue;
      ++tests_of_sent;
      *is_done = unfinished == 0 && i != stuck;
      if (unfinished > 0) --unfinished;
    }
    for (const auto& one : posts) {
      if (&one->request != asked) continue;
      ++tests_of_posts;
      *is_done = one->bytes >= 0;
      if (*is_done && sizes != nullptr) *sizes = one->bytes;
    }
    return absl::OkStatus();
  }
  void Fail(Comm* comm, const absl::Status& why) override { failures.emplace_back(comm, why); }
  bool HasFailed(Comm* comm) override { return broken.count(comm) > 0; }

  void Deliver(size_t index, const std::string& message) {
    ASSERT_LT(index, posts.size());
    ASSERT_LE(message.size(), posts[index]->capacity);
    std::memcpy(posts[index]->data, message.data(), message.size());
    posts[index]->bytes = static_cast<int>(message.size());
  }
  // As what `comm` waits for since last.
  void DeliverTo(const Comm* comm, const std::string& message) {
    for (size_t i = posts.size(); i > 0; --i) {
      if (posts[i - 1]->comm == comm) return Deliver(i - 1, message);
    }
    FAIL() << "nothing is posted there";
  }

 private:
  std::vector<std::unique_ptr<Comm>> comms_;
  std::deque<Request> sent_requests_;
};

inline std::string RecordBytes(const RmaRecord& record, const std::string& payload = "") {
  std::string bytes(record.Space(), '\0');
  WriteRmaRecord(record, payload.data(), bytes.data());
  return bytes;
}

// What kinds of records a batch has.
inline std::vector<RmaKind> KindsIn(const std::string& batch) {
  std::vector<RmaKind> kinds;
  RmaRecord record;
  absl::string_view payload;
  for (absl::string_view left = batch; !left.empty() && ReadRmaRecord(&left, &record, &payload) == nullptr;)
    kinds.push_back(record.kind);
  return kinds;
}

}  // namespace tcpx
