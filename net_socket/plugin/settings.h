// settings.h: what is read once: the parameters, the map of traffic classes, the shared secret and the CPUs there are.
//
// Purpose: the one place where Options live; all else borrows them.
// Threads: constant once read. Lifetime: the plugin's, which outlives the transports.
// Errors:  a wrong parameter is a WARN and its default. security(): what was asked for in TCPX_ENCRYPT,
//          TCPX_SECRET_FILE or a name like these, and can't be had; kInvalidArgument.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cpu_facts.h"
#include "common/params.h"
#include "common/traffic_class.h"
#include "net_socket/connect/secret.h"

namespace tcpx {

class Settings {
 public:
  // Reads the environment. At the first init: NCCL has not bound its threads yet.
  Settings();
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  const Options& options() const { return options_; }
  const CpuFacts& cpu_facts() const { return cpu_facts_; }
  // Null: none is shared.
  const Secret* secret() const { return secret_.get(); }
  // An error: the process was to be protected and is not. No connection may be made then.
  const absl::Status& security() const { return security_; }
  // After an init that fails, or shows no device, NCCL goes on with sockets of its own, in the clear: these must not.
  bool protects() const { return secret_ != nullptr || !security_.ok(); }
  // The octet for what the application asked for, or for the process's default.
  absl::StatusOr<int> TrafficClass(int asked) const;

 private:
  absl::Status Secure();
  absl::Status LoadSecret();
  // An error: what TCPX_ENCRYPT asks for is not available.
  absl::Status Encrypt();

  Options options_;
  const CpuFacts cpu_facts_;
  TrafficClassMap traffic_classes_;
  std::unique_ptr<Secret> secret_;
  absl::Status security_;
};

}  // namespace tcpx
