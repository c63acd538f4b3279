// report_page.h: everything a run found, as one page of HTML that needs nothing else.
//
// Threads: any. WriteReport writes a file.
// Errors:  kNotFound and the like, with the file's name, where a file can't be read or written.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/report.h"

namespace tcpx {
namespace bench {

// `runs`: texts of JsonReport, this run's first. The page's script (page/) draws them with uPlot, which is inside.
std::string HtmlPage(const std::vector<std::string>& runs, absl::string_view written);

// Does what --report and --also ask; nothing without --report.
absl::Status WriteReport(const Options& options, const RunReport& report);

}  // namespace bench
}  // namespace tcpx
