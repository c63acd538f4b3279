// What a listen says of itself.
#include "net_socket/connect/listening.h"

#include <memory>

#include "gtest/gtest.h"

namespace tcpx {
namespace {

TEST(ListeningTest, OneSidedTransfersHaveNoGroupedReceives) {
  Device device;
  device.max_receives = 8;
  for (const bool one_sided : {false, true}) {
    auto communicator = std::make_shared<Communicator>();
    communicator->one_sided = one_sided;
    Listening listening;
    listening.communicator = communicator;
    listening.opened = &device;
    Handle handle;
    ListensOn({PeerNic()}, &listening, &handle);
    EXPECT_EQ(listening.max_receives, one_sided ? 1 : 8);
  }
}

}  // namespace
}  // namespace tcpx
