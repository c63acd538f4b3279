#include "bench/command_line/option_parser.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/command_line/sizes.h"

namespace tcpx {
namespace bench {

absl::Status WrongUsage(absl::string_view text) { return absl::InvalidArgumentError(text); }

absl::StatusOr<int> ParseNumber(absl::string_view name, absl::string_view text, int min, int max) {
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
    return WrongUsage(absl::StrCat(name, " takes a number from ", min, " to ", max, ", not '", text, "'"));
  }
  return value;
}

absl::StatusOr<std::vector<size_t>> ParseWords(absl::string_view name, absl::string_view value,
                                               const std::vector<std::string>& known, const char* all) {
  std::vector<size_t> places;
  for (absl::string_view word : absl::StrSplit(value, ',')) {
    const size_t before = places.size();
    const bool every = all != nullptr && word == all;
    for (size_t i = 0; i < known.size(); ++i) {
      if (every || word == known[i]) places.push_back(i);
    }
    if (places.size() > before) continue;
    return WrongUsage(absl::StrCat(name, ": '", word, "' is none of ", absl::StrJoin(known, ", ")));
  }
  return places;
}

absl::StatusOr<std::vector<uint64_t>> SweepSizes(uint64_t begin, uint64_t end, uint64_t factor) {
  if (factor < 2) return WrongUsage("-f is at least 2");
  if (end < begin) return WrongUsage("-e is smaller than -b");
  return GeometricSweep(begin, end, factor);
}

void OptionParser::Flag(const std::string& name, bool* target, bool value) {
  options_[name] = {Kind::kFlag, [=](const std::string&, const std::string&) {
                      *target = value;
                      return absl::OkStatus();
                    }};
}

void OptionParser::Value(const std::string& name, Setter setter) { options_[name] = {Kind::kValue, std::move(setter)}; }

void OptionParser::OptionalValue(const std::string& name, Setter setter) {
  options_[name] = {Kind::kOptionalValue, std::move(setter)};
}

void OptionParser::Number(const std::string& name, int* target, int min, int max) {
  Value(name, [=](const std::string& option, const std::string& value) {
    absl::StatusOr<int> number = ParseNumber(option, value, min, max);
    if (number.ok()) *target = *number;
    return number.status();
  });
}

void OptionParser::Number(const std::string& name, uint64_t* target) {
  Value(name, [=](const std::string& option, const std::string& value) {
    if (absl::SimpleAtoi(value, target)) return absl::OkStatus();
    return WrongUsage(absl::StrCat(option, " takes a number, not '", value, "'"));
  });
}

void OptionParser::Numbers(const std::string& name, std::vector<int>* target, int min, int max) {
  Value(name, [=](const std::string& option, const std::string& value) {
    target->clear();
    for (absl::string_view word : absl::StrSplit(value, ',')) {
      absl::StatusOr<int> number = ParseNumber(option, word, min, max);
      if (!number.ok()) return number.status();
      target->push_back(*number);
    }
    return absl::OkStatus();
  });
}

void OptionParser::Text(const std::string& name, std::string* target) {
  Value(name, [=](const std::string&, const std::string& value) {
    *target = value;
    return absl::OkStatus();
  });
}

void OptionParser::SizeSweep(Sweep* target, uint64_t max, const std::string& limit) {
  const auto size = [&](const char* name, std::optional<uint64_t>* bytes) {
    Value(name, [=](const std::string& option, const std::string& value) {
      absl::StatusOr<uint64_t> parsed = ParseSize(value);
      if (!parsed.ok()) return WrongUsage(absl::StrCat(option, ": ", parsed.status().message()));
      if (*parsed > max) return WrongUsage(absl::StrCat(option, ": ", value, " is above ", limit));
      *bytes = *parsed;
      return absl::OkStatus();
    });
  };
  size("-b", &target->begin);
  size("-e", &target->end);
  size("-f", &target->factor);
}

absl::Status OptionParser::Parse(const std::vector<std::string>& arguments) const {
  for (size_t at = 0; at < arguments.size();) {
    absl::StatusOr<size_t> taken = ParseOne(arguments, at);
    if (!taken.ok()) return taken.status();
    at += *taken;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> OptionParser::ParseOne(const std::vector<std::string>& arguments, size_t at) const {
  const auto option = options_.find(arguments[at]);
  if (option == options_.end() || option->second.kind == Kind::kValue) return ParseValued(arguments, at);
  std::string value;
  if (option->second.kind == Kind::kOptionalValue && at + 1 < arguments.size() && arguments[at + 1][0] != '-') {
    value = arguments[at + 1];
  }
  if (absl::Status status = option->second.setter(option->first, value); !status.ok()) return status;
  return value.empty() ? 1 : 2;
}

absl::StatusOr<size_t> OptionParser::ParseValued(const std::vector<std::string>& arguments, size_t at) const {
  std::string name = arguments[at];
  std::string value;
  const size_t equals = name.find('=');
  const bool joined = name.size() > 2 && name[1] == '-' && equals != std::string::npos;
  if (joined) {
    value = name.substr(equals + 1);
    name.resize(equals);
  }
  const auto option = options_.find(name);
  if (option == options_.end() || option->second.kind != Kind::kValue) {
    return WrongUsage(absl::StrCat("unknown option '", arguments[at], "'"));
  }
  if (!joined) {
    if (at + 1 == arguments.size()) return WrongUsage(absl::StrCat(name, " needs a value"));
    value = arguments[at + 1];
  }
  if (absl::Status status = option->second.setter(name, value); !status.ok()) return status;
  return joined ? 1 : 2;
}

}  // namespace bench
}  // namespace tcpx
