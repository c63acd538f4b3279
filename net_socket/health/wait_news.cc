#include "net_socket/health/wait_news.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/process_mark.h"
#include "common/this_host.h"

namespace tcpx {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kAsksBit = 1;
constexpr uint8_t kCandidateBit = 2;
// Names of two processes fit, with what lies between them.
constexpr size_t kTextMax = 255;

// Numbers lie on the wire as in memory (message/wire.cc).
template <typename T>
void Put(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutText(absl::string_view text, std::string* out) {
  text = text.substr(0, kTextMax);
  Put(static_cast<uint8_t>(text.size()), out);
  out->append(text.data(), text.size());
}

// Takes fields from the front; once one is missing, all that follow are.
class Fields {
 public:
  explicit Fields(absl::string_view text) : text_(text) {}

  template <typename T>
  T Take() {
    T value{};
    ok_ = ok_ && text_.size() >= sizeof(value);
    if (!ok_) return value;
    std::memcpy(&value, text_.data(), sizeof(value));
    text_.remove_prefix(sizeof(value));
    return value;
  }
  std::string TakeText() {
    const size_t bytes = Take<uint8_t>();
    ok_ = ok_ && text_.size() >= bytes;
    if (!ok_) return "";
    std::string text(text_.substr(0, bytes));
    text_.remove_prefix(bytes);
    for (char& c : text) {
      if (c < ' ' || c > '~') c = '?';
    }
    return text;
  }
  bool ok() const { return ok_; }

 private:
  absl::string_view text_;
  bool ok_ = true;
};

void PutRoot(const WaitRoot& root, std::string* out) {
  Put(static_cast<uint8_t>(root.cause), out);
  Put(root.finder, out);
  Put(root.serial, out);
  Put(root.lag, out);
  PutText(root.culprit, out);
  PutText(root.evidence, out);
  const size_t links = std::min(root.chain.size(), kChainMax);
  Put(static_cast<uint8_t>(links), out);
  for (size_t i = 0; i < links; ++i) PutText(root.chain[i], out);
}

// A cause that only a newer build knows is none.
void TakeRoot(Fields* fields, WaitRoot* root) {
  const auto cause = fields->Take<uint8_t>();
  root->cause = cause < kCauses ? static_cast<Cause>(cause) : Cause::kNone;
  root->finder = fields->Take<uint64_t>();
  root->serial = fields->Take<uint32_t>();
  root->lag = fields->Take<int64_t>();
  root->culprit = fields->TakeText();
  root->evidence = fields->TakeText();
  const size_t links = std::min<size_t>(fields->Take<uint8_t>(), kChainMax);
  for (size_t i = 0; i < links && fields->ok(); ++i) root->chain.push_back(fields->TakeText());
}

// As launchers name it: torchrun, Open MPI, PMIx, MPICH, Slurm.
std::string RankHere() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* const value = getenv(name);
    if (value == nullptr || *value == '\0' || strlen(value) > 8) continue;
    if (strspn(value, "0123456789") == strlen(value)) return absl::StrCat(" (rank ", value, ")");
  }
  return "";
}

}  // namespace

const char* CauseName(Cause cause) {
  static constexpr const char* kNames[kCauses] = {"undecided",    "process-stopped", "peer-late", "no-cpu",
                                                  "path-loses",   "path-dead",       "path-slow", "host-gone",
                                                  "process-gone", "flow-dropped",    "internal"};
  return kNames[static_cast<size_t>(cause)];
}

const char* CauseWords(Cause cause) {
  static constexpr const char* kWords[kCauses] = {
      "the cause is not known",
      "its process is stopped",
      "its process is alive, and NCCL, the application or the GPU there is late",
      "its threads get no CPU",
      "the path loses packets",
      "the path is dead",
      "the path is slower than its sisters",
      "its host is gone, or cut off from those who wait for it",
      "its process is gone",
      "a firewall or NAT on the way has dropped the flow",
      "internal: no reason is to be seen, which is a bug of tcpx"};
  return kWords[static_cast<size_t>(cause)];
}

std::string EncodeNews(const WaitNews& news) {
  std::string out;
  Put(kVersion, &out);
  Put(static_cast<uint8_t>((news.asks ? kAsksBit : 0) | (news.root.candidate ? kCandidateBit : 0)), &out);
  PutText(news.who, &out);
  Put(news.posted, &out);
  Put(news.sequence, &out);
  Put(news.stood_ms, &out);
  Put(news.no_cpu_percent, &out);
  PutRoot(news.root, &out);
  return out;
}

bool DecodeNews(absl::string_view text, WaitNews* news) {
  if (text.size() > kNewsBytesMax) return false;
  Fields fields(text);
  if (fields.Take<uint8_t>() < kVersion) return false;
  const auto bits = fields.Take<uint8_t>();
  news->asks = (bits & kAsksBit) != 0;
  news->root.candidate = (bits & kCandidateBit) != 0;
  news->who = fields.TakeText();
  news->posted = fields.Take<uint32_t>();
  news->sequence = fields.Take<uint64_t>();
  news->stood_ms = fields.Take<uint32_t>();
  news->no_cpu_percent = std::min<uint8_t>(fields.Take<uint8_t>(), 100);
  TakeRoot(&fields, &news->root);
  return fields.ok();
}

// Without a destructor: at exit other threads may still ask, and a plugin that is unloaded must not leave it behind.
absl::string_view ThisProcessName() {
  struct Name {
    char text[128] = "";
    size_t bytes = 0;
  };
  static const Name name = [] {
    const std::string text = absl::StrCat(HostName(), " pid ", ProcessMark(), RankHere());
    Name filled;
    filled.bytes = text.copy(filled.text, sizeof(filled.text));
    return filled;
  }();
  return absl::string_view(name.text, name.bytes);
}

std::string DescribeRoot(absl::string_view who, const WaitRoot& root) {
  std::string text(who);
  const char* waits = " waits for ";
  for (const std::string& link : root.chain) {
    absl::StrAppend(&text, waits, link);
    waits = ", which waits for ";
  }
  if (root.culprit != (root.chain.empty() ? who : absl::string_view(root.chain.back()))) {
    absl::StrAppend(&text, root.chain.size() == kChainMax ? ", ... which waits for " : waits, root.culprit);
  }
  absl::StrAppend(&text, ": ", CauseWords(root.cause));
  if (!root.evidence.empty()) absl::StrAppend(&text, " (", root.evidence, ")");
  return text;
}

}  // namespace tcpx
