#!/usr/bin/env python3
"""shape_rules_test: each rule of shape.py fails on sources that break it, and declarations are counted right."""

import sys
import unittest

# Bazel's links lead to the sources: nothing is written next to them.
sys.dont_write_bytecode = True
sys.path.insert(0, "tests/build")

import shape  # pylint: disable=wrong-import-position

HEADER = r'''
#include <functional>

namespace tcpx {

class Forward;
enum class Kind : uint8_t { kOne, kTwo };

// class Comment { void None(); };
template <typename T>
class Held final : public Base<T> {
 public:
  static constexpr int64_t kFirst = 20 * kMillisecond;
  using Lanes = std::vector<int>;
  enum class State : uint8_t { kNone = 1, kOther };
  struct Settings {
    int lanes = 1, lanes_max{2};
    std::function<void(int, bool)> ordered = [] {};
    bool opens() const { return lanes > 1; }
  };

  explicit Held(int lanes) : lanes_{lanes}, other_(static_cast<int>(lanes)) { Start(); }
  ~Held() override;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  [[nodiscard]] bool operator==(const Held& other) const { return other_ == other.other_; }
  bool operator<(const Held& other) const { return other_ < other.other_; }
  virtual std::function<int()> Maker(int a = F(1, 2)) TCPX_REQUIRES(mutex_) = 0;
  static std::unique_ptr<Held> Make(const std::map<int, std::vector<int>>& all);
  auto Trailing() const -> std::vector<int> { return {}; }
  const char* text() const { return "}; int no_;"; }

 private:
  friend class Health;
  friend bool Same(const Held& a, const Held& b) { return a == b; }

  const int lanes_;
  int other_ = 0, another_ = 1;
  std::map<std::string, std::pair<int, bool>> by_name_ TCPX_GUARDED_BY(mutex_);
  std::function<void()> ordered_ = [] { Other(); };
  std::array<int, 4> four_{1, 2, 3, 4};
  void (*call_)(int);
  struct {
    int x = 0;
  } unnamed_;
};

struct Record {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u;
};

class User {
 public:
  virtual ~User() = default;
  virtual void One() = 0;
  virtual void Two() {}
};

}  // namespace tcpx
'''


def many(count, text):
    return "".join(text % at for at in range(count))


def a_class(inside, name="Large"):
    return "class %s {\n public:\n%s};\n" % (name, inside)


class ShapeTest(unittest.TestCase):

    def class_of(self, name, text=HEADER):
        found = [of for of in shape.classes_of("net_socket/a.h", text) if of.name == name]
        self.assertEqual(1, len(found), name)
        return found[0]

    def wrong(self, sources, known=None, lines=None):
        """What is wrong, without what TOGETHER says of nothing."""
        found = shape.measure(sources)
        if lines is not None:
            found = [row for row in found if row[0] != "lines"] + [("lines", "the product", lines, 37400, "")]
        return shape.judge(found, known or {})

    def test_methods_are_counted(self):
        held = self.class_of("Held")
        self.assertEqual(11, held.methods)
        self.assertEqual(10, held.public)
        self.assertEqual(1, held.pure)

    def test_members_are_counted(self):
        # kFirst, lanes_, other_, another_, by_name_, ordered_, four_, call_, unnamed_
        self.assertEqual(9, self.class_of("Held").members)
        self.assertEqual(1, self.class_of("Held").constants)

    def test_nested_classes_count_for_themselves(self):
        settings = self.class_of("Held::Settings")
        self.assertEqual(3, settings.members)
        self.assertEqual(1, settings.methods)

    def test_every_class_is_found_once(self):
        names = [of.name for of in shape.classes_of("net_socket/a.h", HEADER)]
        self.assertEqual(["Held", "Held::Settings", "Record", "User"], [name for name in names if "::" not in name or
                                                                         name == "Held::Settings"])

    def test_limits_of_a_class(self):
        path = "net_socket/send/large.h"
        self.assertEqual([], self.wrong({path: a_class(many(35, "  void F%d();\n") + many(20, "  int a%d_;\n"))}))
        self.assertEqual(["methods: Large has 36, not at most 35"],
                         self.wrong({path: a_class(many(36, "  void F%d();\n"))}))
        self.assertEqual(["members: Large has 21, not at most 20"],
                         self.wrong({path: a_class(many(21, "  int a%d_;\n"))}))

    def test_a_record_may_have_many_members(self):
        self.assertEqual([], self.wrong({"net_socket/record.h": "struct Record {\n%s};\n" % many(40, "  int a%d;\n")}))
        hides = "struct Record {\n private:\n%s};\n" % many(40, "  int a%d;\n")
        self.assertEqual(["members: Record has 40, not at most 20"], self.wrong({"net_socket/record.h": hides}))

    def test_one_file_for_a_class(self):
        sources = {
            "net_socket/large.h": a_class("  void One();\n  void Two();\n  struct Part {\n    void Three();\n  };\n"),
            "net_socket/large.cc": "namespace tcpx {\nvoid Large::One() {}\nvoid Large::Part::Three() {}\n}\n",
        }
        self.assertEqual([], self.wrong(sources))
        sources["net_socket/large_more.cc"] = "namespace tcpx {\nLarge::Kind Large::Two() {}\n}\n"
        self.assertEqual(["files: Large has 2, not at most 1"], self.wrong(sources))

    def test_two_classes_of_one_name_in_sources_are_two(self):
        sources = {"net_socket/%s.cc" % name: "namespace {\n%svoid Local::F() {}\n}\n"
                   % a_class("  void F();\n", "Local")
                   for name in ("a", "b")}
        self.assertEqual([], self.wrong(sources))

    def test_interfaces(self):
        pure = many(10, "  virtual void F%d() = 0;\n")
        self.assertEqual([], self.wrong({"net_socket/user.h": a_class("  virtual ~Large() = default;\n" + pure)}))
        self.assertEqual(["interface: Large has 11, not at most 10"],
                         self.wrong({"net_socket/user.h": a_class(pure + "  virtual void F() = 0;\n")}))
        self.assertEqual(["not pure: User has 1, not at most 0"], self.wrong({"net_socket/user.h": HEADER[
            HEADER.index("class User"):HEADER.index("}  // namespace")]}))

    def test_a_base_with_members_is_no_interface(self):
        self.assertEqual([], self.wrong({"net_socket/b.h": a_class(many(30, "  virtual void F%d() { ++a_; }\n") +
                                                                 "  virtual void F() = 0;\n  int a_;\n")}))

    def test_no_virtual_method_of_a_class_with_a_pure_one_does_nothing(self):
        rest = "  virtual void F() = 0;\n  virtual ~Large() {}\n  void G() {}\n  int a_;\n"
        for body in ("{}", "{ return false; }", "{ return 0; }", "{ return {}; }"):
            self.assertEqual(["empty: Large has 1, not at most 0"],
                             self.wrong({"net_socket/b.h":
                                         a_class("  virtual int H(int) const " + body + "\n" + rest)}))
        self.assertEqual([], self.wrong({"net_socket/b.h": a_class("  virtual int H() { return a_; }\n" + rest)}))
        self.assertEqual([], self.wrong({"net_socket/b.h": a_class("  virtual void H() {}\n  int a_;\n")}))

    def test_two_ends_together(self):
        sources = {"net_socket/comm.h": a_class(many(35, "  void F%d();\n"), "Comm"),
                   "net_socket/send_comm.h": a_class(many(35, "  void F%d();\n"), "SendComm")}
        self.assertEqual([], self.wrong(sources))
        sources["net_socket/comm.h"] = a_class(many(36, "  void F%d();\n"), "Comm")
        self.assertIn("together: Comm and SendComm has 71, not at most 70", self.wrong(sources))

    def test_lines_of_the_product(self):
        found = shape.measure({"net_socket/a.cc": "\n" * 5, "common/b.h": "\n" * 3, "tests/c.cc": "\n" * 9,
                               "nccl/client/d.cc": "\n" * 9})
        self.assertEqual(8, [row[2] for row in found if row[0] == "lines"][0])
        self.assertEqual(["lines: the product has 37401, not at most 37400"], self.wrong({}, lines=37401))

    def test_what_is_known_may_not_grow_and_goes_when_it_is_not_needed(self):
        sources = {"net_socket/large.h": a_class(many(40, "  void F%d();\n"))}
        self.assertEqual([], self.wrong(sources, {("methods", "Large"): 40}))
        self.assertEqual([], self.wrong(sources, {("methods", "Large"): 41}))
        self.assertEqual(["methods: Large has 40, and KNOWN allows 39"],
                         self.wrong(sources, {("methods", "Large"): 39}))
        sources = {"net_socket/large.h": a_class(many(35, "  void F%d();\n"))}
        self.assertEqual(["methods: Large is within its limit: its entry in KNOWN goes"],
                         self.wrong(sources, {("methods", "Large"): 40}))


if __name__ == "__main__":
    unittest.main()
