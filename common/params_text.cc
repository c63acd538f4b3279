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

int64_t NanosPerUnit(ParameterKind kind) {
  if (kind == ParameterKind::kSeconds) return kSecond;
  if (kind == ParameterKind::kMilliseconds) return kMillisecond;
  return kind == ParameterKind::kMicroseconds ? kMicrosecond : 1;
}

// A value in the unit of the environment.
std::string NumberText(const Parameter& parameter, int64_t value) {
  return parameter.kind == ParameterKind::kBytes ? BytesText(value) : absl::StrCat(value);
}

std::string ValueText(const Parameter& parameter, int64_t field) {
  const int64_t value = field / NanosPerUnit(parameter.kind);
  const bool special = parameter.special.word != nullptr && value == parameter.special.value;
  return special ? parameter.special.word : NumberText(parameter, value);
}

std::string ValueText(const Parameter&, EngineChoice field) { return EngineName(field); }
std::string ValueText(const Parameter&, Switch field) { return SwitchName(field); }
std::string ValueText(const Parameter&, const std::string& field) { return field.empty() ? "empty" : field; }
std::string ValueText(const Parameter&, const PortRange& field) {
  return field.any() ? "empty" : absl::StrCat(field.low, "-", field.high);
}

struct TypeName {
  const char* operator()(int Options::*) const { return "int"; }
  const char* operator()(int64_t Options::*) const { return "int64_t"; }
  const char* operator()(bool Options::*) const { return "bool"; }
  const char* operator()(EngineChoice Options::*) const { return "EngineChoice"; }
  const char* operator()(Switch Options::*) const { return "Switch"; }
  const char* operator()(PortRange Options::*) const { return "PortRange"; }
  const char* operator()(std::string Options::*) const { return "std::string"; }
};

std::string RangeText(const Parameter& parameter) {
  std::string text;
  if (parameter.special.word != nullptr) {
    text = absl::StrCat(parameter.special.word, " (", parameter.special.value, ") or ");
  }
  return absl::StrCat(text, NumberText(parameter, parameter.min), " to ", NumberText(parameter, parameter.max));
}

}  // namespace

const char* EngineName(EngineChoice choice) {
  switch (choice) {
    case EngineChoice::kAuto:
      return "auto";
    case EngineChoice::kIoUring:
      return "io_uring";
    case EngineChoice::kEpoll:
      return "epoll";
  }
  return "?";
}

const char* SwitchName(Switch choice) {
  switch (choice) {
    case Switch::kAuto:
      return "auto";
    case Switch::kOn:
      return "on";
    case Switch::kOff:
      return "off";
  }
  return "?";
}

std::string DefaultText(const Parameter& parameter) {
  const Options defaults;
  return std::visit([&](auto field) { return ValueText(parameter, defaults.*field); }, parameter.field);
}

std::string AllowedText(const Parameter& parameter) {
  switch (parameter.kind) {
    case ParameterKind::kFlag:
      return "0 or 1";
    case ParameterKind::kEngine:
      return "auto, io_uring or epoll";
    case ParameterKind::kSwitch:
      return "auto, on or off";
    case ParameterKind::kPorts:
      return absl::StrCat("LOW-HIGH with ports from ", parameter.min, " to ", parameter.max);
    case ParameterKind::kCpuList:
      return "a list of CPUs like 0-3,7";
    case ParameterKind::kClassMap:
      return "a list like 0:cs1,1:af21,2:46 of ids from 0 to 255, each once, and DSCP names or numbers from 0 to 63";
    case ParameterKind::kText:
      return "any text";
    default:
      return RangeText(parameter);
  }
}

std::string TypeText(const Parameter& parameter) { return std::visit(TypeName(), parameter.field); }

std::string UnitText(const Parameter& parameter) {
  switch (parameter.kind) {
    case ParameterKind::kBytes:
      return "bytes";
    case ParameterKind::kMbps:
      return "Mbit/s";
    case ParameterKind::kSeconds:
      return "seconds";
    case ParameterKind::kMilliseconds:
      return "milliseconds";
    case ParameterKind::kMicroseconds:
      return "microseconds";
    default:
      return "none";
  }
}

}  // namespace tcpx
