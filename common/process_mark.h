// process_mark.h: what tells this process from all others of the host, for names that several containers share.
//
// Threads: any. Errors: none.
#ifndef TCPX_COMMON_PROCESS_MARK_H_
#define TCPX_COMMON_PROCESS_MARK_H_

#include <string>

namespace tcpx {

// "PID", or in a PID namespace other than the host's "PID-NAMESPACE": containers count their processes each from 1.
std::string ProcessMark();

}  // namespace tcpx

#endif  // TCPX_COMMON_PROCESS_MARK_H_
