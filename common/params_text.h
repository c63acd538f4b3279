// params_text.h: a parameter's value, default and range in words, for warnings, docs/parameters.md and tcpx_doctor.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>

#include "common/params.h"

namespace tcpx {

const char* EngineName(EngineChoice choice);
const char* SwitchName(Switch choice);

// Nanoseconds of one unit of a duration; 1 for everything that is no duration.
int64_t UnitOf(ParameterKind kind);
// A parameter's value in `options`: "64K", "auto", "5 s"; "empty" for no text.
std::string ValueOf(const Parameter& parameter, const Options& options);
std::string DefaultText(const Parameter& parameter);
// "auto (0) or 1 to 64", "auto, io_uring or epoll", "0 to 600 s".
std::string AllowedText(const Parameter& parameter);

}  // namespace tcpx
