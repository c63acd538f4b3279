// common_headers.h: what many tests include, compiled once (third_party/precompiled.bzl). It only saves time: each test
// includes what it uses all the same.
#ifndef TCPX_TESTS_SUPPORT_COMMON_HEADERS_H_
#define TCPX_TESTS_SUPPORT_COMMON_HEADERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#endif  // TCPX_TESTS_SUPPORT_COMMON_HEADERS_H_
