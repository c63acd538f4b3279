#include "net_socket/plugin/open_objects.h"

#include <utility>

namespace tcpx {

ListenComm* OpenObjects::Add(std::unique_ptr<ListenComm> listen) {
  ListenComm* raw = listen.get();
  raw->context->listens.insert(raw);
  listens_[raw] = std::move(listen);
  return raw;
}

std::unique_ptr<ListenComm> OpenObjects::Take(ListenComm* listen) {
  auto found = listens_.find(listen);
  if (found == listens_.end()) return nullptr;
  std::unique_ptr<ListenComm> taken = std::move(found->second);
  listens_.erase(found);
  taken->context->listens.erase(listen);
  return taken;
}

void OpenObjects::CloseListens() {
  for (auto& [raw, listen] : listens_) listen->acceptor->CloseListen(listen->listening);
}

void OpenObjects::Add(Comm* comm, Owner owner) {
  owner.context->Add(comm);
  comms_[comm] = std::move(owner);
}

OpenObjects::Owner OpenObjects::Remove(Comm* comm) {
  auto found = comms_.find(comm);
  Owner owner = std::move(found->second);
  comms_.erase(found);
  owner.context->Remove(comm);
  delete comm;  // After the look-up: a comm that another thread enters now may get the same address.
  return owner;
}

}  // namespace tcpx
