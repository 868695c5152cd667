// The configuration of a unit's process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/ends/generator_source.hpp"
#include "live/memory/handover.hpp"
#include "live/transport/tcp_socket.hpp"
#include "live/transport/transport.hpp"
#include "protocol/data/mfp_sizes.hpp"
#include "protocol/machines/push_builder.hpp"
#include "protocol/run/run_slots.hpp"
#include "protocol/schedule/daqpipe_rules.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "protocol/schedule/shift_rules.hpp"

namespace daqloom::live {

enum class Protocol { shift, daqpipe, pull };

enum class SourceKind {
    generator,  ///< makes MFPs whose every byte can be checked
    replay,     ///< reads files of MFPs
    user,       ///< a process of the user, which attaches to the stream's buffer
};

enum class SinkKind {
    discard,  ///< counts what MEPs hold and drops them
    check,    ///< checks every byte that a generator made
    file,     ///< writes files of MFPs, which a replay reads
    user,     ///< a process of the user, which attaches to the output buffer
};

/// Under pull building, a fragment is an MFP: its pieces are the MFP's fragments, `packing` of
/// them, which `with_pieces` finds out.
struct NodeConfig : protocol::ShiftRules, protocol::DaqpipeRules, protocol::PullRules {
    // ---- who is who
    UnitIndex self{};
    std::string run = "run";  ///< part of the names under which buffers are served
    Token token = {};
    protocol::RunSlots slots = {
        .readouts = {UnitIndex()}, .builders = {UnitIndex()}, .keeps_lost = false};

    // ---- how they reach each other
    std::string transport = "shm";
    std::string bind = "127.0.0.1";  ///< over a network: address of the interface
    TcpConfig tcp;                   ///< of connections over TCP; `bind` is their node
    Waiting waiting = Waiting::adaptive;
    base::Time polling = base::microseconds(20);

    // ---- protocol
    Protocol protocol = Protocol::shift;
    /// Linear shifting: added before each phase, or at the beginning of each window.
    base::DelayDistribution phase_jitter = {};
    /// Linear shifting by time: what fits a window.
    base::BitRate write_rate = base::gigabits_per_second(100);
    protocol::WhenFull when_full = protocol::WhenFull::discard;
    bool delivers_incomplete = true;

    // ---- data
    std::uint32_t streams = 1;  ///< of a readout unit
    std::uint32_t packing = 1;  ///< fragments of an MFP
    std::uint8_t align = 2;     ///< log2, of fragments in an MFP
    protocol::FragmentSizes sizes = protocol::FragmentSizes::poisson;
    /// Mean, by stream of the whole run: readout units in the order of their slots, then streams.
    std::vector<base::Bytes> fragment_bytes = {100};
    double event_rate_hz = 0;  ///< of sources; 0: as fast as there is room
    std::uint64_t seed = 1;

    // ---- buffers and what is at their other ends
    base::Bytes stream_buffer = base::Bytes{64} << 20;
    base::Bytes output_buffer = base::Bytes{256} << 20;
    SourceKind source = SourceKind::generator;
    Content content = Content::every;
    std::string replay;  ///< folder of the files
    bool replay_loops = true;
    SinkKind sink = SinkKind::check;
    std::string output;  ///< folder of the files
    base::Bytes output_file = base::Bytes{1} << 30;

    // ---- records
    std::uint32_t trace_stages = 0;    ///< at most so many are kept; 0: none
    std::uint32_t trace_arrivals = 0;  ///< of events, under pull building; as above
};

/// Units that have a slot.
std::uint32_t units_in(const std::vector<UnitIndex>& slots);
/// Under pull building, the bytes of the largest fragment. Fails for events of no possible size.
base::expected<base::Bytes> largest_fragment(const NodeConfig& config);
/// Under pull building, the configuration with the pieces of a fragment; else as it is.
base::expected<NodeConfig> with_pieces(NodeConfig config);

}  // namespace daqloom::live
