// fake_tree.h: a temporary folder that replaces / or /sys.
//
// Errors: what can't be written fails the test.
#pragma once

#include <string>

namespace tcpx {

class FakeTree {
 public:
  FakeTree();
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;
  ~FakeTree();

  // The real path of the folder, without a slash at the end.
  const std::string& root() const { return root_; }
  // Paths are relative to the root; parents are made.
  void Folder(const std::string& path) const;
  void File(const std::string& path, const std::string& text) const;
  // A link at `path` to `target`, also relative to the root.
  void Link(const std::string& path, const std::string& target) const;

 private:
  std::string root_;
};

}  // namespace tcpx
