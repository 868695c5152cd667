// A consumer that checks every byte of every built event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "live/ends/recorded_checksums.hpp"
#include "live/ends/sink.hpp"
#include "live/memory/counter.hpp"
#include "protocol/data/mep_check.hpp"

namespace daqloom::live {

inline constexpr std::size_t data_faults =
    static_cast<std::size_t>(protocol::DataFault::padding) + 1;

/// Written by the sink's thread, read by any thread.
struct CheckCounters {
    Counter right;  ///< MEPs, including incomplete ones
    Counter fragments;
    Counter fragment_bytes;
    Counter unchecked;     ///< MEPs with an MFP that cannot be compared
    Counter wrong_number;  ///< MEPs whose number differs from the builder's
    /// Wrong MEPs, by their first fault; unused at `none`.
    std::array<Counter, data_faults> wrong{};
};

/// `streams`: all streams of the run, by ascending source id. `counters` must outlive the consumer.
std::unique_ptr<MepConsumer> check_meps(std::vector<protocol::MfpGenerator> streams,
                                        CheckCounters& counters);

/// Checks a replay with `streams` streams, whose MFPs are compared with the recording.
std::unique_ptr<MepConsumer> check_replayed_meps(std::shared_ptr<const RecordedChecksums> recorded,
                                                 std::uint32_t streams, CheckCounters& counters);

}  // namespace daqloom::live
