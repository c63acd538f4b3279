#include "net_socket/connect/listening.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log.h"
#include "common/params.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/nic_socket.h"

namespace tcpx {
namespace {

absl::Status OpenListener(const Device& device, const Nic& nic, const PortRange& range, std::vector<OwnedFd>* fds,
                          std::vector<PeerNic>* addresses) {
  auto fd = ListenOnNic(nic, device.fused() && nic.ties, range);
  if (!fd.ok()) return fd.status();
  auto address = LocalAddress(fd->get());
  if (!address.ok()) return address.status();
  addresses->push_back({*address, static_cast<uint32_t>(nic.hardware.speed_mbps)});
  fds->push_back(*std::move(fd));
  TCPX_INFO("device %d: listens on %s", device.index, address->ToString());
  return absl::OkStatus();
}

}  // namespace

bool TakeBack(Listening* listening, const ConnectionId& id) {
  std::unique_ptr<ReceiveComm> comm;
  {
    MutexLock lock(listening->mutex);
    auto& ready = listening->ready;
    auto found = std::find_if(ready.begin(), ready.end(), [&id](const Ready& each) { return each.id == id; });
    if (found == ready.end() || found->established) return false;
    comm = std::move(found->comm);
    ready.erase(found);
    listening->ready_count.fetch_sub(1, std::memory_order_relaxed);
  }
  comm->Close();
  return true;
}

void ForgetClosed(Listening* listening) {
  auto& connections = listening->connections;
  if (connections.size() < listening->sweep_at) return;
  absl::erase_if(connections, [](const auto& one) { return one.second.any() && one.second.cut(); });
  listening->sweep_at = std::max<size_t>(16, 2 * connections.size());
}

absl::StatusOr<std::vector<PeerNic>> OpenListeners(const Device& device, const PortRange& range,
                                                   std::vector<OwnedFd>* fds) {
  std::vector<PeerNic> addresses;
  for (const std::vector<Nic>* const nics : {&device.nics, &device.other_nics}) {
    for (const Nic& nic : *nics) {
      const absl::Status opened = OpenListener(device, nic, range, fds, &addresses);
      if (opened.ok()) continue;
      if (nics == &device.nics) return opened;
      const std::string line =
          absl::StrCat("device ", device.index, ": ", opened.message(), "; peers get its other addresses");
      if (range.any()) {
        TCPX_INFO("%s", line);
      } else {
        TCPX_WARN("%s", line);  // What was asked for is not had.
      }
    }
  }
  return addresses;
}

void ListensOn(const std::vector<PeerNic>& nics, Listening* listening, Handle* handle) {
  // One-sided transfers have no grouped receives, and would wait for credits.
  listening->max_receives = listening->communicator->one_sided ? 1 : listening->opened->max_receives;
  listening->nics = nics;
  AcceptWait& wait = listening->wait;
  wait.communicator = listening->communicator;
  for (const PeerNic& nic : nics) wait.addresses.push_back(nic.address);
  const auto append = [](std::string* text, const SocketAddress& address) { text->append(address.ToString()); };
  wait.where = absl::StrCat(absl::StrJoin(wait.addresses, ", ", append), " (", listening->opened->name, ")");
  handle->ticket = listening->ticket;
  // The first address, with how many there are of its family, and the first one of the other family.
  handle->address = nics.front().address;
  handle->nics = static_cast<uint16_t>(OfFamily(nics, handle->address.family()).size());
  handle->other_nics = static_cast<uint16_t>(nics.size() - handle->nics);
  if (handle->other_nics > 0) handle->other_address = nics[handle->nics].address;
}

}  // namespace tcpx
