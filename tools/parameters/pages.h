// pages.h: what people read about the parameters, made from their table (common/params.h).
//
// Threads: any.
#ifndef TCPX_TOOLS_PARAMETERS_PAGES_H_
#define TCPX_TOOLS_PARAMETERS_PAGES_H_

#include <string>

namespace tcpx {

// The whole of docs/parameters.md.
std::string ParametersMarkdown();

}  // namespace tcpx

#endif  // TCPX_TOOLS_PARAMETERS_PAGES_H_
