// What a dial is given: traffic class, lanes, buffers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "net_socket/lane_plan.h"
#include "net_socket/plugin.h"

namespace tcpx {

absl::StatusOr<int> Plugin::TrafficClass(int asked) const {
  const int value = asked == kTrafficClassUndefined ? options_.traffic_class : asked;
  if (value == kTrafficClassUndefined) return kNoTrafficClass;
  return ResolveTrafficClass(value, traffic_classes_);
}

void Plugin::Share(const FlowHint& hint, DialRequest* request) const {
  const int alone = request->lanes;
  if (options_.lanes == 0) {
    const int links = std::max(static_cast<int>(request->device->nics.size()), static_cast<int>(request->handle.nics));
    request->lanes = ShareLanes(alone, links, hint);
  }
  if (options_.sndbuf < 0) request->sndbuf = ShareSendBuffers(hint);
  if (request->sndbuf < 0 && request->lanes == alone) return;
  TCPX_INFO(
      "comm %x connect: NCCL announces %d connections at once: %d lanes, send buffers %s; TCPX_LANES and "
      "NCCL_SOCKET_SNDBUF change it",
      request->comm_id, hint.connections(), request->lanes,
      request->sndbuf < 0 ? "by the kernel" : absl::StrCat("of ", request->sndbuf, " bytes"));
}

absl::StatusOr<uint64_t> Plugin::StartDial(Context* context, int device, const void* handle,
                                           const ConnectOptions& options) {
  absl::Status known = CheckDevice(device);
  if (!known.ok()) return known;
  DialRequest request;
  if (const char* wrong = DecodeHandle(static_cast<const char*>(handle), &request.handle)) {
    return absl::InvalidArgumentError(absl::StrCat("connect: ", wrong));
  }
  request.traffic_class = context->traffic_class;
  if (options.traffic_class != kTrafficClassUndefined) {
    auto traffic_class = TrafficClass(options.traffic_class);
    if (!traffic_class.ok()) return traffic_class.status();
    request.traffic_class = *traffic_class;
  }
  auto transport = Use(context);
  if (!transport.ok()) return transport.status();
  request.device = &Devices().device(device);
  request.comm_id = context->options.comm_id;
  request.log = context->options.log;
  request.same_host = (*transport)->IsLocal(request.handle.address);
  request.lanes = LanesFor(options_, request.device->nics, request.handle.nics, request.same_host);
  Share(context->hint(), &request);
  request.group = context->group;
  request.repeat_warnings = !context->has_finalize();
  auto key = (*transport)->dialler().Start(request);
  if (key.ok()) {
    context->dials.insert(*key);
  } else {
    DropObjectUser(context);
  }
  return key;
}

}  // namespace tcpx
