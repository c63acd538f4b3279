// link.h: a pointer to an object that may close at any moment.
//
// Purpose: housekeeping and other threads reach what they serve through links; closing cuts the tie that all of them
//          hang on, and from then on it is never touched.
// Threads: any. A target's own mutex is taken before its tie's, never after it. What is run on a target must not use
//          another link.
// Lifetime: a tie's target cuts it before it goes, at the latest with the tie itself. Links may outlive both.
// Errors:  none.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "common/mutex.h"

namespace tcpx {

template <typename Target>
class Link;

// At the target.
class Tie {
 public:
  Tie() : knot_(std::make_shared<Knot>()) {}
  ~Tie() { Cut(); }
  Tie(const Tie&) = delete;
  Tie& operator=(const Tie&) = delete;

  // To the target as whatever its user needs of it.
  template <typename Target>
  Link<Target> To(Target* target) const {
    return Link<Target>(knot_, target);
  }
  // Waits for the threads that use a link just now.
  void Cut() {
    MutexLock lock(knot_->mutex);
    knot_->cut = true;
  }

 private:
  template <typename Target>
  friend class Link;

  struct Knot {
    Mutex mutex;
    bool cut TCPX_GUARDED_BY(mutex) = false;
  };
  const std::shared_ptr<Knot> knot_;
};

// Held by the users of the target. Links of one tie are equal.
template <typename Target>
class Link {
 public:
  Link() = default;  // to nobody
  template <typename Other, typename = std::enable_if_t<std::is_convertible_v<Other*, Target*>>>
  Link(const Link<Other>& other) : knot_(other.knot_), target_(other.target_) {}

  // Runs `function` on the target, unless it is cut off.
  template <typename Function>
  void With(Function function) const {
    (void)Ask(false, [&function](Target* target) {
      function(target);
      return true;
    });
  }
  // What `function` says of the target, or `otherwise`.
  template <typename Answer, typename Function>
  Answer Ask(Answer otherwise, Function function) const {
    if (knot_ == nullptr) return otherwise;
    MutexLock lock(knot_->mutex);
    return knot_->cut ? otherwise : function(target_);
  }
  // To somebody, cut off or not.
  bool any() const { return knot_ != nullptr; }
  bool cut() const {
    return !Ask(false, [](Target*) { return true; });
  }

  friend bool operator==(const Link& a, const Link& b) { return a.knot_ == b.knot_; }
  template <typename Hash>
  friend Hash AbslHashValue(Hash hash, const Link& link) {
    return Hash::combine(std::move(hash), link.knot_.get());
  }

 private:
  friend class Tie;
  template <typename Other>
  friend class Link;

  Link(std::shared_ptr<Tie::Knot> knot, Target* target) : knot_(std::move(knot)), target_(target) {}

  std::shared_ptr<Tie::Knot> knot_;  // null: to nobody
  Target* target_ = nullptr;
};

}  // namespace tcpx
