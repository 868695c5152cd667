#include "softswitch/io/dpdk_switch.hpp"

#include <rte_mempool.h>

#include <chrono>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "softswitch/io/dpdk_eal.hpp"

namespace daqloom::softswitch::io {

using base::Time;

struct Switch::Running {
    std::mutex alive;  ///< held while the loop is spoken to, and to end it
    PollLoop* loop = nullptr;
    Forwarder* forwarder = nullptr;
    Devices* devices = nullptr;
    std::thread thread;

    /// The whole life of the switch; `started` is told when its loop turns, or why it does not.
    void live(const SwitchConfig& config, std::promise<base::expected<void>>& started) {
        auto eal = Eal::start(config.eal);
        if (!eal) {
            return started.set_value(base::failure(eal.error().message));
        }
        auto opened = Devices::open(config.devices);
        if (!opened) {
            return started.set_value(base::failure(opened.error().message));
        }
        auto made = Forwarder::make(config.forwarder);
        if (!made) {
            return started.set_value(base::failure(made.error().message));
        }
        PollLoop turning(*made, *opened);
        loop = &turning;
        forwarder = &*made;
        devices = &*opened;
        turning.set_open(false);
        started.set_value({});
        turning.run(config.longest_sleep);
    }
    /// Does this between two turns; not, if it has stopped.
    void between(const std::function<void()>& what) {
        const std::lock_guard lock(alive);
        if (loop != nullptr) {
            loop->do_between(what);
        }
    }
    SwitchState state() const {
        SwitchState state;
        state.at = loop->now();
        state.loop = loop->counters();
        for (std::size_t port = 0; port < devices->size(); ++port) {
            state.ports.push_back({devices->counters(port), forwarder->counters(PortIndex(port))});
        }
        const OutputQueues& queues = forwarder->queues();
        for (RingIndex ring{}; ring.value() < queues.rings(); ++ring) {
            state.rings.push_back({queues.counters(ring), queues.held_packets(ring),
                                   queues.held_bytes(ring), queues.waits(ring)});
        }
        state.addresses = forwarder->addresses().counters();
        state.known_addresses = forwarder->addresses().size();
        state.rules = forwarder->rules().size();
        state.ring_memory = static_cast<base::Bytes>(queues.memory().touched());
        state.free_buffers = rte_mempool_avail_count(devices->buffers());
        return state;
    }
};

Switch::Switch() : running_(std::make_unique<Running>()) {}
Switch::~Switch() { stop(); }

base::expected<std::unique_ptr<Switch>> Switch::start(const SwitchConfig& config) {
    std::unique_ptr<Switch> made(new Switch);
    std::promise<base::expected<void>> started;
    auto told = started.get_future();
    Running& running = *made->running_;
    running.thread = std::thread([&running, config, started = std::move(started)]() mutable {
        running.live(config, started);
    });
    const base::expected<void> result = told.get();
    if (!result) {
        running.thread.join();
        return base::failure(result.error().message);
    }
    return made;
}

void Switch::change(const std::function<void(Forwarder&)>& what) {
    running_->between([&] { what(*running_->forwarder); });
}

void Switch::open() {
    running_->between([this] { running_->loop->set_open(true); });
}

SwitchState Switch::state() {
    SwitchState state;
    running_->between([&] { state = running_->state(); });
    return state;
}

bool Switch::drain(Time timeout) {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout.ps / 1000);
    running_->between([this] { running_->loop->set_open(false); });
    while (true) {
        bool is_empty = true;
        running_->between([&] {
            is_empty = running_->forwarder->queues().held() == 0 && running_->loop->waiting() == 0;
        });
        if (is_empty || std::chrono::steady_clock::now() > until) {
            return is_empty;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void Switch::stop() {
    const std::lock_guard lock(running_->alive);
    if (running_->loop != nullptr) {
        running_->loop->stop();
        running_->thread.join();
        running_->loop = nullptr;
    }
}

}  // namespace daqloom::softswitch::io
