// small_disk.h: a folder that is a disk of 64 KiB, for tests of what a full one does.
//
//   if (!OnSmallDisk(dir, [&] { FillDisk(dir); ... })) GTEST_SKIP() << kNoSmallDisk;
// Threads: `body` runs in one of its own, which alone has that disk, with those that it starts.
// Errors:  false: nothing ran, because mounting is forbidden here.
#pragma once

#include <functional>
#include <string>

namespace tcpx {

inline constexpr char kNoSmallDisk[] = "a full disk needs CAP_SYS_ADMIN, to mount a tmpfs of 64 KiB";

bool OnSmallDisk(const std::string& dir, const std::function<void()>& body);
// Leaves no byte free.
void FillDisk(const std::string& dir);

}  // namespace tcpx
