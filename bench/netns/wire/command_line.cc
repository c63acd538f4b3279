#include "bench/netns/wire/command_line.h"

#include <arpa/inet.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bench/netns/wire/profiles.h"

namespace tcpx {
namespace wire {
namespace {

absl::Status Wrong(absl::string_view text) { return absl::InvalidArgumentError(text); }

absl::Status AddAddress(const std::string& text, std::vector<Address>* addresses) {
  Address address = {};
  const int family = text.find(':') == std::string::npos ? AF_INET : AF_INET6;
  if (inet_pton(family, text.c_str(), address.data()) != 1) return Wrong(absl::StrCat("'", text, "' is no address"));
  addresses->push_back(address);
  return absl::OkStatus();
}

// NETNS:DEVICE=ADDRESS[,ADDRESS]...
absl::Status AddEnd(absl::string_view value, std::vector<End>* ends) {
  const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(value, absl::MaxSplits('=', 1));
  const std::vector<std::string> names = absl::StrSplit(halves.first, ':');
  if (names.size() != 2 || names[0].empty() || names[1].empty() || halves.second.empty()) {
    return Wrong(absl::StrCat("--end takes NETNS:DEVICE=ADDRESS[,ADDRESS], not '", value, "'"));
  }
  End end{names[0], names[1], {}};
  for (absl::string_view address : absl::StrSplit(halves.second, ',')) {
    if (absl::Status status = AddAddress(std::string(address), &end.addresses); !status.ok()) return status;
  }
  ends->push_back(std::move(end));
  return absl::OkStatus();
}

absl::Status SetPathOf(absl::string_view number, absl::string_view key, absl::string_view value, Settings* settings) {
  int path = 0;
  if (!absl::SimpleAtoi(number, &path)) return Wrong(absl::StrCat("'", number, "' is no path"));
  return SetOfPath(path, key, value, settings);
}

// N:KEY=VALUE
absl::Status SetOnePath(absl::string_view value, Settings* settings) {
  const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(value, absl::MaxSplits('=', 1));
  const std::pair<absl::string_view, absl::string_view> what = absl::StrSplit(halves.first, absl::MaxSplits(':', 1));
  return SetPathOf(what.first, what.second, halves.second, settings);
}

absl::Status UseProfile(absl::string_view name, Settings* settings) {
  const Profile* profile = FindProfile(name);
  if (profile == nullptr) return Wrong(absl::StrCat("'", name, "' is none of ", ProfileNames()));
  *settings = Settings();
  for (const auto& [key, value] : profile->settings) {
    if (absl::Status status = SetEverywhere(key, value, settings); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool IsOption(absl::string_view name) {
  for (const char* known : {"end", "profile", "path", "control", "seed", "spin"}) {
    if (name == known) return true;
  }
  return IsKey(name);
}

absl::Status SetOption(absl::string_view name, const std::string& value, Options* options) {
  if (name == "end") return AddEnd(value, &options->ends);
  if (name == "profile") return UseProfile(value, &options->settings);
  if (name == "path") return SetOnePath(value, &options->settings);
  if (name == "control") {
    options->control = value;
    return absl::OkStatus();
  }
  if (name == "seed") {
    return absl::SimpleAtoi(value, &options->seed) ? absl::OkStatus() : Wrong("--seed takes a number");
  }
  if (name == "spin") {
    const absl::StatusOr<int64_t> spin = ParseDuration(value);
    if (spin.ok()) options->spin_ns = *spin;
    return spin.status();
  }
  return SetEverywhere(name, value, &options->settings);
}

}  // namespace

absl::StatusOr<Options> ParseCommandLine(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view name = arguments[i];
    if (name == "-h" || name == "--help") {
      options.help = true;
      return options;
    }
    if (!absl::ConsumePrefix(&name, "--")) return Wrong(absl::StrCat("'", arguments[i], "' is no option"));
    if (!IsOption(name)) return Wrong(absl::StrCat("unknown option --", name));
    if (i + 1 == arguments.size()) return Wrong(absl::StrCat("--", name, " needs a value"));
    const absl::Status status = SetOption(name, arguments[++i], &options);
    if (!status.ok()) return Wrong(absl::StrCat("--", name, ": ", status.message()));
  }
  if (options.ends.size() < 2) return Wrong("a wire has two ends or more: --end NETNS:DEVICE=ADDRESS for each");
  return options;
}

absl::Status ApplyLine(absl::string_view line, Settings* settings) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() == 2 && words[0] == "cut") return SetEverywhere("cut", words[1], settings);
  if (words.size() == 3 && words[0] == "set") return SetEverywhere(words[1], words[2], settings);
  if (words.size() == 5 && words[0] == "set" && words[1] == "path") {
    return SetPathOf(words[2], words[3], words[4], settings);
  }
  return Wrong(absl::StrCat("'", line, "' is none of: set KEY VALUE, set path N KEY VALUE, cut on|off, stats"));
}

std::string UsageText() {
  std::string text = R"(usage: wire --end NETNS:DEVICE=ADDRESS[,ADDRESS] --end ... [--profile NAME] [options]
       wire ctl SOCKET set KEY VALUE | set path N KEY VALUE | cut on|off | stats
       wire profiles

A network between namespaces: makes a TUN device in each, says "ready", and relays until SIGTERM; then it prints what
stats prints. Devices need an address, and to be up, from outside. Packets go where their destination says.

  --end NETNS:DEVICE=ADDRESS[,ADDRESS]   twice or more
  --profile NAME      settings with a name; give it before those that override it
  --control SOCKET    a UNIX socket that wire ctl speaks to
  --path N:KEY=VALUE  a setting of one path
  --seed N            of the flows' hash and of all chance (default 1)
  --spin DURATION     spins instead of sleeping when something is due within this (default 20us)
  --KEY VALUE         a setting:

)";
  absl::StrAppend(&text, SettingsHelp(), "\nprofiles (times are round trips)\n");
  for (const Profile& profile : Profiles()) absl::StrAppend(&text, "  ", profile.name, ": ", profile.description, "\n");
  return text + "\nexit code: 0 done; 1 a call failed, or the relay answered with an error; 2 wrong usage\n";
}

}  // namespace wire
}  // namespace tcpx
