// profiles.h: networks that have a name.
//
// Threads: any; pure.
// Units:   as settings.h. The times in a profile's description are round trips.
// Errors:  FindProfile: null for a name that nobody has.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tcpx {
namespace wire {

struct Profile {
  const char* name;
  const char* description;
  int senders;  // hosts other than the one that receives
  std::vector<std::pair<const char*, const char*>> settings;
};

const std::vector<Profile>& Profiles();
const Profile* FindProfile(absl::string_view name);
// "rack, cloud, ..."
std::string ProfileNames();

}  // namespace wire
}  // namespace tcpx
