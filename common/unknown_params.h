// unknown_params.h: variables that look like this plugin's parameters and are none.
//
// Purpose: a name that was misspelt has no effect, and nothing else would say so.
// Threads: any, while nobody changes the environment. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tcpx {

// One warning for each variable of `environment` (as environ(7), null: none) that begins with TCPX_ and is no
// parameter, by name: with the parameter whose name is nearest, or, where it was one once, with what to do instead.
// TCPX_TEST_ is for tests and never one; a name of these that has an effect here is a warning that says so.
std::vector<std::string> UnknownParameters(const char* const* environment);

// The warning of the first variable whose name is almost that of a parameter that protects, or holds TCPX and speaks of
// encryption or a secret, in any case of letters and with anything before it: its user believes to be safe. Empty:
// there is none.
std::string MisspeltSecurity(const char* const* environment);

// It was a parameter once.
bool IsRemovedParameter(absl::string_view name);

// The parameter that begins with `prefix` and whose name is nearest to `as_written`; empty if none is near.
std::string NearestParameter(absl::string_view as_written, absl::string_view prefix);

}  // namespace tcpx
