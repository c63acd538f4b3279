#include "net_socket/connect/connect_bounds.h"

#include <algorithm>

namespace tcpx {
namespace {

constexpr double kLongestNs = 3650.0 * 86400 * kSecond;

double PausesNs(const Options& options) {
  return 0.5 * options.retry_count * (options.retry_count + 1.0) * static_cast<double>(options.retry_sleep_ns);
}

int64_t Bounded(double ns) { return static_cast<int64_t>(std::min(ns, kLongestNs)); }

}  // namespace

int64_t ConnectBoundNs(const Options& options) {
  return Bounded((options.retry_count + 2.0) * static_cast<double>(options.hello_timeout_ns) + PausesNs(options));
}

int64_t PatienceNs(const Options& options) {
  return Bounded(2.0 * static_cast<double>(options.hello_timeout_ns) + PausesNs(options));
}

AcceptBounds AcceptBoundsOf(const Options& options) {
  AcceptBounds bounds;
  bounds.lost_ns = PatienceNs(options);
  bounds.incomplete_ns = Bounded(static_cast<double>(ConnectBoundNs(options)) + static_cast<double>(bounds.lost_ns));
  return bounds;
}

}  // namespace tcpx
