// A transport by its name, as scenarios and command lines give it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "live/transport/libfabric.hpp"
#include "live/transport/tcp_socket.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// "shm": units of one machine. "tcp": over sockets of TCP, as `tcp` says. "libfabric:PROVIDER",
/// such as "libfabric:tcp;ofi_rxm": over a network, of which `tcp` says the node and the congestion
/// control. With `tcp.checksums` what goes over any of them is checked from unit to unit.
/// Fails with one sentence: no such name, not here, or it does not let us.
base::expected<std::unique_ptr<Transport>> make_transport(const std::string& name,
                                                          const TransportConfig& config,
                                                          const TcpConfig& tcp = {});

/// What can be named on this machine.
std::vector<std::string> transport_names();

}  // namespace daqloom::live
