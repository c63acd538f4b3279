// pages.h: what people read about the parameters, made from their table (common/params.h).
//
// Threads: any.
#pragma once

#include <string>

namespace tcpx {

// The whole of docs/parameters.md.
std::string ParametersMarkdown();

}  // namespace tcpx
