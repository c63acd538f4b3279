#!/usr/bin/env python3
"""layers_rules_test: each rule of layers.py fails on a small tree that breaks it, and on no other."""

import os
import subprocess
import sys
import tempfile
import unittest

# Bazel's links lead to the sources: nothing is written next to them.
sys.dont_write_bytecode = True
sys.path.insert(0, "tests/build")

import layers  # pylint: disable=wrong-import-position

LAYERS_BZL = '''"""Folders."""

_LAYERS = [
    "plugin",
    "comm",
    "engine",
]

def tcpx_layer(folder):
    above = ["nothing"]
'''

GOOD = {
    "WORKSPACE": "",
    "net_socket/layers.bzl": LAYERS_BZL,
    "net_socket/plugin/plugin.h": '#include <string>\n#include "net_socket/comm/comm.h"\n',
    "net_socket/comm/comm.h": '#include "absl/status/status.h"\n#include "common/fd.h"\n',
    "net_socket/comm/comm.cc": '#include "net_socket/comm/comm.h"\n#include "net_socket/engine/engine.h"\n',
    "net_socket/engine/engine.h": '#include "common/fd.h"\n#include "nccl/types.h"\n',
    "nccl/types.h": '#include "common/fd.h"\n',
    "nccl/client/client.h": '#include "nccl/types.h"\n',
    "common/fd.h": "",
    "bench/net_bench/main.cc": '#include "nccl/client/client.h"\n#include "common/fd.h"\n',
    "tests/unit/comm_test.cc": '#include "net_socket/comm/comm.h"\n#include "bench/net_bench/main.h"\n',
    "bench/net_bench/main.h": "",
    ".hidden/other/a.cc": '#include "tests/unit/none.h"\n',
}


def function(lines):
    return "int F(int a) {\n" + "  a += 1;\n" * (lines - 2) + "}\n"


class RulesTest(unittest.TestCase):

    def check(self, changes=None):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**GOOD, **(changes or {})}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            os.symlink(root, os.path.join(root, "bazel-out"))
            return layers.check(root)

    def assert_wrong(self, path, text, *rules):
        _, wrong = self.check({path: text})
        self.assertEqual([line.split(":")[0] for line in wrong], list(rules), wrong)
        for line in wrong:
            self.assertIn(path, line)

    def test_a_good_tree_has_a_table_and_nothing_wrong(self):
        table, wrong = self.check()
        self.assertEqual(wrong, [])
        self.assertEqual(table, [
            "tests -> bench/net_bench 1",
            "tests -> comm 1",
            "bench/net_bench -> nccl/client 1",
            "bench/net_bench -> common 1",
            "nccl/client -> nccl 1",
            "plugin -> comm 1",
            "comm -> engine 1",
            "comm -> common 1",
            "engine -> nccl 1",
            "engine -> common 1",
            "nccl -> common 1",
        ])

    def test_climbs(self):
        for path, included in (
            ("net_socket/engine/engine.cc", "net_socket/comm/comm.h"),
            ("net_socket/engine/engine.cc", "nccl/client/client.h"),
            ("net_socket/plugin/plugin.cc", "bench/net_bench/main.h"),
            ("nccl/types.cc", "net_socket/engine/engine.h"),
            ("common/fd.cc", "nccl/types.h"),
            ("bench/net_bench/other.cc", "tests/unit/support.h"),
            ("bench/nccl_bench/other.cc", "bench/net_bench/main.h"),
        ):
            with self.subTest(path=path, included=included):
                changes = {path: '#include "%s"\n' % included, "tests/unit/support.h": ""}
                _, wrong = self.check(changes)
                self.assertEqual(len(wrong), 1, wrong)
                self.assertRegex(wrong[0], "^climb: %s includes %s " % (path, included))

    def test_a_source_without_a_place(self):
        self.assert_wrong("net_socket/cellar/a.cc", "", "stray")
        self.assert_wrong("attic/a.h", "", "stray")

    def test_an_include_that_is_not_there(self):
        self.assert_wrong("net_socket/comm/b.cc", '#include "net_socket/comm/gone.h"\n', "missing")

    def test_long_files(self):
        self.assert_wrong("net_socket/comm/b.cc", "\n" * 400)
        self.assert_wrong("net_socket/comm/b.cc", "\n" * 401, "file")
        self.assert_wrong("tests/unit/b_test.cc", "\n" * 401, "file")

    def test_long_functions(self):
        self.assert_wrong("net_socket/comm/b.cc", function(40))
        self.assert_wrong("net_socket/comm/b.cc", function(41), "function")
        self.assert_wrong("bench/net_bench/b.h", "class A {\n public:\n" + function(41) + "};\n", "function")
        self.assert_wrong("tests/unit/b_test.cc", function(41))

    def test_headers_that_include_much(self):
        names = ["common/h%d.h" % i for i in range(9)]
        for count, path, rules in (
            (8, "net_socket/comm/b.h", 0),
            (9, "net_socket/comm/b.h", 1),
            (9, "net_socket/comm/b.cc", 0),
            (9, "bench/net_bench/b.h", 0),
        ):
            with self.subTest(count=count, path=path):
                text = "#include <vector>\n" + "".join('#include "%s"\n' % name for name in names[:count])
                _, wrong = self.check({**{name: "" for name in names}, path: text})
                self.assertEqual([line.split(":")[0] for line in wrong], ["includes"] * rules)


class FunctionsTest(unittest.TestCase):

    def assert_functions(self, text, *expected):
        self.assertEqual([(name, lines) for name, _, lines in layers.functions(text)], list(expected))

    def test_what_is_no_function(self):
        self.assert_functions("""
namespace a {
struct A {
  int b = 3;
  std::vector<int> c{1, 2};
  static constexpr char kText[] = R"({ ( )";
};
enum class E : int { kOne };
class CAPABILITY("mutex") B : public A {};
constexpr struct { int x; } kAll[] = {{F(1)}, {2}};
int F(int x = G({1}));
// void F() {
/* void F() { */
#define F() { \\
  {
const char c = '{';
}  // namespace a
""")

    def test_functions_of_every_shape(self):
        self.assert_functions("""
extern "C" int One(int a) {
  return '{' + 1'000 + a;
}
extern "C" {
void Two() {}
}
template <class T, size_t kCount = sizeof(A<T>)>
T Three(const T (&all)[kCount],
        const char* text = "}") noexcept {
  const auto f = [&](int a) {
    struct Local {
      void F() {}
    };
    return a;
  };
  return f(1);
}
struct sockaddr* Four(struct sockaddr* a) {
  return a;
}
""", ("One", 3), ("Two", 1), ("Three", 11), ("Four", 3))

    def test_members(self):
        self.assert_functions("""
class A {
 public:
  A() : a_{1}, b_{2} {
    F();
  }
  explicit A(int a)
      : a_(a), b_({a}) {}

 private:
  bool operator==(const A& other) const {
    return true;
  }
  __attribute__((no_sanitize("thread"))) int F() REQUIRES(mutex_) { return a_; }
  auto G() -> int override { return 1; }
};
A::~A() {
}
""", ("A", 3), ("A", 2), ("operator==", 3), ("F", 1), ("G", 1), ("A::~A", 2))


class CommandTest(unittest.TestCase):

    def test_exit_codes(self):
        with tempfile.TemporaryDirectory() as root:
            for path in ("net_socket", "common"):
                os.mkdir(os.path.join(root, path))
            for path, text in (("WORKSPACE", ""), ("net_socket/layers.bzl", LAYERS_BZL), ("common/a.h", "")):
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertEqual(self.run_layers(os.path.join(root, "WORKSPACE")), 0)
            with open(os.path.join(root, "common/a.h"), "w", encoding="utf-8") as file:
                file.write("\n" * 401)
            self.assertEqual(self.run_layers(os.path.join(root, "WORKSPACE")), 1)
        self.assertEqual(self.run_layers(), 2)

    def run_layers(self, *arguments):
        return subprocess.run([sys.executable, "tests/build/layers.py", *arguments], capture_output=True,
                              check=False).returncode


if __name__ == "__main__":
    unittest.main()
