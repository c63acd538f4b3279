#include "tests/unit/net_socket/rma/hub_lab.h"

#include "common/params.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/gpu/gpu_hub.h"

namespace tcpx {

struct HubLab::Parts {
  const Options options;
  const std::unique_ptr<GpuDriver> driver = *GpuDriver::Load();
  GpuHub hub{driver.get(), options};
};

HubLab::HubLab() : parts_(std::make_unique<Parts>()) {}
HubLab::~HubLab() = default;
GpuHub* HubLab::hub() const { return &parts_->hub; }

}  // namespace tcpx
