#include "tests/plugin/faults/seeded_run.h"

#include <stdlib.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "net_socket/plugin/plugin.h"
#include "tests/plugin/faults/faults.h"
#include "tests/plugin/faults/faulty_engine.h"
#include "tests/plugin/faults/seeded_ends.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/deadline.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

// Nothing waits for longer than TCPX_PEER_TIMEOUT, 1 s here, but for a loaded machine.
constexpr int kHungSeconds = 40;
// Without progress for so long, NCCL gives up on what an engine has lost.
constexpr auto kLostPatience = std::chrono::milliseconds(150);

// What a seed chooses.
struct Choice {
  int threads = 0;
  int lanes = 1;
  int max_receives = 1;
  bool faults_while_connecting = false;
  bool dereg_in_flight = false;
  int messages = 40;
  bool heal = false;
  bool survives = false;  // whatever happens: nothing else than deaths of lanes does
  EngineFaults engine;
  FaultRates rates;

  std::string Text() const {
    static const char* const kInner[] = {"fake", "epoll", "io_uring"};
    return absl::StrCat(threads, " threads, ", kInner[static_cast<int>(engine.inner)], ", ", lanes, " lanes, maxRecvs ",
                        max_receives, ", zero-copy ", engine.zero_copy, ", heal ", heal,
                        dereg_in_flight ? ", dereg" : "", "; one in N: short ", rates.shorten, " again ", rates.again,
                        " late ", rates.late, " duplicate ", rates.duplicate, " zero ", rates.zero, " reset ",
                        rates.reset, " errno ", rates.err, " lost ", rates.lost);
  }
};

FaultRates ChooseRates(Rng* rng) {
  FaultRates rates;
  rates.shorten = rng->OneIn(4) ? 0 : rng->Between(1, 30);
  // Tiny ones only now and then: a run is of some megabytes.
  rates.short_bytes_max = (rates.shorten < 10 ? size_t{2048} : size_t{16}) << rng->Between(0, 5);
  rates.again = rng->OneIn(3) ? 0 : rng->Between(3, 100);
  rates.storm_max = rng->OneIn(3) ? 300 : 5;
  rates.late = rng->OneIn(3) ? 0 : rng->Between(2, 50);
  rates.late_rounds_max = rng->Between(1, 40);
  rates.duplicate = rng->OneIn(3) ? 0 : rng->Between(1, 20);
  const uint64_t rare = uint64_t{3} << rng->Between(0, 9);
  switch (rng->Between(0, 9)) {
    case 0:
      rates.zero = rare;
      break;
    case 1:
    case 2:
      rates.reset = rare;
      break;
    case 3:
    case 4:
      rates.err = rare;
      break;
    case 5:
      rates.lost = rare;
      break;
    case 6:
      rates.zero = rates.reset = rates.err = rare * 3;
      break;
    default:
      break;  // Nothing that ends a connection: every byte must arrive.
  }
  return rates;
}

// So that what is sent gets on between two deaths.
void ChooseDeaths(Rng* rng, Choice* choice) {
  choice->heal = choice->survives = true;
  choice->faults_while_connecting = false;
  FaultRates& rates = choice->rates;
  const uint64_t rare = uint64_t{24} << rng->Between(0, 6);
  rates.lost = 0;
  rates.reset = rng->OneIn(4) ? 0 : rare;
  rates.err = rng->OneIn(2) ? 0 : rare;
  rates.zero = rng->OneIn(2) ? 0 : rare;
  rates.deaths_of_lanes = true;
}

Choice Choose(uint64_t seed) {
  Rng rng(seed);
  Choice choice;
  choice.threads = static_cast<int>(rng.Between(0, 2));
  choice.lanes = static_cast<int>(rng.Between(1, 5));
  choice.max_receives = rng.OneIn(4) ? 4 : 1;
  choice.faults_while_connecting = rng.OneIn(4);
  choice.dereg_in_flight = rng.OneIn(8);
  choice.messages = static_cast<int>(rng.Between(1, 80));
  choice.engine.inner = static_cast<InnerEngine>(rng.Between(0, 2));
  choice.engine.zero_copy = rng.OneIn(2);
  choice.engine.seed = rng.Next();
  choice.rates = ChooseRates(&rng);
  choice.heal = getenv("TCPX_TEST_HEAL") != nullptr && rng.OneIn(2);
  if (getenv("TCPX_TEST_DEATHS") != nullptr) ChooseDeaths(&rng, &choice);
  return choice;
}

void SetEnvironment(const Choice& choice, uint64_t seed) {
  Rng rng(seed ^ 0xE44);
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
  set("NCCL_SOCKET_IFNAME", "lo");
  set("NCCL_SOCKET_FAMILY", "AF_INET");
  set("TCPX_THREADS", absl::StrCat(choice.threads));
  set("TCPX_ENGINE", "epoll");
  set("TCPX_LANES", absl::StrCat(choice.lanes));
  set("TCPX_MAX_RECVS", absl::StrCat(choice.max_receives));
  set("TCPX_EXPRESS_BYTES", absl::StrCat(rng.OneIn(2) ? 65536 : 2000));
  set("TCPX_CHUNK_BYTES", "65600");
  set("NCCL_SOCKET_MIN_TASKSIZE", rng.OneIn(2) ? "65536" : "4096");
  set("TCPX_ZEROCOPY", "on");
  set("TCPX_PEER_TIMEOUT", choice.survives ? "30" : "1");
  set("TCPX_HELLO_TIMEOUT", "1");
  set("TCPX_LINGER", "1");
  set("TCPX_STALL_WARN", "off");
  set("TCPX_HEAL", choice.heal ? "1" : "0");
  set("TCPX_RECONNECT_TIMEOUT", choice.survives ? "30" : "2");
  set("NCCL_SOCKET_RETRY_CNT", "3");
  set("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1");
}

std::mutex g_log_mutex;
std::string* g_log = new std::string;

void KeepLine(LogLevel level, uint64_t, const char*, int, const char* text) {
  if (level != LogLevel::kWarn) return;
  std::lock_guard<std::mutex> lock(g_log_mutex);
  absl::StrAppend(g_log, text, "\n");
}

class SeededRun {
 public:
  SeededRun(const Choice& choice, uint64_t seed)
      : choice_(choice), rng_(seed ^ 0x5eed), messages_(seed, choice.messages) {}

  void Run(uint64_t seed, RunResult* result) {
    Connect();
    if (send_ != nullptr && recv_ != nullptr) Move(seed, result);
    CloseAll();
    if (wrong_.empty()) wrong_ = Faults::Get().violation();
    result->wrong = wrong_;
  }

 private:
  bool Excused() const { return !choice_.survives && (Faults::Get().fatal() > 0 || Faults::Get().lost() > 0); }

  void Wrong(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
  }

  void Connect() {
    ContextOptions options;
    options.api_version = 12;
    options.comm_id = 7;
    options.log = &KeepLine;
    auto context = plugin_.CreateContext(options);
    if (!context.ok()) return Wrong(context.status().ToString());
    context_ = *context;
    char handle[kHandleBytes] = {};
    auto listen = plugin_.Listen(context_, 0, handle);
    if (!listen.ok()) return Wrong(listen.status().ToString());
    if (!choice_.faults_while_connecting) Faults::Get().Pause();
    Faults::Get().SetConnecting(true);
    PollBoth(handle, *listen);
    Faults::Get().SetConnecting(false);
    plugin_.CloseListen(*listen);
  }

  void PollBoth(char* handle, ListenComm* listen) {
    const Deadline deadline(kHungSeconds);
    absl::Status status;
    // A dialler that has failed tells nobody: the acceptor goes on listening, as it should.
    while (status.ok() && (send_ == nullptr || recv_ == nullptr)) {
      if (send_ == nullptr) status = Take(plugin_.Connect(context_, 0, handle, ConnectOptions()), &send_);
      if (status.ok() && recv_ == nullptr) status = Take(plugin_.Accept(listen), &recv_);
      if (send_ != nullptr && recv_ == nullptr && Excused() && deadline_of_accept_.Over()) return;
      if (!deadline.Yield()) return Wrong("connecting hangs");
    }
    if (!status.ok() && !Excused()) Wrong(absl::StrCat("connecting without a fault: ", status.ToString()));
  }

  static absl::Status Take(absl::StatusOr<Comm*> comm, Comm** out) {
    if (comm.ok()) *out = *comm;
    return comm.status();
  }

  void Move(uint64_t seed, RunResult* result) {
    if (!choice_.faults_while_connecting) Faults::Get().Begin(seed, choice_.rates);
    sender_ = std::make_unique<SeededSender>(&plugin_, send_, &messages_, seed + 1);
    receiver_ = std::make_unique<SeededReceiver>(&plugin_, recv_, &messages_, seed + 2, choice_.max_receives);
    stop_at_ = choice_.dereg_in_flight ? static_cast<int>(rng_.Between(1, 40)) : -1;
    Drive();
    result->completed = sender_->finished() && receiver_->finished();
    if (result->completed && choice_.max_receives == 1) Refill();
    if (result->completed && receiver_->finished()) receiver_->CheckAll();
    Explain(result);
  }

  // Every slot is free again, with no fault any more.
  void Refill() {
    Faults::Get().Pause();
    receiver_->FillSlots();
    sender_->FillSlots();
    Drive();
  }

  // Until both ends have finished or failed, or the seed closes them in the middle.
  void Drive() {
    Deadline deadline(kHungSeconds);
    auto moved_at = std::chrono::steady_clock::now();
    while (!(Over(*sender_) && Over(*receiver_)) && steps_ != stop_at_) {
      bool moved = false;
      for (uint64_t i = rng_.Between(0, 3); i > 0; --i) moved = sender_->PostOne() || moved;
      for (uint64_t i = rng_.Between(0, 3); i > 0; --i) moved = receiver_->PostOne() || moved;
      for (uint64_t i = rng_.Between(0, 2); i > 0; --i) moved = sender_->TestOldest() || moved;
      for (uint64_t i = rng_.Between(0, 2); i > 0; --i) moved = receiver_->TestOldest() || moved;
      const auto now = std::chrono::steady_clock::now();
      if (moved) {
        ++steps_;
        moved_at = now;
        deadline.Restart();
      } else if (Faults::Get().lost() > 0 && now - moved_at > kLostPatience) {
        return;
      } else if (!deadline.Yield()) {
        return Wrong("hangs: neither done nor an error");
      }
    }
  }

  static bool Over(const SeededEnd& end) { return end.finished() || !end.status().ok(); }

  void Explain(RunResult* result) {
    for (SeededEnd* end : {static_cast<SeededEnd*>(sender_.get()), static_cast<SeededEnd*>(receiver_.get())}) {
      if (!end->status().ok()) {
        result->failed = true;
        if (!Excused()) Wrong(absl::StrCat("an error without a fault: ", end->status().ToString()));
        end->EndAll();
      }
    }
  }

  // What still comes must not reach memory that was given back.
  void StepSender() {
    if (steps_ != stop_at_) return;
    for (int i = 0; i < 2000; ++i) (void)(sender_->PostOne() || sender_->TestOldest());
  }

  void CloseAll() {
    // As NCCL does it: deregister, close, and only then the context.
    if (receiver_ != nullptr) {
      receiver_->Deregister();
      StepSender();
      sender_->Deregister();
    }
    if (rng_.OneIn(2)) plugin_.CloseComm(send_), send_ = nullptr;
    plugin_.CloseComm(recv_);
    plugin_.CloseComm(send_);
    if (sender_ != nullptr) {
      sender_->ArmAll();
      receiver_->ArmAll();
    }
    if (context_ != nullptr) {
      const absl::Status status = plugin_.DestroyContext(context_);
      if (!status.ok()) Wrong(absl::StrCat("finalize: ", status.ToString()));
    }
    if (!plugin_.Unload([] { return false; })) Wrong("something of the plugin is left");
    if (sender_ == nullptr) return;
    sender_->CheckUntouched();
    receiver_->CheckUntouched();
    if (!sender_->wrong().empty()) Wrong("sender: " + sender_->wrong());
    if (!receiver_->wrong().empty()) Wrong("receiver: " + receiver_->wrong());
  }

  const Choice choice_;
  Rng rng_;
  const SeededMessages messages_;
  const Deadline deadline_of_accept_{4};
  Plugin plugin_;
  Context* context_ = nullptr;
  Comm* send_ = nullptr;
  Comm* recv_ = nullptr;
  std::unique_ptr<SeededSender> sender_;
  std::unique_ptr<SeededReceiver> receiver_;
  int steps_ = 0;
  int stop_at_ = -1;
  std::string wrong_;
};

}  // namespace

RunResult RunSeed(uint64_t seed) {
  const Choice choice = Choose(seed);
  RunResult result;
  result.summary = choice.Text();
  static const int threads = ThreadCountAtRest();
  const std::vector<std::string> descriptors = OpenDescriptors();
  {
    std::lock_guard<std::mutex> lock(g_log_mutex);
    g_log->clear();
  }
  SetEnvironment(choice, seed);
  SetEngineFaults(choice.engine);
  SetPolling(true);
  Faults::Get().Begin(seed, choice.rates);
  std::make_unique<SeededRun>(choice, seed)->Run(seed, &result);
  Faults::Get().End();
  if (result.wrong.empty() && OpenDescriptors() != descriptors) {
    result.wrong = absl::StrCat("descriptors are left:\n", Joined(OpenDescriptors()));
  }
  if (result.wrong.empty() && !SettlesAtThreads(threads)) {
    result.wrong = absl::StrCat(ThreadCount(), " threads, and ", threads, " before");
  }
  std::lock_guard<std::mutex> lock(g_log_mutex);
  if (!result.wrong.empty()) absl::StrAppend(&result.wrong, "\nwarnings:\n", *g_log);
  return result;
}

}  // namespace tcpx
