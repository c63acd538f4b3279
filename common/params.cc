#include "common/params.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/cpu_facts.h"
#include "common/limits.h"

namespace tcpx {
namespace {

using Getenv = std::function<const char*(const char*)>;

bool IsHex(absl::string_view text) { return absl::StartsWithIgnoreCase(text, "0x"); }

// Decimal or, as NCCL reads its own, hexadecimal.
bool ParseWhole(absl::string_view text, int64_t* value) {
  // The library's parsers would take these too.
  if (text.empty() || text.front() == '+' || absl::StripAsciiWhitespace(text) != text) return false;
  return IsHex(text) ? absl::SimpleHexAtoi(text, value) : absl::SimpleAtoi(text, value);
}

// 512K, 512KB and 512KiB are the same.
bool ParseSize(absl::string_view text, int64_t* value) {
  int shift = 0;
  if (!IsHex(text)) {
    const size_t digits = std::min(text.find_first_of("kKmMgG"), text.size());
    const std::string suffix = absl::AsciiStrToLower(text.substr(digits));
    const absl::string_view bytes = absl::string_view(suffix).substr(std::min<size_t>(suffix.size(), 1));
    if (!bytes.empty() && bytes != "b" && bytes != "ib") return false;
    shift = suffix.empty() ? 0 : suffix[0] == 'k' ? 10 : suffix[0] == 'm' ? 20 : 30;
    text = text.substr(0, digits);
  }
  if (!ParseWhole(text, value) || *value > (std::numeric_limits<int64_t>::max() >> shift) || *value < INT32_MIN) {
    return false;
  }
  *value *= int64_t{1} << shift;
  return true;
}

bool ParseDuration(absl::string_view text, int64_t unit, int64_t* value) {
  double number = 0;
  if (text.empty() || !absl::ascii_isdigit(text[0]) || absl::ascii_isspace(text.back())) return false;
  if (!absl::SimpleAtod(text, &number) || !(number * unit < 9e18)) return false;
  *value = std::llround(number * unit);
  return true;
}

bool ParseNumber(const Parameter& parameter, absl::string_view text, int64_t* value) {
  const ParameterRange& range = parameter.range;
  if (range.word != nullptr && text == range.word) {
    *value = range.special;
    return true;
  }
  const int64_t unit = UnitOf(parameter.kind);
  const bool parsed = unit != 1                                 ? ParseDuration(text, unit, value)
                      : parameter.kind == ParameterKind::kBytes ? ParseSize(text, value)
                                                                : ParseWhole(text, value);
  if (!parsed) return false;
  if (range.word != nullptr && *value == range.special * unit) return true;
  const bool lowered = parameter.kind == ParameterKind::kLowered;  // later, with a warning
  return *value >= range.min * unit && (*value <= range.max * unit || lowered);
}

// Each Store parses `text` and writes the field; false leaves it as it was.
template <typename Number>
bool Store(const Parameter& parameter, absl::string_view text, Number* field) {
  int64_t value = 0;
  if (!ParseNumber(parameter, text, &value)) return false;
  *field = static_cast<Number>(value);
  return true;
}

bool IsAnyOf(absl::string_view text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [text](const char* w) { return absl::EqualsIgnoreCase(text, w); });
}

// The words of every switch of ours.
bool ParseSwitch(absl::string_view text, bool* on) {
  *on = IsAnyOf(text, {"on", "1", "true", "yes"});
  return *on || IsAnyOf(text, {"off", "0", "false", "no"});
}

bool Store(const Parameter& parameter, absl::string_view text, bool* field) {
  bool on = false;
  int64_t value = 0;
  if (parameter.kind == ParameterKind::kFlag ? !ParseSwitch(text, &on) : !ParseNumber(parameter, text, &value)) {
    return false;
  }
  *field = on || value != 0;
  return true;
}

bool Store(const Parameter& parameter, absl::string_view text, std::string* field) {
  if (parameter.kind == ParameterKind::kCpuList && !ParseCpuList(text).ok()) return false;
  if (parameter.kind == ParameterKind::kClassMap && !ParseTrafficClassMap(text).ok()) return false;
  if (text.empty()) return false;
  *field = std::string(text);
  return true;
}

bool Store(const Parameter&, absl::string_view text, EngineChoice* field) {
  for (EngineChoice choice : {EngineChoice::kAuto, EngineChoice::kIoUring, EngineChoice::kEpoll}) {
    if (text != EngineName(choice)) continue;
    *field = choice;
    return true;
  }
  return false;
}

bool Store(const Parameter& parameter, absl::string_view text, Switch* field) {
  bool on = false;
  const bool automatic = absl::EqualsIgnoreCase(text, SwitchName(Switch::kAuto));
  if (!automatic && !ParseSwitch(text, &on)) return false;
  if (on && parameter.kind == ParameterKind::kAutoOff) return false;
  *field = automatic ? Switch::kAuto : on ? Switch::kOn : Switch::kOff;
  return true;
}

bool Store(const Parameter& parameter, absl::string_view text, AskedClass* field) {
  int64_t value = 0;
  if (const std::optional<int> dscp = DscpOfName(text)) {
    *field = {*dscp << 2, true};
    return true;
  }
  if (!ParseNumber(parameter, text, &value)) return false;
  *field = {static_cast<int>(value), false};
  return true;
}

bool Store(const Parameter& parameter, absl::string_view text, PortRange* field) {
  const size_t dash = text.find('-');
  int64_t low = 0;
  int64_t high = 0;
  if (dash == absl::string_view::npos) return false;
  if (!ParseWhole(text.substr(0, dash), &low) || !ParseWhole(text.substr(dash + 1), &high)) return false;
  if (low < parameter.range.min || high > parameter.range.max || low > high) return false;
  *field = {static_cast<int>(low), static_cast<int>(high)};
  return true;
}

std::string WrongText(const Parameter& parameter, absl::string_view text) {
  if (text.empty() && parameter.kind == ParameterKind::kText) return absl::StrCat(parameter.name, " is set, and empty");
  int64_t size = 0;
  const bool no_size = parameter.kind == ParameterKind::kBytes && !ParseSize(text, &size);
  return absl::StrCat(parameter.name, " is \"", text, "\"",
                      no_size ? ": not a size (write 64K or 1M); allowed: " : ", which is not ",
                      AllowedText(parameter));
}

// True exactly when the variable was set to something valid.
bool Load(const Parameter& parameter, const Getenv& getenv_fn, Options* options, std::vector<std::string>* warnings) {
  const char* text = getenv_fn(parameter.name);
  // A script's empty variable counts: it may have been meant to be full. But for the cipher, which is the best then.
  const bool security = IsSecurity(parameter.name);
  const bool may_be_empty = !security || parameter.field == ParameterField(&Options::encrypt_cipher);
  if (text == nullptr || (*text == '\0' && may_be_empty)) return false;
  const bool stored =
      std::visit([&](auto field) { return Store(parameter, text, &(options->*field)); }, parameter.field);
  if (stored) return true;
  std::string wrong = WrongText(parameter, text);
  if (security) {
    if (options->refused.empty()) options->refused = std::move(wrong);
  } else {
    warnings->push_back(absl::StrCat(wrong, "; using the default, ", DefaultText(parameter)));
  }
  return false;
}

// The lanes that NCCL's two variables ask for; 0 when they ask for nothing. Lowered in its order. A product of 0 is one
// socket there, too: the control connection.
void ResolveLanes(bool lanes_set, Options* options, std::vector<std::string>* warnings) {
  if (lanes_set) return;
  int64_t* const threads = &options->socket_nthreads;
  int64_t* const sockets = &options->nsocks_perthread;
  if (*threads > kSocketThreadsMax) {
    warnings->push_back(absl::StrCat("NCCL_SOCKET_NTHREADS is ", *threads, ", which is above the maximum: using ",
                                     kSocketThreadsMax, ", as NCCL does"));
    *threads = kSocketThreadsMax;
  }
  const int64_t most = kLanesMax / std::max<int64_t>(1, *threads);
  if (*sockets > most) {
    warnings->push_back(absl::StrCat("NCCL_NSOCKS_PERTHREAD is ", *sockets,
                                     ": with NCCL_SOCKET_NTHREADS that is above ", kLanesMax, " sockets; using ", most,
                                     ", as NCCL does"));
    *sockets = most;
  }
  if (*threads < 0 && *sockets < 0) return;
  const int64_t product = (*threads < 0 ? 1 : *threads) * (*sockets < 0 ? 1 : *sockets);
  options->lanes = static_cast<int>(std::max<int64_t>(1, product));
}

void ResolveChunks(bool chunk_set, Options* options, std::vector<std::string>* warnings) {
  if (options->chunk_bytes_min <= options->chunk_bytes) return;
  if (!chunk_set) {
    options->chunk_bytes = options->chunk_bytes_min;
    return;
  }
  const Options defaults;
  warnings->push_back(absl::StrCat("NCCL_SOCKET_MIN_TASKSIZE is ", options->chunk_bytes_min, ", which is above the ",
                                   options->chunk_bytes, " of TCPX_CHUNK_BYTES; using the defaults, ",
                                   defaults.chunk_bytes_min, " and ", defaults.chunk_bytes));
  options->chunk_bytes_min = defaults.chunk_bytes_min;
  options->chunk_bytes = defaults.chunk_bytes;
}

}  // namespace

bool IsSecurity(absl::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  return absl::StrContains(upper, "ENCR") || absl::StrContains(upper, "SECRET");
}

Options LoadOptions(const Getenv& getenv_fn, std::vector<std::string>* warnings, std::vector<std::string>* ours) {
  Options options;
  bool lanes_set = false;
  bool chunk_set = false;
  std::vector<std::string> unwanted;
  if (warnings == nullptr) warnings = &unwanted;
  const Getenv read = getenv_fn ? getenv_fn : &getenv;
  for (const Parameter& parameter : Parameters()) {
    const bool set = Load(parameter, read, &options, warnings);
    if (set && ours != nullptr && absl::StartsWith(parameter.name, "TCPX_")) {
      ours->push_back(absl::StrCat(parameter.name, "=", read(parameter.name)));
    }
    lanes_set |= set && parameter.name == absl::string_view("TCPX_LANES");
    chunk_set |= set && parameter.name == absl::string_view("TCPX_CHUNK_BYTES");
  }
  for (const Parameter& parameter : TestParameters()) (void)Load(parameter, read, &options, warnings);
  ResolveLanes(lanes_set, &options, warnings);
  ResolveChunks(chunk_set, &options, warnings);
  return options;
}

}  // namespace tcpx
