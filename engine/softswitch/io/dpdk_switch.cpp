#include "softswitch/io/dpdk_switch.hpp"

#include <fmt/format.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/fields.hpp"
#include "softswitch/io/dpdk_eal.hpp"
#include "softswitch/io/dpdk_exchange.hpp"

namespace daqloom::softswitch::io {

using base::Time;

/// A core of the switch.
struct Worker {
    Worker(Forwarder forwarding, Devices& devices, Exchange& exchange)
        : forwarder(std::move(forwarding)), loop(forwarder, devices, &exchange) {
        loop.set_open(false);
    }

    Forwarder forwarder;
    PollLoop loop;
    Time longest_sleep;
};
using Workers = std::vector<std::unique_ptr<Worker>>;

namespace {

int turn(void* worker) {
    auto& self = *static_cast<Worker*>(worker);
    self.loop.run(self.longest_sleep);
    return 0;
}

base::expected<Workers> workers_of(const SwitchConfig& config, Devices& devices,
                                   Exchange& exchange) {
    Workers workers;
    for (std::uint32_t core = 0; core < config.cores; ++core) {
        ForwarderConfig its = config.forwarder;
        its.share = {.number = core, .cores = config.cores};
        DAQLOOM_TRY(forwarder, Forwarder::make(its));
        workers.push_back(std::make_unique<Worker>(std::move(forwarder), devices, exchange));
        workers.back()->longest_sleep = config.longest_sleep;
    }
    return workers;
}

}  // namespace

struct Switch::Running {
    std::mutex alive;  ///< held for access to the cores, and to end them
    Workers workers;   ///< empty after the stop
    Devices* devices = nullptr;
    std::thread thread;

    /// Body of the main thread. `started` is set when the cores run, or to the error of the start.
    void live(const SwitchConfig& config, std::promise<base::expected<void>>& started) {
        auto eal = Eal::start(config.eal);
        if (!eal) {
            return started.set_value(base::failure(eal.error().message));
        }
        if (rte_lcore_count() < config.cores) {
            return started.set_value(base::failure(
                fmt::format("DPDK has {} cores; expected {}, each of which this process may use",
                            rte_lcore_count(), config.cores)));
        }
        auto opened = Devices::open(config.devices);
        if (!opened) {
            return started.set_value(base::failure(opened.error().message));
        }
        auto exchange = Exchange::make(config.cores);
        if (!exchange) {
            return started.set_value(base::failure(exchange.error().message));
        }
        auto made = workers_of(config, *opened, *exchange);
        if (!made) {
            return started.set_value(base::failure(made.error().message));
        }
        workers = std::move(*made);
        devices = &*opened;
        unsigned lcore = rte_get_main_lcore();
        for (std::size_t core = 1; core < workers.size(); ++core) {
            lcore = rte_get_next_lcore(lcore, 1, 1);
            rte_eal_remote_launch(turn, workers[core].get(), lcore);
        }
        started.set_value({});
        turn(workers.front().get());
        rte_eal_mp_wait_lcore();
        workers.clear();  // before the devices, whose buffers they hold
    }
    /// Calls `what` for each core, between two of the core's turns; a stopped switch has no cores.
    void between(const std::function<void(Worker&)>& what) {
        const std::lock_guard lock(alive);
        for (const std::unique_ptr<Worker>& worker : workers) {
            worker->loop.do_between([&] { what(*worker); });
        }
    }
    /// Adds the state and counters of a core.
    void add(const Worker& worker, SwitchState& state) const {
        const Forwarder& forwarder = worker.forwarder;
        if (state.ports.empty()) {  // first core
            state.ports.resize(devices->size());
            state.rings.resize(forwarder.queues().rings());
            for (std::size_t port = 0; port < devices->size(); ++port) {
                state.ports[port].device = devices->counters(port);
            }
            state.at = worker.loop.now();
            state.rules = forwarder.rules().size();
            state.free_buffers = rte_mempool_avail_count(devices->buffers());
        }
        state.loop = base::together(state.loop, worker.loop.counters());
        for (std::size_t port = 0; port < devices->size(); ++port) {
            PortCounters& counted = state.ports[port].frames;
            counted = base::together(counted, forwarder.counters(PortIndex(port)));
            state.ports[port].addresses = std::max(
                state.ports[port].addresses, forwarder.addresses().learned_at(PortIndex(port)));
        }
        const OutputQueues& queues = forwarder.queues();
        for (RingIndex ring{}; ring.value() < queues.rings(); ++ring) {
            if (forwarder.share().core_of(forwarder.port_of(ring)) == forwarder.share().number) {
                state.rings[ring.value()] = {queues.counters(ring), queues.held_packets(ring),
                                             queues.held_bytes(ring), queues.waits(ring)};
            }
        }
        state.addresses = base::together(state.addresses, forwarder.addresses().counters());
        state.known_addresses = std::max(state.known_addresses, forwarder.addresses().size());
        state.shared_peak += queues.shared_peak_bytes();
        state.ring_memory += static_cast<base::Bytes>(queues.memory().touched());
    }
};

Switch::Switch() : running_(std::make_unique<Running>()) {}
Switch::~Switch() { stop(); }

base::expected<std::unique_ptr<Switch>> Switch::start(const SwitchConfig& config) {
    std::unique_ptr<Switch> made(new Switch);
    std::promise<base::expected<void>> started;
    auto outcome = started.get_future();
    Running& running = *made->running_;
    running.thread = std::thread([&running, config, started = std::move(started)]() mutable {
        running.live(config, started);
    });
    const base::expected<void> result = outcome.get();
    if (!result) {
        running.thread.join();
        return base::failure(result.error().message);
    }
    return made;
}

void Switch::change(const std::function<void(Forwarder&)>& what) {
    running_->between([&](Worker& worker) { what(worker.forwarder); });
}

void Switch::open() {
    running_->between([](Worker& worker) { worker.loop.set_open(true); });
}

SwitchState Switch::state() {
    SwitchState state;
    running_->between([&](const Worker& worker) { running_->add(worker, state); });
    return state;
}

std::vector<bool> Switch::links() {
    const std::lock_guard lock(running_->alive);
    std::vector<bool> found;
    for (std::size_t port = 0; !running_->workers.empty() && port < running_->devices->size();
         ++port) {
        found.push_back(running_->devices->is_up(port));
    }
    return found;
}

bool Switch::drain(Time timeout) {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout.ps / 1000);
    running_->between([](Worker& worker) { worker.loop.set_open(false); });
    while (true) {
        // No core receives, so messages in transit can only decrease; their receiver counts them.
        bool is_empty = true;
        running_->between([&](const Worker& worker) {
            is_empty =
                is_empty && worker.forwarder.queues().held() == 0 && worker.loop.waiting() == 0;
        });
        if (is_empty || std::chrono::steady_clock::now() > until) {
            return is_empty;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void Switch::stop() {
    const std::lock_guard lock(running_->alive);
    if (running_->thread.joinable()) {
        for (const std::unique_ptr<Worker>& worker : running_->workers) {
            worker->loop.stop();
        }
        running_->thread.join();
    }
}

}  // namespace daqloom::softswitch::io
