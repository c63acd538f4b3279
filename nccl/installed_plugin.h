// installed_plugin.h: the one plugin that the exported tables call.
//
// Purpose: the seam at link time: nccl:shims calls ThePlugin; the shared library defines it with the transport, a test
//          with a fake.
// Threads: any thread may call it; the first call may create the plugin.
// Errors:  none. It must not fail and not do anything expensive: NCCL may call init without using the plugin
//          afterwards.
#pragma once

#include "nccl/plugin_api.h"

namespace tcpx {

// The same object every time, alive until the library is unloaded.
PluginApi& ThePlugin();

}  // namespace tcpx
