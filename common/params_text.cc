#include "common/params_text.h"

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

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
  const bool special = parameter.special.word != nullptr && field == parameter.special.value * unit;
  if (special) return parameter.special.word;
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
  std::string text;
  const bool least = parameter.special.word != nullptr && parameter.special.value == parameter.min;
  if (least) {
    return absl::StrCat(parameter.special.word, " (", parameter.special.value, "), or more, up to ",
                        NumberText(parameter, parameter.max), UnitText(parameter.kind));
  }
  if (parameter.special.word != nullptr) {
    text = absl::StrCat(parameter.special.word, " (", parameter.special.value, ") or ");
  }
  return absl::StrCat(text, NumberText(parameter, parameter.min), " to ", NumberText(parameter, parameter.max),
                      UnitText(parameter.kind));
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
  switch (parameter.kind) {
    case ParameterKind::kLowered:
      return absl::StrCat(RangeText(parameter), ", more counts as ", parameter.max);
    case ParameterKind::kFlag:
      return "on (1) or off (0)";
    case ParameterKind::kEngine:
      return "auto, io_uring or epoll";
    case ParameterKind::kSwitch:
      return "auto, on (1) or off (0)";
    case ParameterKind::kAutoOff:
      return "auto or off (0)";
    case ParameterKind::kPorts:
      return absl::StrCat("LOW-HIGH with ports from ", parameter.min, " to ", parameter.max);
    case ParameterKind::kCpuList:
      return "a list of CPUs like 0-3,7";
    case ParameterKind::kClass:
      return absl::StrCat(RangeText(parameter), ", or the name of a DSCP: cs0 to cs7, af11 to af43, ef, va, le, df");
    case ParameterKind::kClassMap:
      return "a list like 0:cs1,1:af21,2:46 of ids from 0 to 255, each once, and DSCP names or numbers from 0 to 63";
    case ParameterKind::kText:
      return parameter.values;
    default:
      return RangeText(parameter);
  }
}

}  // namespace tcpx
