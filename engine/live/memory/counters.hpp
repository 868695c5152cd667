// The counters of a unit, in memory that other threads and processes read while it runs.
#pragma once

#include "live/memory/counter.hpp"
#include "live/memory/latency_histogram.hpp"

namespace daqloom::live {

/// The counters of a unit since its start, over all epochs: those of its consumer are written by
/// the sink's thread, all others by the data thread. Times are in picoseconds (`_ps`).
struct NodeCounters {
    Counter beats;  ///< iterations of the data thread's loop
    Counter sleeps;
    Counter waits;     ///< not 0: it waits for its own source or consumer, now
    Counter next_mep;  ///< number in the run of the first MEP beyond what it has answered, now
    // ---- readout unit
    Counter mfps_taken;  ///< from the streams' buffers
    Counter mfp_bytes_taken;
    Counter fragment_bytes_taken;  ///< in these MFPs, without headers and padding
    Counter mfps_written;          ///< to builder units
    Counter mfp_bytes_written;
    Counter mfps_stale;      ///< of MEPs that an earlier epoch has finished with
    Counter mfps_absent;     ///< numbers that the source left out
    Counter mfps_malformed;  ///< no MFP, or not the one whose turn it is
    Counter streams_broken;  ///< closed because of invalid descriptors of their source
    Counter phases;
    Counter idle_phases;
    Counter phase_time;  ///< of all stages
    Counter sending_time;
    Counter barrier_time;
    Counter idle_time;
    Counter entering_time;
    Counter waiting_for_source;   ///< asleep while sending: no MFP is there
    Counter waiting_for_builder;  ///< asleep while sending: no answer to what was announced
    Counter waiting_for_network;  ///< asleep while sending: writes are under way
    Counter barriers;
    Counter messages_sent;
    // ---- builder unit
    Counter meps_granted;
    Counter meps_delivered;   ///< to the consumer, whole or not
    Counter meps_built;       ///< whole
    Counter meps_incomplete;  ///< delivered without the MFPs of some of the run's streams
    Counter meps_dropped;     ///< not whole, and dropped
    Counter meps_discarded;   ///< because the output buffer was full
    Counter mfps_received;
    Counter mfp_bytes_built;  ///< of MEPs delivered
    Counter mep_bytes_built;  ///< the same with headers and padding
    Counter first_mep_time;   ///< from the start of the first epoch to its first MEP
    Counter build_time;       ///< from the grant of a MEP until it is built, sum
    // ---- consumer
    Counter meps_processed;               ///< consumed: a unit that is killed loses all others
    Counter incomplete_meps_processed;    ///< of these
    Counter meps_repeated;                ///< duplicates
    Counter meps_not_written;             ///< of which a file sink lost some packet; each once
    Counter incomplete_meps_not_written;  ///< of these, that lacked an MFP anyhow
    // ---- what was refused
    Counter refused_messages;  ///< that no unit of this epoch sends, or not to this one, or not now
    Counter refused_writes;    ///< of another epoch, of a lost or another unit, or never granted
    Counter unreachable;       ///< units lost by the transport
    Counter leases_over;       ///< times that it had not heard from its run control for too long
    // ---- how long it took, each time
    LatencyHistogram builds;       ///< of MEPs: from the grant until it is built
    LatencyHistogram in_barriers;  ///< from entering one until it lets go
    LatencyHistogram in_phases;    ///< from one step to the next

    /// MEPs of the run before this number are answered. Called before the others are told, so that
    /// it holds whenever the unit is killed.
    void answered_to(std::uint64_t mep_end) {
        if (mep_end > next_mep) {
            next_mep.set(mep_end);
        }
    }

    template <class See>
    static void each(See see) {
        using N = NodeCounters;
        see("beats", &N::beats);
        see("sleeps", &N::sleeps);
        see("waits", &N::waits);
        // The consumer's first: it has processed no more MEPs than are delivered by then.
        see("meps_processed", &N::meps_processed);
        see("incomplete_meps_processed", &N::incomplete_meps_processed);
        see("meps_repeated", &N::meps_repeated);
        see("meps_not_written", &N::meps_not_written);
        see("incomplete_meps_not_written", &N::incomplete_meps_not_written);
        see("mfps_taken", &N::mfps_taken);
        see("mfp_bytes_taken", &N::mfp_bytes_taken);
        see("fragment_bytes_taken", &N::fragment_bytes_taken);
        see("mfps_written", &N::mfps_written);
        see("mfp_bytes_written", &N::mfp_bytes_written);
        see("mfps_stale", &N::mfps_stale);
        see("mfps_absent", &N::mfps_absent);
        see("mfps_malformed", &N::mfps_malformed);
        see("streams_broken", &N::streams_broken);
        see("phases", &N::phases);
        see("idle_phases", &N::idle_phases);
        see("in_phases_ps", &N::phase_time);
        see("sending_ps", &N::sending_time);
        see("in_barrier_ps", &N::barrier_time);
        see("idle_ps", &N::idle_time);
        see("entering_ps", &N::entering_time);
        see("waiting_for_source_ps", &N::waiting_for_source);
        see("waiting_for_builder_ps", &N::waiting_for_builder);
        see("waiting_for_network_ps", &N::waiting_for_network);
        see("barriers", &N::barriers);
        see("messages_sent", &N::messages_sent);
        see("meps_granted", &N::meps_granted);
        see("meps_delivered", &N::meps_delivered);
        see("meps_built", &N::meps_built);
        see("meps_incomplete", &N::meps_incomplete);
        see("meps_dropped", &N::meps_dropped);
        see("meps_discarded", &N::meps_discarded);
        see("mfps_received", &N::mfps_received);
        see("mfp_bytes_built", &N::mfp_bytes_built);
        see("mep_bytes_built", &N::mep_bytes_built);
        see("first_mep_ps", &N::first_mep_time);
        see("building_ps", &N::build_time);
        see("refused_messages", &N::refused_messages);
        see("refused_writes", &N::refused_writes);
        see("unreachable", &N::unreachable);
        see("leases_over", &N::leases_over);
        see("next_mep", &N::next_mep);  // last: it is beyond whatever was counted before
    }

    template <class See>
    static void each_histogram(See see) {
        using N = NodeCounters;
        see("building", &N::builds);
        see("in_barrier", &N::in_barriers);
        see("in_phase", &N::in_phases);
    }
};

}  // namespace daqloom::live
