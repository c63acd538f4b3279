// key_search.h: looks for what is secret of encrypted sockets in the memory of a process that has made both of their
// ends.
//
// Purpose: getrandom(2) of this program is found before libc's, and keeps what was drawn for keys, masked: link with
//          -rdynamic. With that, and with what passed, the search computes every secret (docs/security.md). It is
//          another process, so that nothing of it lies where it looks.
// Threads: any. Errors: end the process (processes.h).
#pragma once

#include <string>
#include <vector>

#include "net_socket/seal/key_schedule.h"
#include "tests/support/processes.h"

namespace tcpx {

struct Needle {
  std::string name;
  std::string bytes;
};

// What this process has drawn; and the same for who looks.
std::string MaskedDraws();
std::vector<std::string> Unmask(std::string draws);

// All secrets of a socket whose ends have said this, and more. `all`: what was drawn.
void AddSocket(const Key32& early, const std::vector<std::string>& all, const std::string& dialler,
               const std::string& acceptor, std::vector<Needle>* needles);
// The names of those that lie in memory that can be written.
std::vector<std::string> FindInMemory(int pid, const std::vector<Needle>& needles);

void SendText(Control* peer, const std::string& text);
std::string ReceiveText(Control* peer);

}  // namespace tcpx
