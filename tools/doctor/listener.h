// listener.h: the answering side: tcpx_doctor listen.
//
// Purpose: answers another doctor's questions, each connection in a process of its own, until it is interrupted.
//          Nothing stays: the processes end with the connection, or after two minutes.
// Threads: one; children. Errors: an exit code, and a line on stderr.
#pragma once

#include "tools/doctor/command.h"

namespace tcpx {
namespace doctor {

int Listen(const Command& command);

}  // namespace doctor
}  // namespace tcpx
