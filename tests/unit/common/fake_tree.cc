#include "tests/unit/common/fake_tree.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace tcpx {
namespace {

namespace fs = std::filesystem;

}  // namespace

FakeTree::FakeTree() {
  std::string pattern = testing::TempDir() + "/tcpx_tree_XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr) << pattern;
  root_ = fs::canonical(pattern).string();
}

FakeTree::~FakeTree() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void FakeTree::Folder(const std::string& path) const { fs::create_directories(root_ + "/" + path); }

void FakeTree::File(const std::string& path, const std::string& text) const {
  const fs::path full = root_ + "/" + path;
  fs::create_directories(full.parent_path());
  std::ofstream(full) << text;
  EXPECT_TRUE(fs::exists(full)) << full;
}

void FakeTree::Link(const std::string& path, const std::string& target) const {
  const fs::path full = root_ + "/" + path;
  fs::create_directories(full.parent_path());
  fs::create_symlink(root_ + "/" + target, full);
}

}  // namespace tcpx
