// peer_watch.h: listens, on a send comm's lanes, for what the receiver says: records, and the end.
//
// Purpose: a sender reads nothing on its message path. The reactor reads the reverse direction of its lanes, so that an
//          error of the receiver, or its death, is known without a system call in isend or test. Credits, where there
//          are any, can't wait for the reactor to wake: isend reads them on lane 0, and the reactor reads that lane
//          only once the peer has ended it.
// Threads: InLoop and the handlers in the reactor; TakeCredit by the calling thread; Stop by the closing thread, after
//          which the owner is never touched.
// Lifetime: destroyed in the reactor, after the descriptors were unwatched (by LingeringSockets). Errors: to PeerGone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "net_socket/engine/link.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/message/credits.h"
#include "net_socket/message/frame_reader.h"
#include "net_socket/seal/opener.h"

namespace tcpx {

// Digests the reverse stream of one lane. Pure.
class RecordReader {
 public:
  // `credits` null: credits are skipped, as all that is not known.
  explicit RecordReader(CreditBook* credits = nullptr);

  // Takes what has arrived. Not OK when the peer reported an error or sent garbage.
  absl::Status Take(const char* data, size_t bytes);

 private:
  CreditBook* const credits_;
  FrameReader frames_;
};

// The first news that the peer has gone: from the reactor (a lane's end, the health socket's word) or from the calling
// thread (a credit that could not be read). Later ones are dropped.
class PeerLoss {
 public:
  // `in_order`: the lane has ended, and nothing else is known. From any thread.
  void Note(absl::Status status, int lane, bool in_order = false);
  // From now on it is no failure that the peer goes. From any thread.
  void Part() { parting_.store(true, std::memory_order_relaxed); }
  bool parting() const { return parting_.load(std::memory_order_relaxed); }
  // True once the other members are set. From any thread.
  bool known() const { return state_.load(std::memory_order_acquire) == State::kKnown; }
  const absl::Status& status() const { return status_; }
  int lane() const { return lane_; }
  bool in_order() const { return in_order_; }

 private:
  enum class State : uint8_t { kNone, kBeingWritten, kKnown };

  std::atomic<bool> parting_{false};
  std::atomic<State> state_{State::kNone};
  absl::Status status_;
  int lane_ = 0;
  bool in_order_ = false;
};

class PeerWatch {
 public:
  // Whose lanes they are.
  class Owner {
   public:
    // The peer has ended or reset a lane, or said that it failed. By the reactor or by the thread that calls
    // TakeCredit; not after Stop. `in_order`: it has ended it, and said nothing.
    virtual void PeerGone(absl::Status status, int lane, bool in_order) = 0;

    // A lane's socket has ended (`in_order`) or broken, by the same. True: it gets another one, and PeerGone is not
    // called.
    virtual bool LaneBroke(const absl::Status& status, int lane, bool in_order) = 0;

   protected:
    ~Owner() = default;
  };

  // `lanes`: that have a socket, or may get one. `max_receives` above 1: credits are expected.
  PeerWatch(Owner* owner, Reactor* reactor, int lanes, int max_receives);
  ~PeerWatch();

  // The lane has got a socket, its first or another one. `opener` null: it is not sealed, or it is still the same.
  void WatchInLoop(int lane, int fd, std::unique_ptr<Opener> opener);
  void Stop() { tie_.Cut(); }

  // The lane is to get another socket: reads what came on this one. How much of them came on the lane so far, modulo
  // 2^32, where credits are expected; an error where the peer reports one, or what came is not the peer's.
  absl::StatusOr<uint32_t> FreezeInLoop(int lane);
  // It was closed instead: wipes the keys of its socket.
  void CloseInLoop(int lane);

  // As CreditBook::Take; reads what has arrived where it has to. False too while the reactor is reading.
  bool TakeCredit(int32_t tag, uint64_t* sequence);

 private:
  class Lane;
  enum class SocketEnd { kNone, kInOrder, kBroken };

  absl::Status ReadInLoop(Lane* lane, SocketEnd* end);
  void Report(absl::Status status, int lane, SocketEnd end);

  Tie tie_;  // cut: stopped
  const Link<Owner> owner_;
  Reactor* const reactor_;
  Mutex credit_mutex_;  // never held while the owner hears of it
  // Null: none are expected. Lane 0's reader is guarded like it.
  std::unique_ptr<CreditBook> credits_ TCPX_PT_GUARDED_BY(credit_mutex_);
  std::vector<std::unique_ptr<Lane>> lanes_;  // null: it has no socket yet
};

}  // namespace tcpx
