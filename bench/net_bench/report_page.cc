#include "bench/net_bench/report_page.h"

#include <errno.h>
#include <time.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "bench/net_bench/page/parts.h"
#include "common/status.h"

namespace tcpx {
namespace bench {
namespace {

std::string Now() {
  char text[64];
  const time_t now = time(nullptr);
  tm parts = {};
  gmtime_r(&now, &parts);
  return std::string(text, strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts));
}

absl::Status ReadFile(const std::string& path, std::string* text) {
  std::ifstream file(path);
  std::ostringstream all;
  if (!(all << file.rdbuf())) return ErrnoStatus(errno, path);
  *text = all.str();
  return absl::OkStatus();
}

}  // namespace

std::string HtmlPage(const std::vector<std::string>& runs, absl::string_view written) {
  // Nothing in a text may end the script that contains it.
  const std::string data = absl::StrReplaceAll(absl::StrJoin(runs, ",\n"), {{"</", "<\\/"}, {"<!--", "<\\u0021--"}});
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>net_bench</title>\n<style>\n",
      page::kUplotStyle, page::kStyle, "</style>\n<h1>net_bench</h1>\n<p id=\"written\">", written,
      "</p>\n<main></main>\n<noscript>The tables and plots need JavaScript; this file also has the figures ",
      "as JSON.</noscript>\n<script type=\"application/json\" id=\"runs\">[\n", data, "]</script>\n<script>\n",
      page::kUplotScript, "</script>\n<script>\n", page::kScript, "</script>\n</html>\n");
}

absl::Status WriteReport(const Options& options, const RunReport& report) {
  if (options.report.empty()) return absl::OkStatus();
  std::vector<std::string> runs = {JsonReport(report)};
  for (const std::string& path : options.also) {
    std::string text;
    if (absl::Status status = ReadFile(path, &text); !status.ok()) return status;
    runs.push_back(text);
  }
  std::ofstream file(options.report);
  file << HtmlPage(runs, Now()) << std::flush;
  return file ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("--report ", options.report));
}

}  // namespace bench
}  // namespace tcpx
