// Makes a transport from its name in scenarios and command lines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "live/transport/libfabric/libfabric.hpp"
#include "live/transport/tcp/socket.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// "shm": units of one machine. "tcp": TCP sockets, configured by `tcp`. "libfabric:PROVIDER", such
/// as "libfabric:tcp;ofi_rxm": a network; `tcp` gives node and congestion control. "mpi": the ranks
/// of an mpirun. "shm+NAME": shared memory between units of a host, NAME between hosts. With
/// `tcp.checksums` all data are checked from unit to unit, with "shm+NAME" those between hosts.
/// Fails with one sentence: unknown name, not available on this machine, or refused.
base::expected<std::unique_ptr<Transport>> make_transport(const std::string& name,
                                                          const TransportConfig& config,
                                                          const TcpConfig& tcp = {});

/// Names of the transports of this machine.
std::vector<std::string> transport_names();

}  // namespace daqloom::live
