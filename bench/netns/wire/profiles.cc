#include "bench/netns/wire/profiles.h"

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace wire {

const std::vector<Profile>& Profiles() {
  static const auto* const kProfiles = new std::vector<Profile>{
      {"rack", "one switch: 50 us, 2 Gbit/s", 1, {{"delay", "25us"}, {"rate", "2G"}}},
      {"cloud", "150 us, 8 paths of 200 Mbit/s", 1, {{"paths", "8"}, {"delay", "75us"}, {"rate", "200M"}}},
      {"ecmp",
       "four spines: 100 us, 4 paths of 500 Mbit/s, some jitter",
       1,
       {{"paths", "4"}, {"delay", "50us"}, {"jitter", "10us"}, {"rate", "500M"}}},
      {"lossy",
       "200 us, 1 Gbit/s, 0.1 % lost in runs of 2, 0.1 % overtaken",
       1,
       {{"delay", "100us"},
        {"rate", "1G"},
        {"loss", "0.1%"},
        {"loss-run", "2"},
        {"reorder", "0.1%"},
        {"reorder-by", "200us"}}},
      {"wan", "20 ms, 1 Gbit/s", 1, {{"delay", "10ms"}, {"rate", "1G"}}},
      {"incast", "8 senders to 1: 50 us, 1 Gbit/s to each host", 8, {{"delay", "25us"}, {"rate", "1G"}}},
  };
  return *kProfiles;
}

const Profile* FindProfile(absl::string_view name) {
  for (const Profile& profile : Profiles()) {
    if (name == profile.name) return &profile;
  }
  return nullptr;
}

std::string ProfileNames() {
  std::string names;
  for (const Profile& profile : Profiles()) absl::StrAppend(&names, names.empty() ? "" : ", ", profile.name);
  return names;
}

}  // namespace wire
}  // namespace tcpx
