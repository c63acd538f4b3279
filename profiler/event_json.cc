#include "profiler/event_json.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/json_text.h"

namespace tcpx {
namespace {

// Threads read the clock before they meet: an end may be just before its begin, and lasts no time then.
std::string Micros(int64_t ns) {
  ns = std::max<int64_t>(ns, 0);
  return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000);
}

struct StateText {
  ncclProfilerEventState_t state;
  const char* text;
};

constexpr StateText kStates[] = {
    {ncclProfilerProxyStepSendGPUWait, "wait for the GPU's data"},
    {ncclProfilerProxyStepSendPeerWait_v4, "wait for the peer's credit"},
    {ncclProfilerProxyStepSendWait, "send"},
    {ncclProfilerProxyStepRecvWait, "receive"},
    {ncclProfilerProxyStepRecvFlushWait, "flush to the GPU"},
    {ncclProfilerProxyStepRecvGPUWait, "wait for the GPU to take it"},
    {ncclProfilerProxyCtrlIdle, "idle"},
    {ncclProfilerProxyCtrlActive, "active"},
    {ncclProfilerProxyCtrlSleep, "asleep"},
    {ncclProfilerProxyCtrlWakeup, "woken"},
    {ncclProfilerProxyCtrlAppend, "takes operations"},
    {ncclProfilerProxyCtrlAppendEnd, "takes operations"},
};

// Null: it has no name.
const char* StateName(int state) {
  for (const StateText& known : kStates) {
    if (known.state == state) return known.text;
  }
  return nullptr;
}

std::string EventName(const Event& event) {
  const EventFacts& facts = event.facts;
  if (facts.function.text[0] != '\0') return facts.function.text;
  switch (facts.type) {
    case ncclProfileGroup:
    case ncclProfileGroupApi:
      return "group";
    case ncclProfileKernelLaunch:
      return "launch";
    case ncclProfileProxyOp:
      return facts.sends ? "send operation" : "receive operation";
    case ncclProfileProxyStep:
      return absl::StrCat("step ", facts.step);
    case ncclProfileKernelCh:
      return "kernel";
    case ncclProfileNetPlugin:
      return facts.fd < 0 ? "transfer" : facts.sends ? "send" : "receive";
    case ncclProfileCeSync:
      return "synchronise";
    case ncclProfileCeBatch:
      return "copy batch";
    default:
      break;
  }
  const char* state = event.states > 0 ? StateName(event.state[0].state) : nullptr;
  return state != nullptr ? state : "event";
}

const char* Category(uint32_t type) {
  constexpr uint32_t kApi = ncclProfileGroupApi | ncclProfileCollApi | ncclProfileP2pApi | ncclProfileKernelLaunch;
  constexpr uint32_t kProxy = ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileProxyCtrl;
  if ((type & kApi) != 0) return "api";
  if ((type & kProxy) != 0) return "proxy";
  if (type == ncclProfileNetPlugin) return "net";
  if (type == ncclProfileKernelCh) return "gpu";
  return "nccl";
}

class Arguments {
 public:
  void Number(const char* key, uint64_t value) { Add(key, absl::StrCat(value)); }
  // Those that are set.
  void Set(const char* key, int value) {
    if (value >= 0) Add(key, absl::StrCat(value));
  }
  void Some(const char* key, uint64_t value) {
    if (value != 0) Number(key, value);
  }
  void Text(const char* key, const ShortText& value) {
    if (value.text[0] != '\0') Add(key, JsonText(value.text));
  }
  const std::string& text() const { return text_; }

 private:
  void Add(const char* key, const std::string& value) {
    absl::StrAppend(&text_, text_.empty() ? "" : ",", "\"", key, "\":", value);
  }
  std::string text_;
};

std::string ArgumentsOf(const Event& event) {
  const EventFacts& facts = event.facts;
  Arguments arguments;
  arguments.Text("datatype", facts.datatype);
  arguments.Text("algorithm", facts.algorithm);
  arguments.Text("protocol", facts.protocol);
  arguments.Some("count", facts.count);
  if (facts.type == ncclProfileColl) arguments.Number("sequence", facts.sequence);
  arguments.Some("bytes", event.transferred != 0 ? event.transferred : facts.bytes);
  arguments.Set("peer", facts.peer);
  arguments.Set("root", facts.root);
  arguments.Set("channel", facts.channel);
  if (facts.steps > 0) arguments.Set("steps", facts.steps);
  if (facts.depth > 0) arguments.Set("depth", facts.depth);
  arguments.Some("queued_us", static_cast<uint64_t>(event.queued_ns / 1000));
  if (facts.captured) arguments.Number("graph", 1);
  arguments.Some("gpu_begin_ns", facts.gpu_time);
  arguments.Some("gpu_end_ns", event.gpu_time_end);
  return arguments.text();
}

std::string Slice(const std::string& name, const char* category, const Event& event, int64_t begin_ns, int64_t end_ns,
                  int pid, const std::string& arguments) {
  return absl::StrCat("{\"name\":", JsonText(name), ",\"cat\":\"", category, "\",\"ph\":\"X\",\"pid\":", pid,
                      ",\"tid\":", event.track, ",\"ts\":", Micros(begin_ns), ",\"dur\":", Micros(end_ns - begin_ns),
                      ",\"args\":{", arguments, "}}");
}

std::string Moment(const char* name, int64_t at_ns, int pid, const std::string& arguments) {
  return absl::StrCat("{\"name\":\"", name, "\",\"cat\":\"trace\",\"ph\":\"i\",\"s\":\"p\",\"pid\":", pid,
                      ",\"tid\":0,\"ts\":", Micros(at_ns), ",\"args\":{", arguments, "}}");
}

}  // namespace

void AppendEvent(const Event& event, int pid, TraceFile* file) {
  const char* const category = Category(event.facts.type);
  file->Append(Slice(EventName(event), category, event, event.begin_ns, event.end_ns, pid, ArgumentsOf(event)));
  if (event.facts.type != ncclProfileProxyStep) return;
  for (int i = 0; i < event.states; ++i) {
    const char* const name = StateName(event.state[i].state);
    const int64_t end_ns = i + 1 < event.states ? event.state[i + 1].at_ns : event.end_ns;
    if (name != nullptr) file->Append(Slice(name, category, event, event.state[i].at_ns, end_ns, pid, ""));
  }
}

std::string NameLine(const char* what, const std::string& name, int pid, uint32_t track) {
  return absl::StrCat("{\"name\":\"", what, "\",\"ph\":\"M\",\"pid\":", pid, ",\"tid\":", track,
                      ",\"args\":{\"name\":", JsonText(name), "}}");
}

std::string MomentLine(const char* name, int64_t at_ns, int pid, const char* key, int64_t value) {
  return Moment(name, at_ns, pid, absl::StrCat("\"", key, "\":", value));
}

std::string ClockNoteLine(const ClockNote& note, int64_t now_ns, int pid) {
  const std::string self = absl::StrCat("\"self\":", JsonText(note.self));
  if (note.peer.empty()) return Moment("tcpx_process", now_ns, pid, self);
  return Moment("tcpx_clock_offset", note.at_ns, pid,
                absl::StrCat(self, ",\"peer\":", JsonText(note.peer), ",\"offset_ns\":", note.offset_ns,
                             ",\"round_trip_ns\":", note.round_trip_ns));
}

}  // namespace tcpx
