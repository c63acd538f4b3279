// build_info.h: which build of the plugin this is, for the log.
//
// Purpose: "which library did this rank load?" is the first question where ranks differ. The version says which
//          release; the build id, a sum over the library's content that the linker writes (`readelf -n` shows it),
//          which build.
// Threads: any. Lifetime: nothing is kept.
// Errors:  none; a library without a build id has an empty one.
// Source:  the note: NT_GNU_BUILD_ID of elf.h, found through dl_iterate_phdr(3).
#pragma once

#include <string>

namespace tcpx {

// Raised with each release.
inline constexpr char kVersion[] = "0.1";

// In hexadecimal, of the library or program that this is linked into.
std::string BuildId();

}  // namespace tcpx
