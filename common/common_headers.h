// common_headers.h: what many sources of the product include, compiled once per configuration
// (third_party/precompiled.bzl). A source includes all it uses all the same: clang compiles it without this.
#ifndef TCPX_COMMON_COMMON_HEADERS_H_
#define TCPX_COMMON_COMMON_HEADERS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
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

#endif  // TCPX_COMMON_COMMON_HEADERS_H_
