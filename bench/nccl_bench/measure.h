// measure.h: runs one collective at one size: timed, and once more for the check.
//
// Purpose: data is made and checked on the host, and copied to and from the device, so that no code of ours runs
//          there.
// Threads: one per process.
// Units:   bytes, microseconds.
// Errors:  those of CUDA, NCCL and the rendezvous. A wrong result is no error but a count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/nccl_bench/device.h"
#include "bench/nccl_bench/options.h"
#include "bench/nccl_bench/reference.h"
#include "bench/nccl_bench/rendezvous.h"
#include "bench/nccl_bench/table.h"
#include "bench/nccl_bench/watchdog.h"

namespace tcpx {
namespace nccl_bench {

class Measure {
 public:
  // Borrows all; they outlive it.
  Measure(const Options& options, Rendezvous* rendezvous, Watchdog* watchdog)
      : options_(options), rendezvous_(rendezvous), watchdog_(watchdog) {}

  // Takes buffers for messages up to `bytes`.
  absl::Status Prepare(uint64_t bytes);

  // One line of the table; `problem` says what, its rank and ranks are those of `comm`. All ranks of the job call it.
  absl::StatusOr<Row> Run(Communicator* comm, const Problem& problem, uint64_t bytes);

  // One run out of place, and its check; needs no other rank than those of `comm`. A wrong result is an error here.
  absl::Status RunChecked(Communicator* comm, Collective collective, DataType type, uint64_t bytes);

  // Gives `times` all-reduces of `bytes` to the stream and returns; their content does not matter.
  absl::Status Flood(Communicator* comm, uint64_t bytes, int times);

  const Stream& stream() const { return stream_; }

 private:
  struct Place {
    char* send = nullptr;
    char* receive = nullptr;
    bool in_place = false;
  };

  Place PlaceOf(const Problem& problem, const Layout& layout, bool in_place) const;
  absl::Status Fill(const Problem& problem, const Layout& layout, const Place& place);
  absl::Status Issue(Communicator* comm, const Problem& problem, const Layout& layout, const Place& place);
  absl::Status IssueTimes(Communicator* comm, const Problem& problem, const Layout& layout, const Place& place,
                          int times);
  absl::Status Capture(Communicator* comm, const Problem& problem, const Layout& layout, const Place& place, int times,
                       cudaGraphExec_t* graph);
  absl::StatusOr<double> TimeOnce(Communicator* comm, const Problem& problem, const Layout& layout, const Place& place,
                                  int times);
  absl::StatusOr<Verdict> CheckOnce(Communicator* comm, const Problem& problem, const Layout& layout,
                                    const Place& place);
  absl::StatusOr<Timing> RunPlace(Communicator* comm, const Problem& problem, uint64_t bytes, bool in_place);
  void Say(const Problem& problem, uint64_t bytes, const Place& place, const char* what);

  const Options& options_;
  Rendezvous* const rendezvous_;
  Watchdog* const watchdog_;
  DeviceBuffer send_;
  DeviceBuffer receive_;
  std::vector<char> host_;
  size_t capacity_ = 0;
  Stream stream_;
};

}  // namespace nccl_bench
}  // namespace tcpx
