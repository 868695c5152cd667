// The libfabric endpoints of a unit: their creation, their registered memory, and their address for
// other units.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "live/memory/shared_memory.hpp"
#include "live/transport/libfabric/collective.hpp"
#include "live/transport/libfabric/libfabric.hpp"
#include "live/transport/libfabric/objects.hpp"

namespace daqloom::live::ofi {

/// The purpose of an endpoint. Each endpoint has its own connections, because a connection is in
/// order: a message behind writes would wait until megabytes of writes have left.
enum class Path : std::uint8_t { messages, writes };
inline constexpr std::array paths = {Path::messages, Path::writes};
template <class Value>
using PerPath = std::array<Value, paths.size()>;
constexpr std::size_t index_of(Path path) { return static_cast<std::size_t>(path); }

/// Another unit's endpoints, as destination of messages and writes.
struct Destination {
    PerPath<fi_addr_t> at = {FI_ADDR_UNSPEC, FI_ADDR_UNSPEC};
    std::uint64_t incarnation = 0;  ///< random number in all its messages
    std::uint64_t key = 0;          ///< key of its arena
    std::uint64_t base = 0;         ///< address of the arena's first byte in a write
    std::uint64_t bytes = 0;        ///< size of the arena
    /// Address of its endpoint for barriers, followed by zeros; empty: it has none.
    std::vector<std::byte> collective = {};
};

/// A reliable datagram endpoint for each path, with their own domain and completion queue. Closing
/// revokes the arena's key first, so that writes still under way are refused.
class Endpoints {
  public:
    /// `longest`: bytes of the longest write that will be made. `others`: number of other units.
    /// `has_barriers`: whether the provider shall carry out barriers.
    static base::expected<Endpoints> open(const LibfabricConfig& config, std::size_t longest,
                                          std::size_t others, bool has_barriers = false);
    Endpoints(Endpoints&&) = default;
    Endpoints& operator=(Endpoints&&) = delete;
    ~Endpoints();

    /// Permits other units to write to the arena until the endpoints are closed. Called once.
    base::expected<void> expose(std::span<std::byte> arena);
    /// Registers memory before its use, for providers that require registration.
    base::expected<void> use(std::span<const std::byte> memory, std::uint64_t access);
    /// The descriptor of registered memory that contains these bytes.
    [[nodiscard]] void* descriptor_of(const std::byte* bytes) const;

    /// The address for `add_address` of others; up to 1 KiB.
    [[nodiscard]] base::expected<std::vector<std::byte>> address() const;
    /// Adds another unit's address; none: the address is invalid, or of another provider.
    [[nodiscard]] std::optional<Destination> add_address(std::span<const std::byte> address) const;

    [[nodiscard]] fid_ep* get(Path path) const { return endpoints_[index_of(path)].get(); }
    [[nodiscard]] const Queue& queue() const { return queue_; }
    /// This unit's `Destination::collective`.
    [[nodiscard]] std::vector<std::byte> name_for_barriers() const;
    /// Null without barriers.
    [[nodiscard]] Collective* collective() { return collective_ ? &*collective_ : nullptr; }
    [[nodiscard]] const fi_info& info() const { return *info_; }
    [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }
    /// Limit on the bytes of a write in one piece.
    [[nodiscard]] std::size_t part() const { return part_; }
    /// Flags of a write. If the provider supports this, completion means that the write is in the
    /// other unit's memory. Otherwise the parts of a write stay in order.
    [[nodiscard]] std::uint64_t write_flags() const { return write_flags_; }

  private:
    Endpoints() = default;
    base::expected<void> choose(const LibfabricConfig& config, std::size_t longest,
                                bool has_barriers);
    base::expected<void> start(std::size_t others, bool has_barriers = false);
    [[nodiscard]] base::expected<Owned<fid_mr>> register_memory(std::span<const std::byte> memory,
                                                                std::uint64_t access) const;

    struct Region {
        std::span<const std::byte> memory;
        void* descriptor;
    };

    Info info_;
    std::uint64_t incarnation_ = 0;
    std::size_t part_ = 0;
    std::uint64_t write_flags_ = 0;

    // ---- in this order: endpoints need their queue, and close before the memory that they use
    Queue queue_;
    Owned<fid_av> av_;
    std::vector<Owned<fid_mr>> used_;
    PerPath<Owned<fid_ep>> endpoints_;
    std::optional<Collective> collective_;
    Owned<fid_mr> exposed_;
    std::span<std::byte> arena_;
    std::vector<Region> regions_;
};

}  // namespace daqloom::live::ofi
