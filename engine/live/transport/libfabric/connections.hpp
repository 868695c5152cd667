// The TCP connections of an endpoint, which libfabric's interface does not expose.
#pragma once

#include <string>

#include "live/transport/libfabric/objects.hpp"

namespace daqloom::live::ofi {

/// Fails with one sentence if the kernel has no TCP congestion control of this name.
[[nodiscard]] base::expected<void> check_congestion_control(const std::string& name);
/// Sets the congestion control of all present connections of the endpoint.
void set_congestion_control(const Queue& queue, const std::string& name);

/// Shuts the endpoint's connections down and lets the provider detect it. `tcp` of libfabric 1.17
/// ends the process (in fi_close) if an endpoint is closed during a partly received write, but
/// handles a connection that ends during progress. Completions that arrive meanwhile are dropped.
///
/// False: the provider still holds some connections after a second.
[[nodiscard]] bool hang_up(const Queue& queue);

}  // namespace daqloom::live::ofi
