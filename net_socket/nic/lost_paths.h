// lost_paths.h: which paths to peers do not work just now, and when one works again.
//
// Purpose: lanes of many connections use the same interfaces to the same peers. This class hears once, for all of them,
//          that an interface has lost its carrier or its address. For a path that lanes had to leave, it asks one lane
//          at a time to find out whether the path works again; all others that wait for it then follow.
// Rate:    A path is asked after as often as once a second, each half a minute after ten minutes; where it was lost
//          again soon after its return, up to half a minute from the first; at once when its interface is back.
// Threads: the reactor. Lifetime: a user leaves before it goes. Interfaces outlive all of it. Units: nanoseconds.
// Errors:  a kernel that says nothing of its interfaces is one line of the log: paths are then asked after all the
//          same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/link_watch.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/nic/lane_plan.h"

namespace tcpx {

class LostPaths final : public Reactor::Handler {
 public:
  // A connection whose lanes can take another path.
  class User {
   public:
    // An interface of its own is out, or back: OutInLoop says which are.
    virtual void NicsChangedInLoop() = 0;
    // A lane of it that had to leave this path is to try it. False: none waits for that.
    virtual bool TryPathInLoop(const LanePath& path) = 0;
    // Each such lane may return to it.
    virtual void PathServesInLoop(const LanePath& path) = 0;

   protected:
    ~User() = default;
  };

  explicit LostPaths(Reactor* reactor) : reactor_(reactor) {}
  LostPaths(const LostPaths&) = delete;
  LostPaths& operator=(const LostPaths&) = delete;

  // `nics`: those by which it may go.
  void JoinInLoop(User* user, const std::vector<const Nic*>& nics);
  void LeaveInLoop(User* user);
  // A lane of the user takes another path, and waits for this one.
  void WaitInLoop(User* user, const LanePath& path);
  // Somebody got through by it.
  void FoundInLoop(const LanePath& path);
  // True exactly when it is known that nothing goes by it.
  bool OutInLoop(const Nic& nic) const;

  void OnEvents(uint32_t events) override;

 private:
  struct Watched {
    const Nic* nic = nullptr;
    bool out = false;
  };
  struct Lost {
    LanePath path;
    std::vector<User*> waiting;
    int64_t since_ns = 0;
    int64_t pause_ns = 0;  // from one question to the next
    int64_t back_ns = 0;   // when it was last found; 0: never
    Reactor::TimerId timer{0, 0};
  };

  // How the interfaces are.
  void LookInLoop();
  // How long until the path is asked after again.
  int64_t AskInLoop(const std::string& key);
  void AskSoonInLoop(const std::string& key, Lost* lost, int64_t after_ns);

  Reactor* const reactor_;
  LinkWatch links_;
  bool logged_ = false;  // that the kernel says nothing
  std::vector<User*> users_;
  std::map<std::string, Watched> nics_;
  std::map<std::string, Lost> lost_;
};

}  // namespace tcpx
