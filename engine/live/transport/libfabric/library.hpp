// libfabric's entry points, resolved at their first use: loading libfabric takes 0.2 s, because
// libraries of network cards calibrate their clocks. The other transports do not need it.
#pragma once

#include <rdma/fabric.h>

#include "base/expected.hpp"

namespace daqloom::live::ofi {

/// The functions that libfabric exports; all others are members of the returned objects.
struct Library {
    decltype(&::fi_version) version;
    decltype(&::fi_getinfo) getinfo;
    decltype(&::fi_dupinfo) dupinfo;
    decltype(&::fi_freeinfo) freeinfo;
    decltype(&::fi_fabric) fabric;
    decltype(&::fi_strerror) strerror;
};

/// The library of this machine, loaded once and kept; fails with the loader's reason if
/// libfabric.so.1 cannot be loaded.
const base::expected<Library>& library();

}  // namespace daqloom::live::ofi
