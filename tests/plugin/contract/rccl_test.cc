// RCCL, NCCL's relative for AMD GPUs, finds the built plugin by its own rules (rccl_loader): under which name, with
// which table, and for host memory only. docs/compatibility.md says the same.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/program.h"

namespace tcpx {
namespace {

struct Release {
  const char* rocm;  // as the page names it
  const char* rccl;
  int table;  // 0: none
};

constexpr Release kReleases[] = {
    {"5.3", "2.12.12", 0},        {"5.4", "2.13.4", 6},  {"5.5", "2.15.5", 6},       {"5.6", "2.16.5", 6},
    {"5.7", "2.17.1", 6},         {"6.0", "2.18.3", 6},  {"6.1", "2.18.6", 6},       {"6.2", "2.20.5", 8},
    {"6.3", "2.21.5", 8},         {"7.0", "2.26.6", 10}, {"7.1, 7.2", "2.27.7", 10}, {"7.11 to 7.13", "2.28.3", 11},
    {"7.14, 10.0", "2.30.4", 12},
};

void PrintTo(const Release& release, std::ostream* out) { *out << "RCCL " << release.rccl; }

// A folder with what tools/install makes.
class Installed {
 public:
  Installed() {
    EXPECT_NE(nullptr, mkdtemp(name_));
    std::filesystem::copy_file(Runfile("net_socket/libnccl-net-tcpx.so"), Path("libnccl-net-tcpx.so"));
    for (const char* link : {"libnccl-net.so", "librccl-net-tcpx.so"}) {
      std::filesystem::create_symlink("libnccl-net-tcpx.so", Path(link));
    }
  }
  ~Installed() { std::filesystem::remove_all(name_); }

  std::string Path(const std::string& file) const { return absl::StrCat(name_, "/", file); }
  // The folder is in the loader's path; `environment` comes before the command.
  std::string Load(const std::string& environment, const std::string& release) const {
    const ProgramResult result =
        RunCommand(absl::StrCat("unset NCCL_NET_PLUGIN; LD_LIBRARY_PATH=", name_, " NCCL_SOCKET_IFNAME=lo ",
                                environment, " ", Runfile("tests/plugin/contract/rccl_loader"), " ", release));
    EXPECT_EQ(0, result.code) << result.output;
    return result.output;
  }

 private:
  char name_[32] = "/tmp/tcpx_rccl.XXXXXX";
};

bool HasLine(const std::string& text, const std::string& line) {
  return absl::StrContains("\n" + text, absl::StrCat("\n", line, "\n"));
}

class RcclTest : public ::testing::TestWithParam<Release> {};

TEST_P(RcclTest, FindsTheTableByName) {
  const Installed installed;
  const std::string said = installed.Load("NCCL_NET_PLUGIN=tcpx", GetParam().rccl);
  EXPECT_TRUE(HasLine(said, "file librccl-net-tcpx.so")) << said;
  if (GetParam().table == 0) {
    EXPECT_TRUE(HasLine(said, "no plugin")) << said;
    return;
  }
  EXPECT_TRUE(HasLine(said, absl::StrCat("table v", GetParam().table))) << said;
  EXPECT_TRUE(HasLine(said, "net tcpx")) << said;
  EXPECT_TRUE(HasLine(said, "collnet none")) << said;
  EXPECT_TRUE(HasLine(said, "device 0 pointers 1")) << said;
  EXPECT_TRUE(absl::StrContains(said, "INFO NET/tcpx: ")) << said;
  EXPECT_FALSE(absl::StrContains(said, "WARN ")) << said;
}

TEST_P(RcclTest, ThePageHasTheRow) {
  std::ifstream file(Runfile("docs/compatibility.md"));
  std::stringstream page;
  page << file.rdbuf();
  const Release& release = GetParam();
  const std::string taken = release.table == 0 ? "none" : absl::StrCat("v", release.table);
  EXPECT_TRUE(
      absl::StrContains(page.str(), absl::StrCat("\n| ", release.rocm, " | ", release.rccl, " | ", taken, " |")))
      << release.rocm << ", " << release.rccl << ": " << taken;
}

// "v6_of_2_13_4"
std::string NameOf(const ::testing::TestParamInfo<Release>& info) {
  std::string name = absl::StrCat("v", info.param.table, "_of_", info.param.rccl);
  for (char& c : name) {
    if (c == '.') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Releases, RcclTest, ::testing::ValuesIn(kReleases), NameOf);

TEST(RcclNamesTest, APathWorksFromRocm63On) {
  const Installed installed;
  std::filesystem::remove(installed.Path("librccl-net-tcpx.so"));
  const std::string path = installed.Path("libnccl-net-tcpx.so");
  EXPECT_EQ("no plugin\n", installed.Load("NCCL_NET_PLUGIN=" + path, "2.20.5"));
  for (const char* release : {"2.21.5", "2.26.6", "2.27.7", "2.28.3", "2.30.4"}) {
    const std::string said = installed.Load("NCCL_NET_PLUGIN=" + path, release);
    EXPECT_TRUE(HasLine(said, "file " + path)) << release << ":\n" << said;
    EXPECT_TRUE(HasLine(said, "net tcpx")) << release << ":\n" << said;
  }
}

// Packages bring libnccl-net.so, but not librccl-net.so.
TEST(RcclNamesTest, UnsetMeansAnotherNameInRocm71And72) {
  const Installed installed;
  EXPECT_TRUE(HasLine(installed.Load("", "2.27.7"), "file libnccl-net.so"));
  for (const char* release : {"2.13.4", "2.20.5", "2.21.5", "2.26.6", "2.28.3", "2.30.4"}) {
    EXPECT_EQ("no plugin\n", installed.Load("", release)) << release;
  }
}

TEST(RcclNamesTest, ListsAndNone) {
  const Installed installed;
  EXPECT_TRUE(HasLine(installed.Load("NCCL_NET_PLUGIN=absent,tcpx", "2.30.4"), "file librccl-net-tcpx.so"));
  EXPECT_EQ("no plugin\n", installed.Load("NCCL_NET_PLUGIN=none", "2.30.4"));
}

TEST(RcclNamesTest, AFileWithoutATableIsNoPlugin) {
  const Installed installed;
  EXPECT_EQ("file libdl.so.2\nno plugin\n", installed.Load("NCCL_NET_PLUGIN=libdl.so.2", "2.21.5"));
}

}  // namespace
}  // namespace tcpx
