// Frames from devices of DPDK into the switch, and out of it, in turns: one core does it all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "softswitch/forwarder.hpp"
#include "softswitch/io/dpdk_ports.hpp"

namespace daqloom::softswitch::io {

struct LoopCounters {
    DAQLOOM_FIELDS(LoopCounters, (std::uint64_t, turns, "Turns over all ports."),
                   (std::uint64_t, idle_turns, "Turns in which nothing came or left."),
                   (std::uint64_t, received, "Frames taken from devices."),
                   (std::uint64_t, sent, "Frames given to devices."),
                   (std::uint64_t, pauses, "Pause frames sent, those that end a pause included."))
};

class PollLoop {
  public:
    static constexpr std::size_t kBatch = 32;

    /// Both outlive it, and belong to the thread of `turn`.
    PollLoop(Forwarder& forwarder, Devices& devices);
    ~PollLoop();
    PollLoop(const PollLoop&) = delete;
    PollLoop& operator=(const PollLoop&) = delete;

    /// Looks at all ports once. True: something came or left.
    bool turn();
    /// Turns until `stop`, from any thread; sleeps for at most so long while nothing comes and
    /// nothing is due. Zero: never.
    void run(base::Time longest_sleep);
    void stop() { stops_.store(true, std::memory_order_relaxed); }

    /// From any thread: does this between two turns, and returns when it is done. While `run` runs.
    void do_between(const std::function<void()>& what);

    /// Whether frames are taken from devices, as they are at first. From the thread of `turn`.
    void set_open(bool is_open) { is_open_ = is_open; }

    [[nodiscard]] const LoopCounters& counters() const { return counters_; }
    /// Frames that the switch does not hold, but no device has taken yet.
    [[nodiscard]] std::size_t waiting() const;
    [[nodiscard]] base::Time now() const;

    // ---- called by the forwarder
    void drop(std::uint64_t handle);
    std::uint64_t copy(std::uint64_t handle);
    /// Tells the other end of a port's link, by pause frames (IEEE 802.3, annex 31B), of which one
    /// holds for 3.4 ms at 10 Gb/s and is sent again every millisecond.
    void pause(PortIndex port, bool on);
    /// Only where nobody else holds the frame, and it can say so.
    void mark(std::uint64_t handle);

  private:
    /// What a port has been given to send, and has not taken.
    struct Sending {
        std::array<std::uint64_t, kBatch> handles;
        std::size_t count = 0;
    };

    std::size_t receive(std::size_t port, base::Time now);
    void look_at_pauses(base::Time now);
    void send_pause(std::size_t port, bool on);
    std::size_t send(std::size_t port, base::Time now);
    void sleep(base::Time longest) const;
    void do_what_is_asked();

    Forwarder& forwarder_;
    Devices& devices_;
    /// Of a turn; here, so that it is not cleared in each.
    std::array<Arrived, kBatch> batch_{};
    std::vector<Sending> sending_;
    bool is_open_ = true;
    LoopCounters counters_;
    base::Time pauses_seen_;
    double ps_per_cycle_;
    std::uint64_t begin_;  ///< cycles
    std::atomic<bool> stops_ = false;

    std::atomic<bool> is_asked_ = false;
    std::mutex asking_;
    const std::function<void()>* asked_ = nullptr;
};

}  // namespace daqloom::softswitch::io
