// Owning wrappers of libfabric's objects, and the search for providers.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/expected.hpp"
#include "live/transport/libfabric/library.hpp"

namespace daqloom::live::ofi {

/// Version of libfabric's interface, as in Debian 12; libfabric 2 also supports it.
inline constexpr std::uint32_t version = FI_VERSION(1, 17);

struct Close {
    template <class Fid>
    void operator()(Fid* object) const {
        ::fi_close(&object->fid);
    }
};
template <class Fid>
using Owned = std::unique_ptr<Fid, Close>;

struct FreedInfo {
    void operator()(fi_info* info) const { library()->freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreedInfo>;

/// Properties that units require from a provider; null without libfabric.
Info needs();
/// List of all providers that meet `hints`; null: none. `node`: address to bind to, or empty.
Info look_for(const fi_info& hints, const std::string& node = {});
/// Whether the endpoints have addresses of the Internet protocol.
bool is_internet(const fi_info& info);

/// "cannot ACTION: REASON", `code` as libfabric returns it.
tl::unexpected<base::Error> failure(const std::string& action, std::int64_t code);

/// Fabric, domain and completion queue of one progress thread.
struct Queue {
    Owned<fid_fabric> fabric;
    Owned<fid_domain> domain;
    Owned<fid_cq> cq;
    int fd = -1;  ///< readable when an operation has completed; below 0: the provider has none
};
base::expected<Queue> open_queue(fi_info& info);

}  // namespace daqloom::live::ofi
