// The configuration of a unit's process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"
#include "live/ends/generator_source.hpp"
#include "live/memory/fan_out.hpp"
#include "live/memory/handover.hpp"
#include "live/transport/tcp/socket.hpp"
#include "live/transport/transport.hpp"
#include "protocol/data/mfp_sizes.hpp"
#include "protocol/machines/push_builder.hpp"
#include "protocol/run/run_slots.hpp"
#include "protocol/schedule/daqpipe_rules.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "protocol/schedule/shift_rules.hpp"
#include "protocol/schedule/spiky_delay.hpp"

namespace daqloom::live {

enum class Protocol { shift, daqpipe, pull };

/// The rules of all protocols. A unit uses the rules of its own protocol.
template <class... Rules>
struct EachRules : Rules... {};
using AllRules = EachRules<protocol::ShiftRules, protocol::DaqpipeRules, protocol::PullRules>;

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

/// Configuration of a node. In pull building, an MFP has one event's fragment, split into `packing`
/// pieces, which are the fragments of the MFP (see `with_pieces`).
struct NodeConfig : AllRules {
    DAQLOOM_FIELDS(
        NodeConfig, (std::string, run, "Part of the names under which buffers are served.", "run"),
        (protocol::RunSlots, slots, "Slots of the schedule, and the units in them.", {UnitIndex()},
         {UnitIndex()}, {}, false),
        (std::string, transport, "Name of the transport.", "shm"),
        (std::string, bind, "Over a network: address of the interface.", "127.0.0.1"),
        (std::string, domain, "With libfabric: name of the domain; empty: that of the address."),
        (TcpConfig, tcp, "Connections over TCP; `bind` is their node."),
        (Waiting, waiting, "Data thread without work.", Waiting::adaptive),
        (Protocol, protocol, "Building protocol.", Protocol::shift),
        (base::DelayDistribution, phase_jitter,
         "Linear shifting: delay before each phase, or at the beginning of each window."),
        (std::vector<base::DelayDistribution>, mep_processing,
         "Except in pull building, whose rules have them: successive delays from a built MEP until "
         "its room is free again."),
        (protocol::WhenFull, when_full, "Builder unit with a full output buffer.",
         protocol::WhenFull::discard),
        (bool, delivers_incomplete, "Events without fragments of lost units are delivered.", true),
        (std::uint32_t, streams, "Streams of a readout unit.", 1),
        (std::uint32_t, packing, "Fragments of an MFP.", 1),
        (protocol::FragmentSizes, fragment_sizes, "Distribution of the sizes of fragments.",
         protocol::FragmentSizes::poisson),
        (std::vector<base::Bytes>, fragment_bytes,
         "Mean size, by stream of the whole run: readout units in the order of their slots, then "
         "streams.",
         100),
        (double, event_rate_hz, "Rate of sources; 0: as fast as there is room."),
        (base::Bytes, card_buffer,
         "Linear shifting: buffer of the card of a stream; 0: no card. Needs a rate."),
        (protocol::SpikyDelay, card_acknowledge,
         "Time from an MFP's arrival in the stream's buffer until its card has the "
         "acknowledgement."),
        (std::uint64_t, seed, "Seed of sizes, content, jitter and acknowledgements.", 1),
        (base::Bytes, stream_buffer, "Buffer of a stream (B).", base::Bytes{64} << 20),
        (base::Bytes, output_buffer, "Buffer of a builder unit (B).", base::Bytes{256} << 20),
        (SourceKind, source, "Source of data.", SourceKind::generator),
        (Content, content, "Filling of a generator's fragments.", Content::every),
        (std::string, replay, "Folder of the files of a replay."),
        (SinkKind, sink, "Fate of built events.", SinkKind::check),
        (std::string, output, "Folder of the files of a sink."),
        (std::string, counters_folder,
         "Folder in memory for the file of the unit's counters; empty: they have no file."),
        (base::Time, heartbeat, "Time between two beats that units pass on.",
         base::milliseconds(200)),
        (base::Time, fault_timeout, "Time after which a unit that no other reaches is cut off.",
         base::seconds(1)),
        (base::Time, control_grace,
         "Time after the end of a lease for which units go on if none reaches the run control."),
        (Consumers, consumers, "Processes that may consume the output, if a user has the sink.",
         Consumers::one),
        (base::Time, consumer_timeout,
         "Several consumers: time in which one that holds MEPs must acknowledge one; 0: no limit."),
        (base::Bytes, output_alignment,
         "MEPs start at multiples of it in the output buffer; a power of two, 64 B to 2 MiB.", 64),
        (std::uint32_t, trace_stages, "Stages that are kept at most; 0: none."),
        (std::uint32_t, trace_arrivals,
         "Arrivals of events, under pull building, that are kept at most; 0: none."))
    UnitIndex self{};
    Token token = {};
};

/// Whether the data of a unit's own sources come from cards with small buffers.
inline bool has_cards(const NodeConfig& config) {
    return config.card_buffer > 0 && config.source != SourceKind::user;
}
/// Number of units that have a slot.
std::uint32_t units_in(const std::vector<UnitIndex>& slots);
/// Pull building: bytes of the largest fragment. Fails for impossible event sizes.
base::expected<base::Bytes> largest_fragment(const NodeConfig& config);
/// Pull building: the configuration with the pieces of a fragment; other protocols: unchanged.
base::expected<NodeConfig> with_pieces(NodeConfig config);

}  // namespace daqloom::live
