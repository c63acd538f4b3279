// params_text.h: a parameter's default and range in words, for warnings and for docs/parameters.md.
//
// Threads: any.
#ifndef TCPX_COMMON_PARAMS_TEXT_H_
#define TCPX_COMMON_PARAMS_TEXT_H_

#include <string>

#include "common/params.h"

namespace tcpx {

const char* EngineName(EngineChoice choice);
const char* SwitchName(Switch choice);

// "64K", "auto", "5"; "empty" for no text.
std::string DefaultText(const Parameter& parameter);
// "auto or 1 to 64", "one of auto, io_uring, epoll", "seconds from 0 to 600".
std::string AllowedText(const Parameter& parameter);
// The C++ type and the name of its unit: "int", "bytes".
std::string TypeText(const Parameter& parameter);
std::string UnitText(const Parameter& parameter);

}  // namespace tcpx

#endif  // TCPX_COMMON_PARAMS_TEXT_H_
