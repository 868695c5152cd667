// A transport over libfabric, with any provider that has reliable datagram endpoints, messages, and
// RMA writes with 32 bits of immediate data.
//
// Each transport, hence each progress thread, has one domain, one completion queue and two
// endpoints: one for messages and one for writes, so that a message does not wait behind the data
// of a write. Any process that can connect to an endpoint can send to it. Therefore messages are
// sealed with the run's token, and writes need the random key of the arena, if the provider permits
// a chosen key. Data on the network are not encrypted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// A libfabric provider of this machine that units can use.
struct Provider {
    std::string name;          ///< the part after "libfabric:", such as "tcp;ofi_rxm"
    bool has_wait_fd = false;  ///< false: an idle unit polls once a millisecond
};

/// All suitable providers, each once, in libfabric's order. Takes tens of milliseconds.
std::vector<Provider> libfabric_providers();

struct LibfabricConfig {
    std::string provider = "tcp;ofi_rxm";
    /// Address, host name or interface to which the endpoint is bound, and at which other units
    /// reach this one. Unused by providers that do not bind.
    std::string node = "127.0.0.1";
    /// Name of the domain (an RDMA device, such as "mlx5_1", or an interface); empty: any.
    std::string domain = {};
    /// Congestion control of TCP connections; empty: the default of the route or the system.
    std::string congestion_control = {};
    /// Limit on a write in one piece, at most the provider's. Longer writes are made in parts.
    base::Bytes most_per_write = base::Bytes{1} << 62;
};

/// Fails with one sentence if this machine has no such provider, or it cannot be used.
base::expected<std::unique_ptr<Transport>> make_libfabric(const TransportConfig& transport,
                                                          const LibfabricConfig& libfabric);

}  // namespace daqloom::live
