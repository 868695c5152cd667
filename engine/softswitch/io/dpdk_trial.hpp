// Trials of the switch on this machine: one core sends frames at a rate and counts those that come
// back, another one runs the switch. Between them are devices that are rings in memory.
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
                   (std::uint32_t, ring_packets, "Packets that a ring holds.", 512),
                   (base::BitRate, pace, "Pace of each ring; 0: none."),
                   (std::uint32_t, frame_bytes, "Size on the wire, check sequence included.", 64),
                   (std::uint32_t, descriptors, "Descriptors of each wire: a power of two.", 512))
};

struct TrialResult {
    DAQLOOM_FIELDS(
        TrialResult, (std::uint64_t, intended, "Frames that were to be sent."),
        (std::uint64_t, offered, "Frames sent, those that found the wire full included."),
        (std::uint64_t, missed, "Frames that found the wire full: the switch was too slow."),
        (std::uint64_t, forwarded, "Frames that came back, until the switch was empty."),
        (std::uint64_t, changes, "Times that the paces of all rings were changed."),
        (base::Time, duration, "From the first frame sent to the last."),
        (base::Time, away, "Time in which the switch or the generator did not run, both together."))
};

/// One for a process and its life: DPDK starts once.
class Trials {
  public:
    static base::expected<std::unique_ptr<Trials>> make(const TrialConfig& config);
    ~Trials();

    /// Counters are read when the switch has drained. `change_every`: so often all rings get
    /// another pace, by turns the one of the trials and twice their share of the load; zero: never.
    base::expected<TrialResult> run(double frames_per_second, base::Time duration,
                                    base::Time change_every = base::Time::zero());
    /// From any thread: a trial that runs ends now, with what it has been so far.
    void stop();

    /// The time of a turn of the switch in which so many frames come by one port and leave by the
    /// other, on one core: the mean of the middle half of so many turns. 0 frames: none comes. The
    /// frames are, by turns, those of so many buffers: few are in the caches, many are not. Rings
    /// are not to have a pace, or frames stay in them.
    base::expected<base::Time> turn_time(std::uint32_t frames, std::uint32_t turns,
                                         std::uint32_t among);

  private:
    struct Set;
    Trials();
    std::unique_ptr<Set> set_;
};

}  // namespace daqloom::softswitch::io
