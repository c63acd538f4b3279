#include "tests/plugin/profiler/consumer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "nccl/profiler_tables.h"

namespace tcpx {
namespace {

constexpr int64_t kSocketV1 = 0x20001;
constexpr size_t kEventsMax = 8;

thread_local int inside = 0;

struct Parent {
  std::vector<std::unique_ptr<Consumer::Event>> events;
  bool over = false;
};

struct State {
  std::mutex mutex;
  Consumer::Reading reading = Consumer::Reading::kUpdates;
  std::map<void*, std::unique_ptr<Parent>> parents;
  std::map<void*, Parent*> owners;  // by event
  size_t calls = 0;
  std::vector<std::string> faults;

  void Fault(const std::string& text) {
    if (faults.size() < 20) faults.push_back(text);
  }
};

State& TheState() {
  static State* state = new State;
  return *state;
}

void CheckDescription(State* state, int64_t plugin_id, const ncclProfilerNetSockDescr_v1_t* about) {
  if (plugin_id != kSocketV1) state->Fault(absl::StrCat("plugin id ", plugin_id));
  if (about->type != ncclProfileSocket) state->Fault(absl::StrCat("descriptor type ", about->type));
  if (about->sock.op != 0 && about->sock.op != 1) state->Fault(absl::StrCat("op ", about->sock.op));
}

void Start(State* state, void** handle, void* parent, const ncclProfilerNetSockDescr_v1_t* about) {
  auto found = state->parents.find(parent);
  if (found == state->parents.end()) return state->Fault("a start with an unknown parent");
  if (*handle != nullptr) state->Fault("a start over a handle");
  Parent* owner = found->second.get();
  if (owner->over) return state->Fault("a start for a request that is over");
  owner->events.push_back(std::make_unique<Consumer::Event>());
  if (owner->events.size() > kEventsMax) state->Fault("more than 8 events");
  Consumer::Event* event = owner->events.back().get();
  event->fd = about->sock.fd;
  event->op = about->sock.op;
  event->bytes = about->sock.length;
  if (state->reading == Consumer::Reading::kNotWanted) return;
  *handle = event;
  state->owners[event] = owner;
}

void Go(State* state, void* handle, int type, const ncclProfilerNetSockDescr_v1_t* about) {
  auto found = state->owners.find(handle);
  if (found == state->owners.end()) return state->Fault(absl::StrCat("type ", type, " of no event"));
  auto* event = static_cast<Consumer::Event*>(handle);
  if (event->stopped) return state->Fault(absl::StrCat("type ", type, " of a stopped event"));
  if (found->second->over) return state->Fault("a call for a request that is over");
  if (state->reading == Consumer::Reading::kStopOnly || type == ncclProfilerNetEventStop) {
    event->stopped = true;
    return;
  }
  if (type != ncclProfilerNetEventUpdate) state->Fault(absl::StrCat("type ", type));
  if (about->sock.fd != event->fd || about->sock.op != event->op) state->Fault("an update of another socket");
  if (about->sock.length <= event->bytes) state->Fault("an update without news");
  event->bytes = about->sock.length;
}

ncclResult_t Take(void** handle, int type, void* parent, int64_t plugin_id, void* data) {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  ++state.calls;
  if (inside == 0) state.Fault(absl::StrCat("type ", type, " from outside isend, irecv and test"));
  const auto* about = static_cast<const ncclProfilerNetSockDescr_v1_t*>(data);
  CheckDescription(&state, plugin_id, about);
  if (type == ncclProfilerNetEventStart) {
    Start(&state, handle, parent, about);
  } else {
    Go(&state, *handle, type, about);
  }
  return ncclSuccess;
}

}  // namespace

Consumer::Inside::Inside() { ++inside; }
Consumer::Inside::~Inside() { --inside; }

void Consumer::Reset(Reading reading) {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.reading = reading;
  state.parents.clear();
  state.owners.clear();
  state.calls = 0;
  state.faults.clear();
}

ncclProfilerCallback_t Consumer::Callback() { return &Take; }

void* Consumer::NewParent() {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  auto parent = std::make_unique<Parent>();
  void* raw = parent.get();
  state.parents[raw] = std::move(parent);
  return raw;
}

void Consumer::Over(void* parent) {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  Parent& over = *state.parents.at(parent);
  over.over = true;
  if (state.reading == Reading::kNotWanted) return;
  for (const auto& event : over.events) {
    if (!event->stopped) state.Fault("an event was open when its request was reported done");
  }
}

std::vector<Consumer::Event> Consumer::Events(void* parent) {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  std::vector<Event> events;
  for (const auto& event : state.parents.at(parent)->events) events.push_back(*event);
  return events;
}

std::map<int, size_t> Consumer::Moved(void* parent) {
  std::map<int, size_t> moved;
  for (const Event& event : Events(parent)) moved[event.fd] += event.bytes;
  return moved;
}

size_t Consumer::Calls() {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  return state.calls;
}

std::vector<std::string> Consumer::Faults() {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  return state.faults;
}

size_t Sum(const std::map<int, size_t>& moved) {
  size_t sum = 0;
  for (const auto& [fd, bytes] : moved) sum += bytes;
  return sum;
}

std::map<int, size_t> ByPort(const std::map<int, size_t>& moved, bool receive) {
  std::map<int, size_t> by_port;
  if (std::getenv("TCPX_TEST_KILL_US") != nullptr) {
    std::multiset<size_t> sums;
    for (const auto& [fd, bytes] : moved) sums.insert(bytes);
    for (size_t bytes : sums) by_port[static_cast<int>(by_port.size())] = bytes;
    return by_port;
  }
  for (const auto& [fd, bytes] : moved) {
    const auto address = receive ? PeerAddress(fd) : LocalAddress(fd);
    EXPECT_TRUE(address.ok()) << "fd " << fd << " is no lane: " << address.status();
    if (address.ok()) by_port[address->port()] += bytes;
  }
  return by_port;
}

}  // namespace tcpx
