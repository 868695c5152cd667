// A unit's part of a barrier that the provider carries out (libfabric's collective operations).
#pragma once

#include <rdma/fi_collective.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "live/transport/libfabric/objects.hpp"

namespace daqloom::live::ofi {

/// An endpoint with the addresses of the group's members only, in the same order at all members. A
/// barrier that misses a lost member never ends.
class Collective {
  public:
    /// Completions go to `queue`, which outlives the endpoint.
    static base::expected<Collective> open(fi_info& info, const Queue& queue);

    [[nodiscard]] fid_ep* endpoint() const { return endpoint_.get(); }
    /// Adds the next member of the group. `name`: its endpoint's address, followed by zeros.
    /// False: the address is not valid.
    bool add(std::span<const std::byte> name);
    /// Joins the group. All its members do so, after all have added each other.
    base::expected<void> join();
    void enter() { is_waiting_ = true; }
    /// Posts the barrier that the unit has entered, once the provider is ready.
    void advance();
    /// Whether a completion with this context ends a barrier.
    [[nodiscard]] bool is_end(const void* context) const { return context == context_.data(); }

  private:
    // ---- in this order: objects close before those that they use
    Owned<fid_eq> events_;
    Owned<fid_av> av_;
    Owned<fid_ep> endpoint_;
    Owned<fid_av_set> set_;
    Owned<fid_mc> group_;
    std::size_t members_ = 0;
    bool has_joined_ = false;
    bool is_waiting_ = false;  ///< entered, and not yet posted
    /// The provider's context of the barrier under way.
    std::vector<fi_context2> context_ = std::vector<fi_context2>(1);
};

}  // namespace daqloom::live::ofi
