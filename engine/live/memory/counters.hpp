// The counters of a unit, in memory that other threads and processes read while it runs.
#pragma once

#include <array>

#include "live/memory/counter.hpp"

namespace daqloom::live {

/// The counters of a unit since its start, over all epochs: those of its consumer are written by
/// the sink's thread, all others by the data thread. `each` lists names and meanings; times are in
/// picoseconds (`_ps`).
struct NodeCounters {
    Counter beats;
    Counter sleeps;
    Gauge waits;
    Gauge next_mep;
    // ---- readout unit
    Counter mfps_taken;
    Counter mfp_bytes_taken;
    Counter fragment_bytes_taken;
    Counter mfps_written;
    Counter mfp_bytes_written;
    Counter mfps_stale;
    Counter mfps_absent;
    Counter mfps_malformed;
    Counter streams_broken;
    Counter phases;
    Counter idle_phases;
    Counter phase_time;
    Counter sending_time;
    Counter barrier_time;
    Counter idle_time;
    Counter entering_time;
    Counter asking_time;
    Counter write_requests;
    Counter answered_ahead;
    Counter waiting_for_source;
    Counter waiting_for_builder;
    Counter waiting_for_network;
    Counter barriers;
    Counter messages_sent;
    // ---- event manager
    Gauge events_waiting;
    // ---- builder unit
    Counter meps_granted;
    Counter meps_delivered;
    Counter meps_built;
    Counter meps_incomplete;
    Counter meps_dropped;
    Counter meps_discarded;
    Counter mfps_received;
    Counter mfp_bytes_built;
    Counter mep_bytes_built;
    Gauge first_mep_time;
    Counter build_time;
    // ---- consumer
    Counter meps_processed;
    Counter incomplete_meps_processed;
    Counter meps_repeated;
    Counter meps_not_written;
    Counter incomplete_meps_not_written;
    // ---- refused inputs
    Counter refused_messages;
    Counter refused_writes;
    Counter unreachable;
    Counter leases_over;
    // ---- durations
    LatencyHistogram builds;
    LatencyHistogram in_barriers;
    LatencyHistogram in_phases;

    /// MEPs of the run before this number are answered. Called before the answers are sent, so that
    /// the counter is valid whenever the unit is killed.
    void answered_to(std::uint64_t mep_end) {
        if (mep_end > next_mep) {
            next_mep.set(mep_end);
        }
    }

    /// Calls see(name, member, meaning) for each counter.
    template <class See>
    static void each(See see) {
        using N = NodeCounters;
        see("beats", &N::beats, "Data-loop iterations: they rise while the data thread runs.");
        see("sleeps", &N::sleeps, "Sleeps of the data thread when it had no work.");
        see("waits", &N::waits,
            "1: waiting for its own source or consumer now, so that no progress is expected (a "
            "gauge).");
        // The consumer's first: it has processed no more MEPs than are delivered by then.
        see("meps_processed", &N::meps_processed,
            "MEPs processed by the sink. For a user's consumer: MEPs acknowledged in the epoch "
            "that built them.");
        see("incomplete_meps_processed", &N::incomplete_meps_processed,
            "Incomplete MEPs of these (own sinks only).");
        see("meps_repeated", &N::meps_repeated, "Duplicates: MEPs that the consumer already had.");
        see("meps_not_written", &N::meps_not_written, "MEPs not written in full to files.");
        see("incomplete_meps_not_written", &N::incomplete_meps_not_written,
            "MEPs not written that were incomplete.");
        see("mfps_taken", &N::mfps_taken, "MFPs taken from the stream buffers.");
        see("mfp_bytes_taken", &N::mfp_bytes_taken,
            "Bytes in these MFPs, headers and padding included.");
        see("fragment_bytes_taken", &N::fragment_bytes_taken,
            "Bytes of fragments alone in these MFPs.");
        see("mfps_written", &N::mfps_written, "MFPs written into the memory of builder units.");
        see("mfp_bytes_written", &N::mfp_bytes_written, "Bytes of MFPs written to builder units.");
        see("mfps_stale", &N::mfps_stale, "MFPs skipped: an earlier epoch finished their MEPs.");
        see("mfps_absent", &N::mfps_absent, "MFP numbers missing from the source.");
        see("mfps_malformed", &N::mfps_malformed, "Malformed MFPs, or MFPs out of sequence.");
        see("streams_broken", &N::streams_broken,
            "Streams whose source wrote invalid descriptors. The unit reports an error, is removed "
            "from the epoch, and rejoins with new buffers.");
        see("phases", &N::phases, "Phases of linear shifting completed.");
        see("idle_phases", &N::idle_phases, "Phases without a partner: the turn of a dummy.");
        see("in_phases_ps", &N::phase_time, "Time in all stages of phases.");
        see("sending_ps", &N::sending_time, "Time in phases spent sending.");
        see("in_barrier_ps", &N::barrier_time,
            "Time in phases from entering a barrier to release.");
        see("idle_ps", &N::idle_time, "Time in phases without a partner.");
        see("entering_ps", &N::entering_time, "Time in phases held back before sending.");
        see("asking_ps", &N::asking_time,
            "Time in phases until the builder unit permitted the write.");
        see("write_requests", &N::write_requests,
            "Requests to write that came to a builder unit that sets the pace.");
        see("answered_ahead", &N::answered_ahead,
            "Write requests answered before the last writer had finished.");
        see("waiting_for_source_ps", &N::waiting_for_source,
            "Time in phases waiting for an MFP from the source.");
        see("waiting_for_builder_ps", &N::waiting_for_builder,
            "Time in phases waiting for a builder's answer to sizes.");
        see("waiting_for_network_ps", &N::waiting_for_network,
            "Time in phases waiting for writes under way.");
        see("barriers", &N::barriers, "Barriers completed.");
        see("messages_sent", &N::messages_sent,
            "Messages to other units, barriers and sizes included.");
        see("events_waiting", &N::events_waiting,
            "Pull building: events that the event manager has not assigned yet (a gauge).");
        see("meps_granted", &N::meps_granted, "MEPs given a place in the output buffer.");
        see("meps_delivered", &N::meps_delivered,
            "MEPs delivered to the consumer, complete or not.");
        see("meps_built", &N::meps_built, "Complete MEPs delivered.");
        see("meps_incomplete", &N::meps_incomplete, "MEPs delivered with MFPs missing (masked).");
        see("meps_dropped", &N::meps_dropped,
            "MEPs dropped: no MFP arrived, or incomplete and `measure.incomplete = "
            "\"drop\"`.");
        see("meps_discarded", &N::meps_discarded, "MEPs discarded: the output buffer was full.");
        see("mfps_received", &N::mfps_received, "MFPs completely received by this builder unit.");
        see("mfp_bytes_built", &N::mfp_bytes_built, "Bytes of fragments in MEPs delivered.");
        see("mep_bytes_built", &N::mep_bytes_built,
            "Bytes of MEPs delivered, headers and padding included.");
        see("first_mep_ps", &N::first_mep_time,
            "Time from the start of the first epoch to the first MEP.");
        see("building_ps", &N::build_time,
            "Time from a MEP's grant to its completion, summed over MEPs.");
        see("refused_messages", &N::refused_messages,
            "Messages refused: no unit of this epoch sends them.");
        see("refused_writes", &N::refused_writes,
            "Writes refused: their immediate data was not granted.");
        see("unreachable", &N::unreachable, "Units that the transport lost, over all epochs.");
        see("leases_over", &N::leases_over,
            "Leases expired: the run control was silent for too long.");
        see("next_mep", &N::next_mep,
            "Number of the first MEP not yet answered (a gauge).");  // last: beyond all MEPs
                                                                     // counted before
    }

    template <class See>
    static void each_histogram(See see) {
        using N = NodeCounters;
        see("building", &N::builds, "Time from a MEP's grant to its completion.");
        see("in_barrier", &N::in_barriers, "Time from entering a barrier to release.");
        see("in_phase", &N::in_phases, "Time from one step of the shift to the next.");
    }
};

/// A counter by name.
struct CounterName {
    const char* name;
    const char* meaning;
};

/// Names, outside of the engine, of counters without a list of fields.
namespace counter_names {

inline constexpr CounterName kElapsed{"elapsed_ps",
                                      "Time since the unit's node was created, at this reading."};
inline constexpr CounterName kCpu{"cpu_ps",
                                  "CPU time of the unit's process since then, all threads."};
inline constexpr CounterName kSteps{"steps",
                                    "MFPs written and received and MEPs processed: progress."};
// ---- sources
inline constexpr CounterName kMfpsBlocked{"mfps_blocked",
                                          "MFPs that waited for a full stream buffer to drain."};
inline constexpr CounterName kMfpsLate{"mfps_late",
                                       "MFPs that came later than the set rate demands."};
inline constexpr CounterName kPlacesSkipped{"places_skipped",
                                            "Damaged places of a recording that a replay skipped."};
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

inline constexpr std::array kSingle = {kElapsed,
                                       kCpu,
                                       kSteps,
                                       kMfpsBlocked,
                                       kMfpsLate,
                                       kPlacesSkipped,
                                       kMepsChecked,
                                       kMepsWrong,
                                       kMepsUnchecked,
                                       kFragmentsChecked,
                                       kFragmentBytesChecked,
                                       kFilesWritten,
                                       kPacketsNotWritten};

// ---- prefixes of names, completed by a cause
inline constexpr CounterName kWrong{"wrong.", "Wrong MEPs by the first error found."};
inline constexpr CounterName kNotWritten{"not_written.",
                                         "Packets not written, by error, such as ENOSPC."};
inline constexpr CounterName kRefused{"refused_",
                                      "Messages and writes refused by the unit's protocol."};
/// Prefix of the names of TransportCounters, and of those for refused messages among them.
inline constexpr const char* kTransport = "transport.";
inline constexpr CounterName kTransportRefused{
    "transport.refused_", "Messages and connections refused by the transport."};
/// Separator between the name of a histogram and the number of its bucket.
inline constexpr const char* kBucket = "_bucket.";

}  // namespace counter_names

}  // namespace daqloom::live
