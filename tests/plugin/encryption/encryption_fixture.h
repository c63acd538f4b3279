// encryption_fixture.h: a pair of comms that encrypt, and messages between them.
//
// Threads: those of gtest. Errors: as texts, empty when all is right. Every wait is bounded.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/secret_file.h"
#include "tests/support/test_plugin.h"

namespace tcpx {

inline Mode Encrypted(Mode settings) {
  settings.environment["TCPX_ENCRYPT"] = "1";
  settings.environment["TCPX_SECRET_FILE"] = SecretFile();
  return settings;
}

// Sends the texts, all at once, and receives them. What went wrong: the first error of either end, or wrong bytes.
inline std::string Exchange(NetClient* net, const Ends& pair, const std::vector<std::string>& texts) {
  std::vector<std::string> got;
  for (const std::string& text : texts) got.push_back(std::string(text.size(), '?'));
  std::vector<void*> posted;  // receives, then sends; null: done
  for (std::string& place : got) {
    auto receive = PostReceive(net, pair.receive, &place[0], place.size());
    if (!receive.ok()) return std::string(receive.status().message());
    posted.push_back(*receive);
  }
  for (const std::string& text : texts) {
    auto send = PostSend(net, pair.send, text.data(), text.size());
    if (!send.ok()) return std::string(send.status().message());
    posted.push_back(*send);
  }
  const Deadline deadline(60);
  for (size_t left = posted.size(); left > 0;) {
    for (size_t i = 0; i < posted.size(); ++i) {
      int done = 0;
      if (posted[i] == nullptr) continue;
      const ncclResult_t result = net->Test(posted[i], &done, nullptr);
      const char* const end = i < texts.size() ? "receiver" : "sender";
      if (result != ncclSuccess) return absl::StrCat("the ", end, "'s error ", static_cast<int>(result));
      if (done == 0) continue;
      if (i < texts.size() && got[i] != texts[i]) return "WRONG BYTES";
      posted[i] = nullptr;
      --left;
    }
    if (!deadline.Yield()) return "HANGS";
  }
  return "";
}

}  // namespace tcpx
