// Units that reach each other through libfabric, by any of its providers that has what it takes:
// reliable datagram endpoints, messages, and writes into remote memory that come with 32 bits.
//
// One domain, endpoint and completion queue per transport, hence per progress thread. Anybody who
// can connect to the endpoint can send to it: messages are sealed with the run's token, and writes
// need the random key of the arena, where the provider lets us choose it. Neither hides anything
// from who reads the network: that is the network's affair.
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
    std::string name;                       ///< as after "libfabric:", such as "tcp;ofi_rxm"
    std::string fabric;                     ///< a network that it reaches
    bool has_wait_fd = false;               ///< no: an idle unit looks once a millisecond
    std::vector<std::string> memory_modes;  ///< libfabric's names, such as "FI_MR_VIRT_ADDR"
    base::Bytes most_per_write = 0;         ///< a longer write is made in parts
};

/// All that fit, each once, libfabric's favourites first. Takes tens of milliseconds.
std::vector<Provider> libfabric_providers();

struct LibfabricConfig {
    std::string provider = "tcp;ofi_rxm";
    /// Address, host name or interface that the endpoint is bound to, where a provider has such:
    /// what others reach this unit at.
    std::string node = "127.0.0.1";
    /// TCP's, of connections to other units; empty: what the route or the system has.
    std::string congestion_control = {};
    /// Longer writes are made in parts. At most what the provider says.
    base::Bytes most_per_write = base::Bytes{1} << 62;
};

/// One sentence if there is no such provider here, or it does not let us.
base::expected<std::unique_ptr<Transport>> make_libfabric(const TransportConfig& transport,
                                                          const LibfabricConfig& libfabric);

}  // namespace daqloom::live
