#include "bench/net_bench/report_page.h"

#include <string>

#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

// How often `part` is in `text`.
int Times(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST(HtmlPage, HoldsEveryRunAndNeedsNothingElse) {
  const std::string page = HtmlPage({"{\"a\": 1}", "{\"b\": 2}\n"}, "a day");
  EXPECT_NE(page.npos, page.find("[\n{\"a\": 1},\n{\"b\": 2}\n]</script>")) << page.substr(0, 200);
  EXPECT_NE(page.npos, page.find("a day</p>"));
  EXPECT_EQ(1, Times(page, "<style>"));
  EXPECT_EQ(3, Times(page, "</script>"));
  for (const char* part : {" src=", "<link", "@import", "url("}) EXPECT_EQ(page.npos, page.find(part)) << part;
}

TEST(HtmlPage, NoTextEndsTheScriptThatContainsIt) {
  const std::string page = HtmlPage({"{\"note\": \"</script><!-- x\"}"}, "");
  EXPECT_EQ(3, Times(page, "</script>"));
  EXPECT_EQ(0, Times(page, "<!-- x"));
  EXPECT_NE(page.npos, page.find("<\\/script><\\u0021-- x"));
}

TEST(WriteReport, SaysWhichFileCanNotBeReadOrWritten) {
  Options options;
  EXPECT_TRUE(WriteReport(options, RunReport()).ok());
  options.report = "/nowhere/report.html";
  EXPECT_NE(std::string::npos, WriteReport(options, RunReport()).message().find("/nowhere/report.html"));
  options.report = testing::TempDir() + "/report.html";
  EXPECT_TRUE(WriteReport(options, RunReport()).ok());
  options.also = {"/nowhere/run.json"};
  EXPECT_NE(std::string::npos, WriteReport(options, RunReport()).message().find("/nowhere/run.json"));
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
