#include "softswitch/io/dpdk_trial.hpp"

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <ctime>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "softswitch/forwarder.hpp"
#include "softswitch/io/dpdk_eal.hpp"
#include "softswitch/io/dpdk_poll_loop.hpp"
#include "softswitch/io/dpdk_ports.hpp"

namespace daqloom::softswitch::io {

using base::Time;

namespace {

constexpr std::size_t kBatch = 32;
constexpr std::uint32_t kCheckSequence = 4;
constexpr std::uint32_t kWireOverhead = 20;        ///< preamble and gap
constexpr std::uint32_t kCollectors = 0x0a000000;  ///< 10.0.0.0

/// Headers of a UDP datagram to a destination; the payload is unused.
void write_headers(std::uint8_t* frame, std::uint32_t destination) {
    std::fill_n(frame, 42, std::uint8_t{0});
    frame[0] = frame[6] = 2;
    frame[5] = 1;
    frame[11] = 2;
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[23] = static_cast<std::uint8_t>(IpProtocol::udp);
    const std::uint32_t to = kCollectors + destination;
    for (std::size_t i = 0; i < 4; ++i) {
        frame[30 + i] = static_cast<std::uint8_t>(to >> (24 - 8 * i));
    }
}

ForwarderConfig config_of(const TrialConfig& config) {
    ForwarderConfig forwarder;
    forwarder.output.ports = 2;
    forwarder.output.rings.assign(2, {.packets = config.ring_packets});
    forwarder.output.rings[1].port = PortIndex(1);
    forwarder.output.rings.resize(
        2 + config.destinations,
        {.port = PortIndex(1), .rate = config.pace, .packets = config.ring_packets});
    return forwarder;
}

std::uint32_t buffers_of(const TrialConfig& config) {
    return 4 * config.descriptors + config.destinations * config.ring_packets + 8'192;
}

base::expected<void> check(const TrialConfig& config) {
    DAQLOOM_REFUSE_IF(
        config.destinations < 1 || config.destinations > 65'536 || config.ring_packets < 1 ||
            config.ring_packets > 1'000'000 || config.frame_bytes < 64 ||
            config.frame_bytes > 2'000 || !std::has_single_bit(config.descriptors) ||
            config.descriptors < 64 || config.descriptors > 65'536,
        "trial out of range; expected 1 to 65536 destinations, rings of 1 to 1000000 packets, "
        "frames of 64 to 2000 B, and a power of two of descriptors, 64 to 65536");
    return {};
}

Time time_of(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return base::seconds(time.tv_sec) + base::nanoseconds(time.tv_nsec);
}

/// Time in which this thread did not run. A thread that never sleeps does not run while its core is
/// used by another thread or by the host of a virtual machine.
Time time_away() { return time_of(CLOCK_MONOTONIC) - time_of(CLOCK_THREAD_CPUTIME_ID); }

/// Registers this thread with DPDK, which provides the thread with a cache of buffers.
struct OwnThread {
    OwnThread() { rte_thread_register(); }
    ~OwnThread() { rte_thread_unregister(); }
    OwnThread(const OwnThread&) = delete;
    OwnThread& operator=(const OwnThread&) = delete;
};

}  // namespace

struct Trials::Set {
    explicit Set(const TrialConfig& given) : config(given) {}

    base::expected<void> start() {
        DAQLOOM_TRY(environment, Eal::start(config.eal));
        eal.emplace(std::move(environment));
        DevicesConfig devices_config;
        for (std::size_t port = 0; port < 2; ++port) {
            for (rte_ring** wire : {&in[port], &out[port]}) {
                const std::string name =
                    fmt::format("wire{}{}", port, wire == &in[port] ? 'i' : 'o');
                *wire = rte_ring_create(name.c_str(), config.descriptors, 0,
                                        RING_F_SP_ENQ | RING_F_SC_DEQ);
            }
            if (in[port] == nullptr || out[port] == nullptr ||
                rte_eth_from_rings(fmt::format("wire{}", port).c_str(), &in[port], 1, &out[port], 1,
                                   0) < 0) {
                return base::system_failure(
                    std::string("DPDK has no memory for the wires; give it more (-m)"));
            }
            std::array<char, RTE_ETH_NAME_MAX_LEN> device{};
            rte_eth_dev_get_name_by_port(static_cast<std::uint16_t>(port), device.data());
            devices_config.names.emplace_back(device.data());
        }
        devices_config.buffers = buffers_of(config);
        DAQLOOM_TRY(opened, Devices::open(devices_config));
        devices.emplace(std::move(opened));
        DAQLOOM_TRY(made, Forwarder::make(config_of(config)));
        forwarder.emplace(std::move(made));
        for (std::uint32_t i = 0; i < config.destinations; ++i) {
            forwarder->set_rule({.to = IpAddress::v4(kCollectors + i)}, 0,
                                {.what = Action::What::queue, .ring = RingIndex(2 + i)});
        }
        loop.emplace(*forwarder, *devices);
        return {};
    }

    void fill(rte_mbuf& frame) {
        const std::uint32_t bytes = config.frame_bytes - kCheckSequence;
        frame.data_len = static_cast<std::uint16_t>(bytes);
        frame.pkt_len = bytes;
        write_headers(rte_pktmbuf_mtod(&frame, std::uint8_t*), next++ % config.destinations);
    }
    std::vector<rte_mbuf*> filled(std::uint32_t count) {
        std::vector<rte_mbuf*> frames(count);
        rte_pktmbuf_alloc_bulk(devices->buffers(), frames.data(), count);
        std::ranges::for_each(frames, [this](rte_mbuf* frame) { fill(*frame); });
        return frames;
    }

    /// Sends up to `count` frames, at most a batch; returns their number, drops included.
    std::size_t send(std::size_t count, TrialResult& result) {
        std::array<rte_mbuf*, kBatch> frames;
        count = std::min(count, frames.size());
        if (rte_pktmbuf_alloc_bulk(devices->buffers(), frames.data(),
                                   static_cast<unsigned>(count)) != 0) {
            result.missed += count;  // all buffers are in the switch
            return count;
        }
        for (std::size_t i = 0; i < count; ++i) {
            fill(*frames[i]);
        }
        const unsigned taken = rte_ring_enqueue_burst(
            in[0], reinterpret_cast<void**>(frames.data()), static_cast<unsigned>(count), nullptr);
        rte_pktmbuf_free_bulk(frames.data() + taken, static_cast<unsigned>(count) - taken);
        result.missed += count - taken;
        return count;
    }
    std::size_t receive() {
        std::array<rte_mbuf*, kBatch> frames;
        const unsigned count = rte_ring_dequeue_burst(
            out[1], reinterpret_cast<void**>(frames.data()), kBatch, nullptr);
        rte_pktmbuf_free_bulk(frames.data(), count);
        return count;
    }

    /// Alternates the pace of the rings between the trials' pace and twice their share of the load.
    void change_paces(double frames_per_second, TrialResult& result) {
        const double share =
            8.0 * (config.frame_bytes + kWireOverhead) * frames_per_second / config.destinations;
        const bool is_odd = ++result.changes % 2 == 1;
        const base::BitRate pace =
            is_odd ? base::BitRate{static_cast<std::int64_t>(2 * share)} : config.pace;
        loop->do_between([&] {
            for (std::uint32_t i = 0; i < config.destinations; ++i) {
                forwarder->queues().set_rate(RingIndex(2 + i), pace);
            }
        });
    }

    /// Runs a trial, with the switch on another core.
    TrialResult trial(double frames_per_second, Time duration, Time change_every) {
        Time switch_away;
        std::thread switches([this, &switch_away] {
            const OwnThread thread;
            const Time begin = time_away();
            loop->run(Time::zero());
            switch_away = std::max(Time::zero(), time_away() - begin);
        });
        const OwnThread thread;
        TrialResult result = send_and_receive(frames_per_second, duration, change_every);
        loop->stop();
        switches.join();
        result.away += switch_away;
        return result;
    }

    TrialResult send_and_receive(double frames_per_second, Time duration, Time change_every) {
        const double cycles = static_cast<double>(rte_get_tsc_hz());
        const double per_cycle = frames_per_second / cycles;
        TrialResult result;
        const Time away_before = time_away();
        result.intended = static_cast<std::uint64_t>(frames_per_second * duration.seconds());
        const std::uint64_t begin = rte_rdtsc();
        const auto end = begin + static_cast<std::uint64_t>(cycles * duration.seconds());
        const auto between_changes = static_cast<std::uint64_t>(cycles * change_every.seconds());
        std::uint64_t change_at = change_every > Time::zero() ? begin + between_changes : end + 1;
        std::uint64_t now = begin;
        // Late frames are sent immediately, but not after the end of the trial.
        while (result.offered < result.intended && (now = rte_rdtsc()) <= end &&
               !stops.load(std::memory_order_relaxed)) {
            const auto due = std::min(
                result.intended,
                static_cast<std::uint64_t>(static_cast<double>(now - begin) * per_cycle) + 1);
            if (due > result.offered) {
                result.offered += send(due - result.offered, result);
            }
            result.forwarded += receive();
            if (now >= change_at) [[unlikely]] {
                change_at += between_changes;
                change_paces(frames_per_second, result);
            }
        }
        result.duration = Time::from_seconds(static_cast<double>(now - begin) / cycles);
        result.away = std::max(Time::zero(), time_away() - away_before);
        bool is_empty = false;
        while (!is_empty || rte_ring_count(out[1]) > 0) {
            result.forwarded += receive();
            loop->do_between([&] {
                is_empty = rte_ring_count(in[0]) == 0 && forwarder->queues().held() == 0 &&
                           loop->waiting() == 0;
            });
        }
        return result;
    }

    Time turn_time(std::uint32_t frames, std::uint32_t turns, std::uint32_t among) {
        const OwnThread thread;
        std::vector<rte_mbuf*> buffers = filled(among);
        std::vector<std::uint64_t> cycles(turns);
        std::size_t at = 0;
        for (std::uint64_t& each : cycles) {
            at = at + frames > buffers.size() ? 0 : at;
            rte_ring_enqueue_bulk(in[0], reinterpret_cast<void**>(&buffers[at]), frames, nullptr);
            const std::uint64_t begin = rte_rdtsc_precise();
            loop->turn();
            each = rte_rdtsc_precise() - begin;
            rte_ring_dequeue_bulk(out[1], reinterpret_cast<void**>(&buffers[at]), frames, nullptr);
            at += frames;
        }
        rte_pktmbuf_free_bulk(buffers.data(), among);
        // The mean of the middle half: a clock may tick in steps longer than a cycle, and the core
        // is lost to other threads now and then.
        std::ranges::sort(cycles);
        const std::span middle = std::span(cycles).subspan(turns / 4, (turns + 1) / 2);
        return Time::from_seconds(
            static_cast<double>(std::accumulate(middle.begin(), middle.end(), std::uint64_t{0})) /
            static_cast<double>(middle.size() * rte_get_tsc_hz()));
    }

    TrialConfig config;
    std::optional<Eal> eal;
    std::array<rte_ring*, 2> in{};
    std::array<rte_ring*, 2> out{};
    std::optional<Devices> devices;
    std::optional<Forwarder> forwarder;
    std::optional<PollLoop> loop;
    std::uint32_t next = 0;
    std::atomic<bool> stops = false;
};

Trials::Trials() = default;
Trials::~Trials() = default;

base::expected<std::unique_ptr<Trials>> Trials::make(const TrialConfig& config) {
    DAQLOOM_CHECK(check(config));
    std::unique_ptr<Trials> made(new Trials);
    made->set_ = std::make_unique<Set>(config);
    // EAL binds the thread that starts it to one core.
    base::expected<void> started;
    std::thread([&] { started = made->set_->start(); }).join();
    if (!started) {
        return tl::unexpected(started.error());
    }
    return made;
}

base::expected<TrialResult> Trials::run(double frames_per_second, Time duration,
                                        Time change_every) {
    DAQLOOM_REFUSE_IF(!(frames_per_second >= 1 && frames_per_second <= 1e9) ||
                          duration <= Time::zero() || duration > base::seconds(3'600),
                      "a trial of {} frames a second for {} s; expected 1 to 1e9 "
                      "frames, and up to an hour",
                      frames_per_second, duration.seconds());
    TrialResult result;
    std::thread([&] { result = set_->trial(frames_per_second, duration, change_every); }).join();
    return result;
}

base::expected<Time> Trials::turn_time(std::uint32_t frames, std::uint32_t turns,
                                       std::uint32_t among) {
    const std::uint32_t most = buffers_of(set_->config) / 2;
    DAQLOOM_REFUSE_IF(
        frames > PollLoop::kBatch || turns < 1 || turns > 10'000'000 || among < PollLoop::kBatch ||
            among > most || set_->config.pace.bps > 0,
        "{} turns with {} of {} frames; expected up to 10000000 turns with up to {} of {} to "
        "{} frames, and rings without a pace",
        turns, frames, among, PollLoop::kBatch, PollLoop::kBatch, most);
    Time found;
    std::thread([&] { found = set_->turn_time(frames, turns, among); }).join();
    return found;
}

void Trials::stop() { set_->stops.store(true, std::memory_order_relaxed); }

}  // namespace daqloom::softswitch::io
