// context_table.h: the contexts that there are, and whose logger the lines of no context go to.
//
// Threads: under the plugin's mutex. Lifetime: a context until Remove; v6 to v10's until the end.
#pragma once

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "common/log.h"
#include "net_socket/plugin/context.h"

namespace tcpx {

class ContextTable {
 public:
  // For lines of no context. A null one does not replace what other contexts were given.
  void OfferLog(LogSink log) const;

  Context* Add(std::unique_ptr<Context> context);
  bool contains(Context* context) const { return contexts_.contains(context); }
  // Lines of no context go to a logger that is still in use.
  void Remove(Context* context);

  // A failure of the communicator's other connections ends this one, and vice versa; it takes over their traffic class.
  // Where several GPUs of this process are in it: of the one whose thread makes this one, as NCCL does.
  void JoinGroup(Context* context) const;
  // The process's of v6 to v10; null before the first.
  Context* legacy() const { return legacy_; }
  // True exactly when one uses v9 or a newer version.
  bool ShowsReceiveHint() const;
  // GPUs of this process, as far as contexts tell: those of v11 and up; 1 without any.
  int GpuCount() const;

 private:
  void ReplaceLog(LogSink gone) const;

  absl::flat_hash_map<Context*, std::unique_ptr<Context>> contexts_;
  Context* legacy_ = nullptr;
};

}  // namespace tcpx
