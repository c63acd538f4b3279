#include "bench/net_bench/role_options.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tcpx {
namespace bench {
namespace {

absl::Status SetListen(const std::string& name, const std::string& value, Options* options) {
  options->role = Role::kListen;
  if (value.empty()) return absl::OkStatus();
  absl::StatusOr<int> port = ParseNumber(name, value, 0, 65535);
  if (port.ok()) options->port = *port;
  return port.status();
}

// HOST, HOST:PORT, an IPv6 address, or [IPv6 address]:PORT.
absl::Status SetHost(const std::string& value, Options* options) {
  options->role = Role::kConnect;
  absl::string_view host = value;
  absl::string_view port;
  if (absl::ConsumePrefix(&host, "[")) {
    const size_t close = host.find(']');
    if (close == absl::string_view::npos) return WrongUsage(absl::StrCat("--connect: no ']' in '", value, "'"));
    port = host.substr(close + 1);
    host = host.substr(0, close);
    if (!port.empty() && !absl::ConsumePrefix(&port, ":")) {
      return WrongUsage(absl::StrCat("--connect: '", value, "' is not [ADDRESS]:PORT"));
    }
  } else if (const size_t colon = host.find(':'); colon != absl::string_view::npos && colon == host.rfind(':')) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.empty()) return WrongUsage("--connect takes HOST[:PORT]");
  options->host = std::string(host);
  if (port.empty()) return absl::OkStatus();
  absl::StatusOr<int> number = ParseNumber("the port of --connect", port, 1, 65535);
  if (number.ok()) options->port = *number;
  return number.status();
}

}  // namespace

void AddRoleOptions(Options* options, OptionParser* parser) {
  using Text = const std::string&;
  parser->Value("--connect", [options](Text, Text value) { return SetHost(value, options); });
  parser->OptionalValue("--listen", [options](Text name, Text value) { return SetListen(name, value, options); });
}

}  // namespace bench
}  // namespace tcpx
