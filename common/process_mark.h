// process_mark.h: what tells this process from all others of the host, for names that several containers share.
//
// Threads: any. Errors: none.
#pragma once

#include <string>

namespace tcpx {

// "PID", or in a PID namespace other than the host's "PID-NAMESPACE": containers count their processes each from 1.
std::string ProcessMark();

}  // namespace tcpx
