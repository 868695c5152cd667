// A consumer that checks every byte of every built event.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "live/ends/sink.hpp"
#include "protocol/data/mep_check.hpp"

namespace daqloom::live {

inline constexpr std::size_t data_faults =
    static_cast<std::size_t>(protocol::DataFault::padding) + 1;

/// Written by the sink's thread, read by any thread.
struct CheckCounters {
    std::atomic<std::uint64_t> right{0};       ///< MEPs, the incomplete ones among them
    std::atomic<std::uint64_t> incomplete{0};  ///< of the right MEPs: that lack somebody's MFP
    std::atomic<std::uint64_t> mfps{0};
    std::atomic<std::uint64_t> absent_mfps{0};
    std::atomic<std::uint64_t> fragments{0};
    std::atomic<std::uint64_t> fragment_bytes{0};
    std::atomic<std::uint64_t> wrong_number{0};  ///< MEPs that say another number than the builder
    /// MEPs that are wrong, by their first fault; at `none`: nothing.
    std::array<std::atomic<std::uint64_t>, data_faults> wrong{};
};

/// `streams`: those of the run, by ascending source id. `counters` outlive the consumer.
std::unique_ptr<MepConsumer> check_meps(std::vector<protocol::MfpGenerator> streams,
                                        CheckCounters& counters);

}  // namespace daqloom::live
