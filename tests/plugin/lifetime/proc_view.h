// proc_view.h: what this process has, as the kernel and the allocator see it: threads, descriptors, mappings, heap.
//
// Threads: any; a picture of a moment.
// Source:  proc(5), mallinfo2(3).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tcpx {

int ThreadCount();
// The same once a thread has come and gone: a sanitizer starts one of its own with the first.
int ThreadCountAtRest();
// "5 socket:[1234]" and so on, by number.
std::vector<std::string> OpenDescriptors();
int MappingCount();
// Lines of /proc/self/maps that name the plugin, or a ring of the kernel's.
std::vector<std::string> PluginMappings();
// What the allocator has given out. Without a sanitizer's allocator only.
size_t HeapBytes();
// Processor time of all threads so far, in seconds.
double CpuSeconds();

std::string Joined(const std::vector<std::string>& lines);

// Waits, for a bounded time, until the kernel shows `threads`: a joined thread may still be listed for a moment. An
// emulator may have started one of its own since.
bool SettlesAtThreads(int threads);

}  // namespace tcpx
