// Parameters in words, for warnings, docs/parameters.md and tcpx_doctor.
#include "absl/strings/str_cat.h"
#include "common/params.h"

namespace tcpx {
namespace {

constexpr struct {
  ParameterKind kind;
  const char* allowed;
} kWords[] = {
    {ParameterKind::kFlag, "on (1) or off (0)"},
    {ParameterKind::kEngine, "auto, io_uring or epoll"},
    {ParameterKind::kSwitch, "auto, on (1) or off (0)"},
    {ParameterKind::kAutoOff, "auto or off (0)"},
    {ParameterKind::kCpuList, "a list of CPUs like 0-3,7"},
    {ParameterKind::kClassMap,
     "a list like 0:cs1,1:af21,2:46 of ids from 0 to 255, each once, and DSCP names or numbers from 0 to 63"},
};

std::string BytesText(int64_t bytes) {
  constexpr struct {
    int64_t bytes;
    const char* suffix;
  } kUnits[] = {{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}};
  for (const auto& unit : kUnits) {
    if (bytes >= unit.bytes && bytes % unit.bytes == 0) return absl::StrCat(bytes / unit.bytes, unit.suffix);
  }
  return absl::StrCat(bytes);
}

const char* UnitText(ParameterKind kind) {
  if (kind == ParameterKind::kMbps) return " Mbit/s";
  if (kind == ParameterKind::kSeconds) return " s";
  return kind == ParameterKind::kMilliseconds ? " ms" : "";
}

// A value as the environment has it.
std::string NumberText(const Parameter& parameter, int64_t value) {
  return parameter.kind == ParameterKind::kBytes ? BytesText(value) : absl::StrCat(value);
}

std::string ValueText(const Parameter& parameter, int64_t field) {
  const int64_t unit = UnitOf(parameter.kind);
  if (parameter.range.word != nullptr && field == parameter.range.special * unit) return parameter.range.word;
  const std::string number =
      unit == 1 ? NumberText(parameter, field) : absl::StrCat(static_cast<double>(field) / static_cast<double>(unit));
  return absl::StrCat(number, UnitText(parameter.kind));
}

std::string ValueText(const Parameter& parameter, int field) { return ValueText(parameter, int64_t{field}); }
std::string ValueText(const Parameter& parameter, bool field) {
  if (parameter.kind == ParameterKind::kFlag) return SwitchName(field ? Switch::kOn : Switch::kOff);
  return absl::StrCat(static_cast<int>(field));
}
std::string ValueText(const Parameter& parameter, const AskedClass& field) {
  return ValueText(parameter, int64_t{field.value});
}
std::string ValueText(const Parameter&, EngineChoice field) { return EngineName(field); }
std::string ValueText(const Parameter&, Switch field) { return SwitchName(field); }
std::string ValueText(const Parameter&, const std::string& field) { return field.empty() ? "empty" : field; }
std::string ValueText(const Parameter&, const PortRange& field) {
  return field.any() ? "empty" : absl::StrCat(field.low, "-", field.high);
}

std::string RangeText(const Parameter& parameter) {
  const ParameterRange& range = parameter.range;
  const std::string special = range.word == nullptr ? "" : absl::StrCat(range.word, " (", range.special, ")");
  const std::string most = absl::StrCat(NumberText(parameter, range.max), UnitText(parameter.kind));
  if (!special.empty() && range.special == range.min) return absl::StrCat(special, ", or more, up to ", most);
  return absl::StrCat(special, special.empty() ? "" : " or ", NumberText(parameter, range.min), " to ", most);
}

}  // namespace

const char* EngineName(EngineChoice choice) {
  constexpr const char* kNames[] = {"auto", "io_uring", "epoll"};
  return kNames[static_cast<size_t>(choice)];
}

const char* SwitchName(Switch choice) {
  constexpr const char* kNames[] = {"auto", "on", "off"};
  return kNames[static_cast<size_t>(choice)];
}

int64_t UnitOf(ParameterKind kind) {
  if (kind == ParameterKind::kSeconds) return kSecond;
  return kind == ParameterKind::kMilliseconds ? kMillisecond : 1;
}

std::string ValueOf(const Parameter& parameter, const Options& options) {
  return std::visit([&](auto field) { return ValueText(parameter, options.*field); }, parameter.field);
}

std::string DefaultText(const Parameter& parameter) { return ValueOf(parameter, Options()); }

std::string AllowedText(const Parameter& parameter) {
  for (const auto& [kind, text] : kWords) {
    if (kind == parameter.kind) return text;
  }
  const ParameterRange& range = parameter.range;
  if (parameter.kind == ParameterKind::kText) return parameter.values;
  if (parameter.kind == ParameterKind::kPorts) {
    return absl::StrCat("LOW-HIGH with ports from ", range.min, " to ", range.max);
  }
  std::string text = RangeText(parameter);
  if (parameter.kind == ParameterKind::kLowered) absl::StrAppend(&text, ", more counts as ", range.max);
  if (parameter.kind == ParameterKind::kClass) {
    absl::StrAppend(&text, ", or the name of a DSCP: cs0 to cs7, af11 to af43, ef, va, le, df");
  }
  return text;
}

}  // namespace tcpx
