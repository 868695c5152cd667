// Ending an endpoint's connections while its provider still looks at them.
#pragma once

#include "live/transport/libfabric_objects.hpp"

namespace daqloom::live::ofi {

/// Shuts the connections of the queue's endpoint and lets the provider notice. `tcp` of 1.17 ends
/// the process (in fi_close) when an endpoint is closed while another's write has half arrived; a
/// connection that ends while it is looked at, it takes well. What completes meanwhile is dropped.
///
/// False: the provider still holds some of them after a second.
[[nodiscard]] bool hang_up(const Queue& queue);

}  // namespace daqloom::live::ofi
