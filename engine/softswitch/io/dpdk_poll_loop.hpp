// Frames from devices of DPDK into the switch, and out of it, in turns of a core. One core does it
// all, or each of several has its share of the ports (see Share) and of their receive queues, and
// tells others what is theirs.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "softswitch/forwarder.hpp"
#include "softswitch/io/dpdk_exchange.hpp"
#include "softswitch/io/dpdk_ports.hpp"

namespace daqloom::softswitch::io {

struct LoopCounters {
    DAQLOOM_FIELDS(LoopCounters, (std::uint64_t, turns, "Turns over all ports."),
                   (std::uint64_t, idle_turns, "Turns in which nothing came or left."),
                   (std::uint64_t, received, "Frames taken from devices."),
                   (std::uint64_t, sent, "Frames given to devices."),
                   (std::uint64_t, pauses, "Pause frames sent, those that end a pause included."),
                   (std::uint64_t, behind,
                    "Frames dropped, as the core of their port was behind with those of others."))
};

class PollLoop {
  public:
    static constexpr std::size_t kBatch = 32;

    /// These outlive it, and the forwarder belongs to the thread of `turn`. `exchange`: with other
    /// cores; it may be null if there are none.
    PollLoop(Forwarder& forwarder, Devices& devices, Exchange* exchange = nullptr);
    ~PollLoop();
    PollLoop(const PollLoop&) = delete;
    PollLoop& operator=(const PollLoop&) = delete;

    /// Looks at all ports once. True: something came or left.
    bool turn();
    /// Turns until `stop`, from any thread; sleeps for at most so long while nothing comes and
    /// nothing is due. Zero: never.
    void run(base::Time longest_sleep);
    void stop() {
        stops_.store(true, std::memory_order_relaxed);
        wake();
    }

    /// From any thread: does this between two turns, and returns when it is done. While `run` runs,
    /// which does not sleep on it.
    void do_between(const std::function<void()>& what);

    /// Whether frames are taken from devices, as they are at first. From the thread of `turn`.
    void set_open(bool is_open) { is_open_ = is_open; }

    [[nodiscard]] const LoopCounters& counters() const { return counters_; }
    /// Frames that the switch does not hold, but no device has taken yet; also those that this core
    /// has not heard of yet.
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
    void tell(std::uint32_t core, const Message& message);

  private:
    /// What a port has been given to send, and has not taken.
    struct Sending {
        std::array<std::uint64_t, kBatch> handles;
        std::size_t count = 0;
    };

    /// A receive queue of a port.
    struct Input {
        std::uint16_t port = 0;
        std::uint16_t queue = 0;
    };
    /// What another core is to be told next.
    struct Telling {
        std::array<Message, kBatch> messages;
        std::size_t count = 0;
    };

    std::size_t receive(Input input, base::Time now);
    void send_told(std::uint32_t core);
    std::size_t hear(base::Time now);
    void look_at_pauses(base::Time now);
    void send_pause(std::size_t port, bool on);
    std::size_t send(std::size_t port, base::Time now);
    void sleep(base::Time longest);
    void wake();
    void do_what_is_asked();

    Forwarder& forwarder_;
    Devices& devices_;
    /// Of a turn; here, so that it is not cleared in each.
    std::array<Arrived, kBatch> batch_{};
    Exchange* exchange_;
    std::vector<Input> inputs_;           ///< of this core
    std::vector<std::uint16_t> outputs_;  ///< ports of this core
    std::vector<Sending> sending_;
    std::vector<Telling> telling_;       ///< for each core
    std::vector<std::uint32_t> others_;  ///< cores
    bool is_open_ = true;
    LoopCounters counters_;
    base::Time pauses_seen_;
    double ps_per_cycle_;
    std::uint64_t begin_;  ///< cycles
    std::atomic<bool> stops_ = false;

    std::mutex sleeping_;
    std::condition_variable awake_;

    std::atomic<bool> is_asked_ = false;
    std::mutex asking_;
    const std::function<void()>* asked_ = nullptr;
};

}  // namespace daqloom::softswitch::io
