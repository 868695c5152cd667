// The TCP connections of an endpoint, which libfabric's interface does not expose.
#pragma once

#include <string>

#include "live/transport/libfabric/objects.hpp"

namespace daqloom::live::ofi {

/// Whether the kernel offers TCP congestion control of that name; one sentence if not.
[[nodiscard]] base::expected<void> check_congestion_control(const std::string& name);
/// Sets it on all connections that the endpoint has now.
void set_congestion_control(const Queue& queue, const std::string& name);

/// Shuts the connections down and lets the provider detect it. `tcp` of libfabric 1.17 ends the
/// process (in fi_close) if an endpoint is closed during a partly received write; a connection that
/// ends during progress is handled correctly. Completions that arrive meanwhile are dropped.
///
/// False: the provider still holds some connections after a second.
[[nodiscard]] bool hang_up(const Queue& queue);

}  // namespace daqloom::live::ofi
