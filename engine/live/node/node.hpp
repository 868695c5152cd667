// A unit's process: its readout unit, its builder unit or both, with their buffers, sources and
// consumers, through any number of epochs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/node/counters_page.hpp"
#include "live/node/epoch/arrival_record.hpp"
#include "live/node/epoch/stage_trace.hpp"
#include "live/node/node_config.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// One thread, the control thread, calls this class; the node has its own data thread. An epoch is
///
///     prepare → connect → start → close → drain
///
/// and may be given up at any point by the next `prepare`.
class Node {
  public:
    /// Checks a configuration, as far as possible without the unit's machine.
    static base::expected<void> check(const NodeConfig& config);
    static base::expected<std::unique_ptr<Node>> make(NodeConfig config);
    ~Node();

    /// Prepares a new epoch with these members, this unit among them; `moved`: roles that moved to
    /// other units; `readouts`, `builders`: the units in the slots of another schedule, if any.
    /// Returns the address of this unit for the others.
    base::expected<std::vector<std::byte>> prepare(
        std::uint32_t epoch, std::span<const UnitIndex> members,
        std::span<const protocol::RoleHolders> moved = {}, std::vector<UnitIndex> readouts = {},
        std::vector<UnitIndex> builders = {});
    /// Connects to all other members. Returns those that did not answer within `timeout`.
    base::expected<std::vector<UnitIndex>> connect(std::span<const Transport::Peer> peers,
                                                   base::Time timeout);
    /// Starts the data flow. `first_mep`: number in the run of the epoch's first MEP.
    base::expected<void> start(std::uint64_t first_mep);

    /// Begins to drain granted MEPs. May be called again: with more units lost, or without any;
    /// after that, nothing waits for a consumer.
    void close(std::span<const UnitIndex> lost);
    /// Waits until the epoch has drained, at most until `wait_until`. If it has, the epoch is over:
    /// returns the first MEP that the next epoch may take. At `until` no unit waits any more.
    std::optional<std::uint64_t> drain(base::Time wait_until, base::Time until);
    /// Ends all threads and frees all memory.
    void shut();

    // ---- any thread, until `shut`
    /// Permits answers to MEPs of the run before `mep_end`, until time `until`; see Lease. `beat`:
    /// the run control's last one, see ControlBeats.
    void lease(std::uint64_t mep_end, base::Time until, std::uint64_t beat = 0);
    /// Units that the transport could not reach in this epoch.
    [[nodiscard]] std::vector<UnitIndex> suspects() const;
    /// The stages recorded since the last call, at most NodeConfig::trace_stages of them.
    std::vector<StageRecord> take_stages();
    /// The arrivals at the unit's event manager since the last call, at most `trace_arrivals`.
    ArrivalRecord::Arrivals take_arrivals();
    /// Kernel counters of this epoch's connections to other units; empty without such connections.
    [[nodiscard]] std::vector<ConnectionCounts> connections() const;
    /// All counters since the node was made.
    void each_counter(const SeeCount& see) const;

  private:
    struct Parts;
    explicit Node(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

}  // namespace daqloom::live
