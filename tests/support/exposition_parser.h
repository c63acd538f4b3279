// exposition_parser.h: reads Prometheus' text format strictly, for tests of what writes it.
//
// Purpose: stricter than Prometheus itself: each family follows its HELP and TYPE without a gap, no series comes
//          twice, counters end in _total and are no less than 0, and a histogram's buckets rise to its count.
// Errors: ParseExposition names the first line that is wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tcpx {

using Labels = std::map<std::string, std::string>;

struct MetricSample {
  std::string name;
  Labels labels;
  double value = 0;
};

struct Exposition {
  std::map<std::string, std::string> types;  // by family
  std::vector<MetricSample> samples;

  // The sum over all samples of this name that have these labels.
  double Sum(const std::string& name, const Labels& labels = {}) const;
  int Count(const std::string& name, const Labels& labels = {}) const;
};

bool ParseExposition(const std::string& text, Exposition* exposition, std::string* error);

}  // namespace tcpx
