// hub_lab.h: pools and writers of a GPU's memory on the stand-in for the CUDA driver, for groups on a fake net.
//
// Purpose: apart from the fake net, which has other connections and requests than the product.
// Threads: any. Lifetime: the groups' and longer.
#pragma once

#include <memory>

namespace tcpx {

class GpuHub;

class HubLab {
 public:
  HubLab();
  ~HubLab();
  GpuHub* hub() const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace tcpx
