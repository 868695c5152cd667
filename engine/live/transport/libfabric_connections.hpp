// The TCP connections under an endpoint, of which libfabric's interface has no word.
#pragma once

#include <string>

#include "live/transport/libfabric_objects.hpp"

namespace daqloom::live::ofi {

/// Whether the kernel lets us have TCP's congestion control of that name: one sentence if not.
[[nodiscard]] base::expected<void> check_congestion_control(const std::string& name);
/// For what the endpoint has connected by now.
void set_congestion_control(const Queue& queue, const std::string& name);

/// Shuts the connections and lets the provider notice. `tcp` of 1.17 ends the process (in fi_close)
/// when an endpoint is closed while another's write has half arrived; a connection that ends while
/// it is looked at, it takes well. What completes meanwhile is dropped.
///
/// False: the provider still holds some of them after a second.
[[nodiscard]] bool hang_up(const Queue& queue);

}  // namespace daqloom::live::ofi
