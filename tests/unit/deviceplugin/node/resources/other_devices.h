// What two rails' sysfs lacks: user-space drivers, accelerators, subfunctions, vDPA
// devices, ACPI indices, InfiniBand ports; laid out as the kernel does it.
#pragma once

#include <string>

#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {

// The function loses its devices and is bound to `driver`; vfio-pci gets an IOMMU group,
// the uio drivers a device uio3.
void BindToUserSpace(FakeSysfs& sysfs, const std::string& address, const std::string& driver,
                     const std::string& group = "42");

// A function of class 12.
void AddAcceleratorFunction(FakeSysfs& sysfs, const std::string& address, const std::string& driver);

// mlx5_core.sf.N below the PF, with network device and RDMA device where named.
void AddSubfunction(FakeSysfs& sysfs, const std::string& pf, const std::string& name, int sfnum,
                    const std::string& netdev, const std::string& rdma = "");

// The driver that makes a subfunction's devices is bound to it.
void BindSubfunction(FakeSysfs& sysfs, const std::string& pf, const std::string& name);

// A vDPA device on a function; `driver` is vhost_vdpa or virtio_vdpa.
void AddVdpa(FakeSysfs& sysfs, const std::string& address, const std::string& name,
             const std::string& driver);

// The function's RDMA device becomes InfiniBand with this default partition key, and its
// network device, if any, IPoIB.
void MakeInfiniBand(FakeSysfs& sysfs, const std::string& address, const std::string& pkey);

}  // namespace railhead::testing
