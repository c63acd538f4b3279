// parameters.h: tcpx_doctor --parameters: every parameter with its value and where that comes from.
//
// Threads: one; reads the environment. Units: as docs/parameters.md has them.
// Errors:  none: a value that is not allowed is shown as such, next to the default that is used.
#pragma once

#include <map>
#include <string>

namespace tcpx {
namespace doctor {

// By name of a variable: the file of NCCL's that set it. Others are the environment's.
using Origins = std::map<std::string, std::string>;

std::string ParametersText(const Origins& origins);
// `head` comes first in the object: `"version": "0.1"`.
std::string ParametersJson(const Origins& origins, const std::string& head);

}  // namespace doctor
}  // namespace tcpx
