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
// "auto (0) or 1 to 64", "auto, io_uring or epoll", "0 to 600".
std::string AllowedText(const Parameter& parameter);
// What a value is, with its unit: "number", "size in bytes", "switch".
std::string TypeText(const Parameter& parameter);

}  // namespace tcpx

#endif  // TCPX_COMMON_PARAMS_TEXT_H_
