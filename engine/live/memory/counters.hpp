// The counters of a unit, in memory that other threads and processes read while it runs.
#pragma once

#include <array>
#include <cstdint>

#include "base/fields.hpp"
#include "live/memory/counter.hpp"

namespace daqloom::live {

/// Counters of the sink, written by the sink's thread. The data thread writes all other counters.
/// Times are in picoseconds (`_ps`).
struct ConsumerCounters {
    DAQLOOM_FIELDS(
        ConsumerCounters,
        (Counter, meps_processed,
         "MEPs processed by the sink. For a user's consumer: MEPs acknowledged in the epoch "
         "that built them."),
        (Counter, incomplete_meps_processed,
         "Incomplete MEPs processed by the sink (own sinks only)."),
        (Counter, meps_repeated, "Duplicates: MEPs that the consumer already had."),
        (Counter, meps_not_written, "MEPs not written in full to files."),
        (Counter, incomplete_meps_not_written, "MEPs not written that were incomplete."))
};

struct ReadoutCounters {
    DAQLOOM_FIELDS(
        ReadoutCounters, (Counter, mfps_taken, "MFPs taken from the stream buffers."),
        (Counter, mfp_bytes_taken, "Bytes of the MFPs taken, headers and padding included."),
        (Counter, fragment_bytes_taken, "Bytes of fragments alone in the MFPs taken."),
        (Counter, mfps_written, "MFPs written into the memory of builder units."),
        (Counter, mfp_bytes_written, "Bytes of MFPs written to builder units."),
        (Counter, mfps_stale, "MFPs skipped: an earlier epoch finished their MEPs."),
        (Counter, mfps_absent, "MFP numbers missing from the source."),
        (Counter, mfps_malformed, "Malformed MFPs, or MFPs out of sequence."),
        (Counter, streams_broken,
         "Streams whose source wrote invalid descriptors. The unit reports an error, is removed "
         "from the epoch, and rejoins with new buffers."),
        (Counter, phases, "Phases of linear shifting completed."),
        (Counter, idle_phases, "Phases without a partner: the turn of a dummy."),
        (Counter, in_phases_ps, "Time in all stages of phases."),
        (Counter, sending_ps, "Time in phases spent sending."),
        (Counter, in_barrier_ps, "Time in phases from entering a barrier to release."),
        (Counter, idle_ps, "Time in phases without a partner."),
        (Counter, entering_ps, "Time in phases held back before sending."),
        (Counter, asking_ps, "Time in phases until the builder unit permitted the write."),
        (Counter, write_requests,
         "Requests to write that came to a builder unit that sets the pace."),
        (Counter, answered_ahead, "Write requests answered before the last writer had finished."),
        (Counter, waiting_for_source_ps, "Time in phases waiting for an MFP from the source."),
        (Counter, waiting_for_builder_ps,
         "Time in phases waiting for a builder's answer to sizes."),
        (Counter, waiting_for_network_ps, "Time in phases waiting for writes under way."),
        (Counter, barriers, "Barriers completed."),
        (Counter, messages_sent, "Messages to other units, barriers and sizes included."))
};

/// Counters of a builder unit, and of the event manager.
struct BuilderCounters {
    DAQLOOM_FIELDS(
        BuilderCounters,
        (Gauge, events_waiting,
         "Pull building: events that the event manager has not assigned yet (a gauge)."),
        (Counter, meps_granted, "MEPs given a place in the output buffer."),
        (Counter, meps_delivered, "MEPs delivered to the consumer, complete or not."),
        (Counter, meps_built, "Complete MEPs delivered."),
        (Counter, meps_incomplete, "MEPs delivered with MFPs missing (masked)."),
        (Counter, meps_dropped,
         "MEPs dropped: no MFP arrived, or incomplete and `measure.incomplete = "
         "\"drop\"`."),
        (Counter, meps_discarded, "MEPs discarded: the output buffer was full."),
        (Counter, mfps_received, "MFPs completely received by this builder unit."),
        (Counter, mfp_bytes_built, "Bytes of fragments in MEPs delivered."),
        (Counter, mep_bytes_built, "Bytes of MEPs delivered, headers and padding included."),
        (Gauge, first_mep_ps, "Time from the start of the first epoch to the first MEP."),
        (Counter, building_ps, "Time from a MEP's grant to its completion, summed over MEPs."),
        (Counter, waiting_for_consumer_ps,
         "Time in which the unit built nothing because its consumer held the output buffer."))
};

/// Counters of the data thread, and its refused inputs.
struct UnitCounters {
    DAQLOOM_FIELDS(
        UnitCounters,
        (Counter, beats, "Data-loop iterations: they rise while the data thread runs."),
        (Counter, sleeps, "Sleeps of the data thread when it had no work."),
        (Gauge, waits,
         "1: waiting for its own source or consumer now, so that no progress is expected (a "
         "gauge)."),
        (Counter, refused_messages, "Messages refused: no unit of this epoch sends them."),
        (Counter, refused_writes, "Writes refused: their immediate data was not granted."),
        (Counter, unreachable, "Units that the transport lost, over all epochs."),
        (Counter, leases_over, "Leases expired: the run control was silent for too long."),
        (Gauge, made_ps,
         "Time at which the unit's node was made, by the clock of its machine (a gauge)."),
        (Gauge, next_mep, "Number of the first MEP not yet answered (a gauge)."))

    /// Records that MEPs before `mep_end` are answered. Called before the answers are sent, so that
    /// the counter is right whenever the unit is killed.
    void answered_to(std::uint64_t mep_end) {
        if (mep_end > next_mep) {
            next_mep.set(mep_end);
        }
    }
};

struct UnitHistograms {
    DAQLOOM_FIELDS(UnitHistograms,
                   (LatencyHistogram, building, "Time from a MEP's grant to its completion."),
                   (LatencyHistogram, in_barrier, "Time from entering a barrier to release."),
                   (LatencyHistogram, in_phase, "Time from one step of the shift to the next."))
};

/// The counters of a unit since its start, over all epochs.
struct NodeCounters : ConsumerCounters,
                      ReadoutCounters,
                      BuilderCounters,
                      UnitCounters,
                      UnitHistograms {
    /// Calls see(name, member, meaning) for each counter: the consumer's first and `next_mep` last,
    /// so that a reading has no more MEPs processed than delivered, or counted than answered.
    template <class See>
    static void each(See see) {
        ConsumerCounters::each(see);
        ReadoutCounters::each(see);
        BuilderCounters::each(see);
        UnitCounters::each(see);
    }
};

/// A counter by name.
struct CounterName {
    const char* name;
    const char* meaning;
    bool is_gauge = false;
};

/// Names, as used outside of the engine, of counters that have no list of fields.
namespace counter_names {

inline constexpr CounterName kElapsed{"elapsed_ps",
                                      "Time since the unit's node was created, at this reading."};
inline constexpr CounterName kCpu{"cpu_ps",
                                  "CPU time of the unit's process since then, all threads."};
inline constexpr CounterName kSteps{"steps",
                                    "MFPs written and received and MEPs processed: progress."};
// ---- buffers
inline constexpr CounterName kStreamBytes{
    "stream_buffer_bytes", "Size of the stream buffers of the unit's readout unit (a gauge).",
    true};
inline constexpr CounterName kStreamBytesUsed{
    "stream_buffer_bytes_used", "Bytes of them in MFPs that are not yet acknowledged (a gauge).",
    true};
inline constexpr CounterName kOutputBytes{
    "output_buffer_bytes", "Size of the output buffer of the unit's builder unit (a gauge).", true};
inline constexpr CounterName kOutputBytesUsed{
    "output_buffer_bytes_used", "Bytes of it in MEPs that the consumer holds (a gauge).", true};
// ---- sources
inline constexpr CounterName kMfpsBlocked{"mfps_blocked",
                                          "MFPs that waited for a full stream buffer to drain."};
inline constexpr CounterName kMfpsLate{"mfps_late",
                                       "MFPs that came later than the set rate demands."};
inline constexpr CounterName kPlacesSkipped{"places_skipped",
                                            "Damaged places of a recording that a replay skipped."};
inline constexpr CounterName kStoppedForAcknowledge{
    "trigger_stopped_acknowledge_ps",
    "Time in which full cards stopped the trigger and waited for acknowledgements."};
inline constexpr CounterName kStoppedForMemory{
    "trigger_stopped_memory_ps",
    "Time in which full cards stopped the trigger and waited for room in a stream's buffer."};
// ---- sinks
inline constexpr CounterName kMepsChecked{"meps_checked",
                                          "MEPs checked, every byte of them correct."};
inline constexpr CounterName kMepsWrong{"meps_wrong", "MEPs checked, some bytes of them wrong."};
inline constexpr CounterName kMepsUnchecked{
    "meps_unchecked", "MEPs of a replay, some packet of which has no checksum in the recording."};
inline constexpr CounterName kFragmentsChecked{"fragments_checked", "Fragments checked."};
inline constexpr CounterName kFragmentBytesChecked{"fragment_bytes_checked",
                                                   "Bytes of fragments checked."};
inline constexpr CounterName kFilesWritten{"files_written",
                                           "Files completed by `measure.sink = \"file\"`."};
inline constexpr CounterName kPacketsNotWritten{"packets_not_written",
                                                "Packets lost to write errors of the file system."};
inline constexpr CounterName kDiskFree{
    "disk_free_bytes", "Free space for files of `measure.sink = \"file\"` (a gauge).", true};

inline constexpr CounterName kConsumersAttached{
    "consumers_attached",
    "Attachments of consumers, with `measure.consumers = \"exclusive\"` or `\"shared\"`."};
inline constexpr CounterName kConsumersRevoked{
    "consumers_revoked",
    "Consumers that lost their MEPs: none acknowledged within `measure.consumer_timeout`, or an "
    "impossible count."};

inline constexpr std::array kSingle = {kElapsed,
                                       kCpu,
                                       kSteps,
                                       kStreamBytes,
                                       kStreamBytesUsed,
                                       kOutputBytes,
                                       kOutputBytesUsed,
                                       kMfpsBlocked,
                                       kMfpsLate,
                                       kPlacesSkipped,
                                       kStoppedForAcknowledge,
                                       kStoppedForMemory,
                                       kMepsChecked,
                                       kMepsWrong,
                                       kMepsUnchecked,
                                       kFragmentsChecked,
                                       kFragmentBytesChecked,
                                       kFilesWritten,
                                       kPacketsNotWritten,
                                       kDiskFree,
                                       kConsumersAttached,
                                       kConsumersRevoked};

// ---- prefixes of names, completed by a cause
inline constexpr CounterName kWrong{"wrong.", "Wrong MEPs by the first error found."};
inline constexpr CounterName kNotWritten{"not_written.",
                                         "Packets not written, by error, such as ENOSPC."};
inline constexpr CounterName kConsumerMeps{
    "consumer_meps.", "MEPs acknowledged by a consumer, by number of its slot at the output."};
inline constexpr CounterName kConsumerReturned{
    "consumer_returned.",
    "MEPs of a consumer that ended or was revoked before it had acknowledged them, by slot."};
inline constexpr CounterName kSamplerMeps{"sampler_meps.", "MEPs copied for a sampler, by slot."};
inline constexpr CounterName kSamplerSkipped{"sampler_skipped.",
                                             "MEPs not copied for an attached sampler, by slot."};
inline constexpr CounterName kRefused{"refused_",
                                      "Messages and writes refused by the unit's protocol."};
/// Prefixes of the names of TransportCounters: of all, and of those that count refused messages.
inline constexpr const char* kTransport = "transport.";
inline constexpr CounterName kTransportRefused{
    "transport.refused_", "Messages and connections refused by the transport."};
/// Separator between the name of a histogram and the number of its bucket.
inline constexpr const char* kBucket = "_bucket.";

}  // namespace counter_names

}  // namespace daqloom::live
