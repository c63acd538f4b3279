#include "tests/support/exposition_parser.h"

#include <cctype>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

namespace tcpx {
namespace {

bool IsName(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

bool EndsIn(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool TakeLabel(const std::string& line, size_t* at, Labels* labels) {
  const size_t equals = line.find('=', *at);
  if (equals == std::string::npos) return false;
  const std::string name = line.substr(*at, equals - *at);
  if (!IsName(name) || labels->count(name) > 0 || line[equals + 1] != '"') return false;
  std::string value;
  for (*at = equals + 2; *at < line.size() && line[*at] != '"'; ++*at) {
    if (line[*at] != '\\') {
      value.push_back(line[*at]);
      continue;
    }
    const char escaped = ++*at < line.size() ? line[*at] : '\0';
    if (escaped != '\\' && escaped != '"' && escaped != 'n') return false;
    value.push_back(escaped == 'n' ? '\n' : escaped);
  }
  if (*at >= line.size()) return false;
  ++*at;
  (*labels)[name] = value;
  return true;
}

bool ParseSample(const std::string& line, MetricSample* sample) {
  size_t at = line.find_first_of("{ ");
  if (at == std::string::npos) return false;
  sample->name = line.substr(0, at);
  if (!IsName(sample->name)) return false;
  if (line[at] == '{') {
    do {
      ++at;
      if (!TakeLabel(line, &at, &sample->labels)) return false;
    } while (line[at] == ',');
    if (line[at++] != '}') return false;
  }
  if (line[at++] != ' ' || at >= line.size()) return false;
  char* end = nullptr;
  sample->value = std::strtod(line.c_str() + at, &end);
  return *end == '\0' && sample->value == sample->value;
}

class Checker {
 public:
  explicit Checker(Exposition* exposition) : exposition_(exposition) {}

  // Empty: the line is right.
  std::string Take(const std::string& line) {
    std::istringstream words(line);
    std::string mark, what, name, rest;
    if (line[0] != '#') return TakeSample(line);
    words >> mark >> what >> name;
    std::getline(words, rest);
    if (mark != "#" || !IsName(name) || rest.size() < 2) return "a comment that is neither HELP nor TYPE";
    rest = rest.substr(1);
    if (what == "HELP") {
      if (exposition_->types.count(name) > 0 || !helped_.insert(name).second) return "a family that comes twice";
      family_.clear();
      return "";
    }
    if (what != "TYPE" || helped_.count(name) == 0) return "a TYPE without HELP";
    if (rest != "counter" && rest != "gauge" && rest != "histogram") return "an unknown type";
    if ((rest == "counter") != EndsIn(name, "_total")) return "_total is for counters, and they need it";
    family_ = name;
    exposition_->types[name] = rest;
    return "";
  }

  std::string Finish() const {
    for (const auto& [series, count] : histograms_) {
      if (!count.has_end || count.last != count.count)
        return "a histogram whose buckets don't end at its count: " + series;
    }
    return "";
  }

 private:
  struct Histogram {
    double bound = -std::numeric_limits<double>::infinity();
    double last = 0;
    double count = -1;
    bool has_end = false;
  };

  std::string TakeSample(const std::string& line) {
    MetricSample sample;
    if (!ParseSample(line, &sample)) return "no sample";
    const bool histogram = !family_.empty() && exposition_->types[family_] == "histogram";
    if (family_.empty() || (!histogram && sample.name != family_)) return "a sample outside of its family";
    if (!series_.insert(line.substr(0, line.rfind(' '))).second) return "a series that comes twice";
    if (exposition_->types[family_] == "counter" && sample.value < 0) return "a counter below 0";
    if (histogram && !TakeHistogram(sample)) return "a histogram out of order";
    exposition_->samples.push_back(std::move(sample));
    return "";
  }

  bool TakeHistogram(const MetricSample& sample) {
    Labels labels = sample.labels;
    const std::string le = labels["le"];
    labels.erase("le");
    std::string key = family_;
    for (const auto& [name, value] : labels) key += "," + name + "=" + value;
    Histogram& histogram = histograms_[key];
    if (sample.name == family_ + "_sum") return le.empty();
    if (sample.name == family_ + "_count") {
      histogram.count = sample.value;
      return le.empty();
    }
    if (sample.name != family_ + "_bucket" || le.empty()) return false;
    const double bound = le == "+Inf" ? std::numeric_limits<double>::infinity() : std::strtod(le.c_str(), nullptr);
    const bool rises = bound > histogram.bound && sample.value >= histogram.last;
    histogram.bound = bound;
    histogram.last = sample.value;
    histogram.has_end = le == "+Inf";
    return rises;
  }

  Exposition* const exposition_;
  std::string family_;
  std::set<std::string> helped_;
  std::set<std::string> series_;
  std::map<std::string, Histogram> histograms_;
};

bool Has(const MetricSample& sample, const std::string& name, const Labels& labels) {
  if (sample.name != name) return false;
  for (const auto& [label, value] : labels) {
    const auto found = sample.labels.find(label);
    if (found == sample.labels.end() || found->second != value) return false;
  }
  return true;
}

}  // namespace

double Exposition::Sum(const std::string& name, const Labels& labels) const {
  double sum = 0;
  for (const MetricSample& sample : samples) sum += Has(sample, name, labels) ? sample.value : 0;
  return sum;
}

int Exposition::Count(const std::string& name, const Labels& labels) const {
  int count = 0;
  for (const MetricSample& sample : samples) count += Has(sample, name, labels) ? 1 : 0;
  return count;
}

bool ParseExposition(const std::string& text, Exposition* exposition, std::string* error) {
  Checker checker(exposition);
  std::istringstream lines(text);
  std::string line;
  if (text.empty() || text.back() != '\n') {
    *error = "the last line does not end";
    return false;
  }
  while (std::getline(lines, line)) {
    const std::string wrong = line.empty() ? "an empty line" : checker.Take(line);
    if (wrong.empty()) continue;
    *error = wrong + ": " + line;
    return false;
  }
  *error = checker.Finish();
  return error->empty();
}

}  // namespace tcpx
