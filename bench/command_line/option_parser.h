// option_parser.h: a command line, read by a table of options.
//
// Purpose: both benchmarks name their options and where the values go; how an option is written, and what is said of a
//          wrong one, is the same in both. A value follows its option, or an "=" where the option has two dashes. The
//          last of two equal options counts.
// Threads: one. Lifetime: what options point to lives until Parse is done.
// Units:   sizes are bytes.
// Errors:  kInvalidArgument with one sentence for the user, which names the option.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {
namespace bench {

// Sizes from `begin` to `end` as options give them, each `factor` times the one before.
struct Sweep {
  std::optional<uint64_t> begin;
  std::optional<uint64_t> end;
  std::optional<uint64_t> factor;
};
// All sizes of a sweep whose ends are known.
absl::StatusOr<std::vector<uint64_t>> SweepSizes(uint64_t begin, uint64_t end, uint64_t factor);

class OptionParser {
 public:
  using Setter = std::function<absl::Status(const std::string& name, const std::string& value)>;

  // An option without a value: sets `target` to `value`.
  void Flag(const std::string& name, bool* target, bool value = true);
  void Number(const std::string& name, int* target, int min, int max);
  void Number(const std::string& name, uint64_t* target);
  void Numbers(const std::string& name, std::vector<int>* target, int min, int max);  // with commas between
  void Text(const std::string& name, std::string* target);
  // -b, -e and -f; `limit` is `max` in words.
  void SizeSweep(Sweep* target, uint64_t max, const std::string& limit);
  void Value(const std::string& name, Setter setter);
  // The value may be left out, and is then empty. It begins with no dash.
  void OptionalValue(const std::string& name, Setter setter);

  absl::Status Parse(const std::vector<std::string>& arguments) const;

 private:
  enum class Kind { kFlag, kValue, kOptionalValue };
  struct Option {
    Kind kind = Kind::kFlag;
    Setter setter;
  };

  // How many arguments the option at `at` took.
  absl::StatusOr<size_t> ParseOne(const std::vector<std::string>& arguments, size_t at) const;
  absl::StatusOr<size_t> ParseValued(const std::vector<std::string>& arguments, size_t at) const;

  std::map<std::string, Option> options_;
};

absl::Status WrongUsage(absl::string_view text);

// `name` is what the error calls it.
absl::StatusOr<int> ParseNumber(absl::string_view name, absl::string_view text, int min, int max);

// `value` is words with commas between: the index in `known` of each. The word `all`, if not null, means every one.
absl::StatusOr<std::vector<size_t>> ParseWords(absl::string_view name, absl::string_view value,
                                               const std::vector<std::string>& known, const char* all = nullptr);

}  // namespace bench
}  // namespace tcpx
