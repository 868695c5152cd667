// The poll loop of a core: moves frames from DPDK devices into the switch and out of it, turn by
// turn. With several cores, each core owns a share of the ports (see Share) and of the receive
// queues, and sends frames for other ports to the cores that own these ports.
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
    DAQLOOM_FIELDS(
        LoopCounters, (std::uint64_t, turns, "Turns over all ports."),
        (std::uint64_t, idle_turns, "Turns without a frame received or sent."),
        (std::uint64_t, received, "Frames received from devices."),
        (std::uint64_t, sent, "Frames passed to devices."),
        (std::uint64_t, pauses, "Pause frames sent, those that end a pause included."),
        (std::uint64_t, behind,
         "Frames dropped: the core of their port was too far behind with frames from other cores."))
};

class PollLoop {
  public:
    static constexpr std::size_t kBatch = 32;

    /// The arguments must outlive the loop. Only the thread of `turn` may use the forwarder.
    /// `exchange`: exchange of messages with other cores; null for a single core.
    PollLoop(Forwarder& forwarder, Devices& devices, Exchange* exchange = nullptr);
    ~PollLoop();
    PollLoop(const PollLoop&) = delete;
    PollLoop& operator=(const PollLoop&) = delete;

    /// Polls all ports of this core once. Returns whether a frame was received or sent.
    bool turn();
    /// Takes turns until a call of `stop`, from any thread. Sleeps up to `longest_sleep` at a time
    /// while no frame arrives and no ring is due; zero: never sleeps.
    void run(base::Time longest_sleep);
    void stop() {
        stops_.store(true, std::memory_order_relaxed);
        wake();
    }

    /// Executes `what` between two turns while `run` runs. Callable from any thread; wakes `run`,
    /// and returns after `what`.
    void do_between(const std::function<void()>& what);

    /// Sets whether devices are polled for frames (at first true). Called by `turn`'s thread.
    void set_open(bool is_open) { is_open_ = is_open; }

    [[nodiscard]] const LoopCounters& counters() const { return counters_; }
    /// Frames under way from rings to devices, and messages not yet sent or received by this core.
    [[nodiscard]] std::size_t waiting() const;
    [[nodiscard]] base::Time now() const;

    // ---- called by the forwarder
    void drop(std::uint64_t handle);
    std::uint64_t copy(std::uint64_t handle);
    /// Sends a pause frame to the link partner (IEEE 802.3, annex 31B). A pause lasts 3.4 ms at 10
    /// Gb/s and is renewed every millisecond.
    void pause(PortIndex port, bool on);
    /// Marks the frame if its buffer is not shared and its IP header is ECN-capable.
    void mark(std::uint64_t handle);
    void share_with(std::uint32_t core, const Message& message);

  private:
    /// Frames of a port that its device has not taken yet.
    struct Sending {
        std::array<std::uint64_t, kBatch> handles;
        std::size_t count = 0;
    };

    /// A receive queue of a port.
    struct Input {
        std::uint16_t port = 0;
        std::uint16_t queue = 0;
    };
    /// Messages to be sent to another core.
    struct Outbox {
        std::array<Message, kBatch> messages;
        std::size_t count = 0;
    };

    std::size_t receive(Input input, base::Time now);
    void flush_outbox(std::uint32_t core);
    std::size_t receive_messages(base::Time now);
    void update_pauses(base::Time now);
    void send_pause(std::size_t port, bool on);
    std::size_t send(std::size_t port, base::Time now);
    void sleep(base::Time longest);
    void wake();
    void run_call();

    Forwarder& forwarder_;
    Devices& devices_;
    /// Scratch array for a turn, kept as a member so that it is not cleared in each turn.
    std::array<Arrival, kBatch> batch_{};
    Exchange* exchange_;
    std::vector<Input> inputs_;           ///< of this core
    std::vector<std::uint16_t> outputs_;  ///< ports of this core
    std::vector<Sending> sending_;
    std::vector<Outbox> outboxes_;       ///< for each core
    std::vector<std::uint32_t> others_;  ///< cores
    bool is_open_ = true;
    LoopCounters counters_;
    base::Time pauses_sent_;
    double ps_per_cycle_;
    std::uint64_t begin_;  ///< cycles
    std::atomic<bool> stops_ = false;

    std::mutex sleeping_;
    std::condition_variable awake_;

    std::atomic<bool> has_call_ = false;
    std::mutex calling_;
    const std::function<void()>* call_ = nullptr;
};

}  // namespace daqloom::softswitch::io
