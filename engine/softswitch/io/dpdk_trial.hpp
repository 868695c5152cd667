// Trials of the switch on this machine: one core sends frames at a rate and counts the frames that
// come back; another core runs the switch. The devices of both are rings in memory.
//
//   generator ──> [ wire ] ──> port 0 ── switch ── port 1 ──> [ wire ] ──> generator
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::softswitch::io {

struct TrialConfig {
    DAQLOOM_FIELDS(TrialConfig, (std::vector<std::string>, eal, "Arguments of DPDK's environment."),
                   (std::uint32_t, destinations, "Destinations, each with a ring.", 144),
                   (std::uint32_t, ring_packets, "Capacity of a ring in packets.", 512),
                   (base::BitRate, pace, "Pace of each ring; 0: none."),
                   (std::uint32_t, frame_bytes, "Size on the wire, check sequence included.", 64),
                   (std::uint32_t, descriptors, "Descriptors of each wire: a power of two.", 512))
};

struct TrialResult {
    DAQLOOM_FIELDS(TrialResult, (std::uint64_t, intended, "Frames due during the trial."),
                   (std::uint64_t, offered, "Frames sent, those dropped at a full wire included."),
                   (std::uint64_t, missed, "Frames dropped at a full wire (slow switch)."),
                   (std::uint64_t, forwarded, "Frames received back until the switch was empty."),
                   (std::uint64_t, changes, "Number of changes of the paces of all rings."),
                   (base::Time, duration, "From the first frame sent to the last."),
                   (base::Time, away, "Time without a CPU, switch and generator together."))
};

/// At most one per process, as DPDK starts once.
class Trials {
  public:
    static base::expected<std::unique_ptr<Trials>> make(const TrialConfig& config);
    ~Trials();

    /// Runs a trial; counters are read once the switch has drained. Every `change_every` (0: never)
    /// the rings change between the pace of trials and twice their share of the load.
    base::expected<TrialResult> run(double frames_per_second, base::Time duration,
                                    base::Time change_every = base::Time::zero());
    /// Ends the running trial with its results so far; callable from any thread.
    void stop();

    /// Time of a turn of the switch, on one core, in which `frames` enter at one port and leave at
    /// the other: the mean of the middle half of `turns` turns. Frames cycle through `among`
    /// buffers: a few buffers stay in the caches, many do not. The rings must have no pace, or
    /// frames stay in them.
    base::expected<base::Time> turn_time(std::uint32_t frames, std::uint32_t turns,
                                         std::uint32_t among);

  private:
    struct Set;
    Trials();
    std::unique_ptr<Set> set_;
};

}  // namespace daqloom::softswitch::io
