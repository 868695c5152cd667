// For tests: a network that runs until no event is left; its hosts only record what arrives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/expected_test.hpp"
#include "base/random.hpp"
#include "ethernet/network.hpp"

namespace daqloom::ethernet {

using base::Bytes;
using base::gigabits_per_second;
using base::microseconds;
using base::Time;

/// Payload that makes a frame of 1000 B, which takes 816 ns at 10 Gb/s.
inline constexpr Bytes kFrame = 1000;
inline constexpr Time kFrameTime{816'000};
/// The first switch, in most tests the only one.
inline constexpr SwitchIndex kSwitch{0};

inline constexpr LinkConfig kTen{gigabits_per_second(10), Time::zero()};
inline constexpr LinkConfig kFast{gigabits_per_second(100), Time::zero()};
inline constexpr Schedule kStrict{Scheduling::strict, {}};

inline SwitchConfig with(const Schedule& schedule) {
    SwitchConfig config;
    config.schedule = schedule;
    return config;
}

struct Sent {
    std::uint64_t to_host = 0;
    EndpointIndex to = {};
    Bytes bytes = kFrame;
    std::uint8_t flags = 0;
    std::uint32_t sack = kNoSack;
    std::uint32_t seq = 0;
    std::uint64_t traffic_class = 0;
};

class Driver {
  public:
    struct Arrival {
        Time at;
        LinkIndex link;
        Frame frame;
    };

    void send(LinkIndex link, const Sent& sent, Time at = {}) {
        Frame& frame = network.append(link, TrafficClass(sent.traffic_class), sent.bytes, at);
        frame.seq = sent.seq;
        frame.ack = 0;
        frame.to = sent.to;
        frame.sack = sent.sack;
        frame.payload = static_cast<std::uint16_t>(sent.bytes - 70);
        frame.bytes = static_cast<std::uint16_t>(sent.bytes);
        frame.send_to(address_of(NodeIndex(sent.to_host), TrafficClass(sent.traffic_class)),
                      sent.flags);
    }
    void send_later(LinkIndex link, const Sent& sent, Time at) {
        planned_.push_back({link, sent});
        events.push({at, kPlanned, static_cast<std::uint32_t>(planned_.size() - 1)});
    }

    /// Schedules a change of a link that was built as one that changes.
    void change_later(const LinkChange& change) {
        changes_.push_back(change);
        events.push({change.at, kChange, static_cast<std::uint32_t>(changes_.size() - 1)});
    }

    /// A frame of random size and traffic class to a host; a fifth of the frames have SACK blocks.
    [[nodiscard]] Sent draw_frame(base::RandomStream& random, std::uint64_t to_host) {
        return {.to_host = to_host,
                .bytes = static_cast<Bytes>(71 + random.uniform_int(1448)),
                .sack = random.uniform() < 0.2 ? network.sacks().put({}) : kNoSack,
                .traffic_class = random.uniform_int(kTrafficClasses)};
    }

    void run(Time until = Time::never()) {
        while (!events.empty() && events.next_time() <= until) {
            step();
        }
    }
    void step() {
        const sim::Event event = events.pop();
        now = event.at;
        if (event.kind == kDelivery) {
            const LinkIndex link(event.index);
            network.on_delivery(link, now, Hosts{*this, link});
        } else if (event.kind == kPortFree) {
            network.on_port_free(LinkIndex(event.index), now);
        } else if (event.kind == kChange) {
            network.apply(changes_[event.index]);
        } else {
            send(planned_[event.index].first, planned_[event.index].second, now);
        }
    }

    sim::EventQueue events;
    Network network{events};
    Time now;
    std::vector<Arrival> arrivals;

  private:
    struct Hosts {
        Driver& driver;
        LinkIndex link;

        void receive(const Frame& frame) const {
            driver.arrivals.push_back({driver.now, link, frame});
            if (frame.sack != kNoSack) {
                driver.network.sacks().release(frame.sack);
            }
        }
        void expect(const Frame& /*frame*/) const {}
    };

    static constexpr std::uint32_t kPlanned = kFirstHostEvent;
    static constexpr std::uint32_t kChange = kFirstHostEvent + 1;
    std::vector<std::pair<LinkIndex, Sent>> planned_;
    std::vector<LinkChange> changes_;
};

/// Hosts around one switch: host h sends on link 2h and receives on link 2h + 1.
class Star : public Driver {
  public:
    Star(std::uint16_t hosts, const SwitchConfig& config, const LinkConfig& up = kTen,
         const LinkConfig& down = kTen) {
        network.add_switch(config, hosts);
        for (std::uint16_t host = 0; host < hosts; ++host) {
            network.add_link(up, {.to_switch = kSwitch, .to_port = host}, "up");
            const LinkIndex link =
                network.add_link(down, {.from_switch = kSwitch, .from_port = host}, "down");
            network.route(kSwitch, NodeIndex(host), std::span(&link, 1));
        }
        network.start_software_switches();
    }
    ~Star() {
        EXPECT_EQ(base::message_of(network.check_conservation()), "");
        EXPECT_EQ(network.sacks().in_use(), 0U);
    }
    Star(const Star&) = delete;
    Star& operator=(const Star&) = delete;

    /// Frames from a host at one time, numbered from 0.
    void burst(std::uint32_t frames, std::uint32_t from, Sent sent, Time at = {}) {
        for (std::uint32_t i = 0; i < frames; ++i) {
            sent.seq = i;
            send(up(from), sent, at);
        }
    }
    /// A frame from each of the hosts, at one time.
    void from_each(std::uint32_t first, std::uint32_t last, Sent sent) {
        for (std::uint32_t host = first; host <= last; ++host) {
            send(up(host), sent, Time::zero());
        }
    }
    /// Times of the arrivals at a host.
    [[nodiscard]] std::vector<Time> arrivals_at(std::uint32_t host) const {
        std::vector<Time> times;
        for (const Arrival& arrival : arrivals) {
            if (arrival.link == down(host)) {
                times.push_back(arrival.at);
            }
        }
        return times;
    }

    [[nodiscard]] std::vector<Time> arrivals_of(TrafficClass traffic_class) const {
        std::vector<Time> times;
        for (const Arrival& arrival : arrivals) {
            if (arrival.frame.traffic_class() == traffic_class) {
                times.push_back(arrival.at);
            }
        }
        return times;
    }
    /// Numbers of the frames, in the order of their arrival.
    [[nodiscard]] std::vector<std::uint32_t> order() const {
        std::vector<std::uint32_t> numbers;
        for (const Arrival& arrival : arrivals) {
            numbers.push_back(arrival.frame.seq);
        }
        return numbers;
    }
    /// Number of frames for each endpoint, among all that arrived or the `first` of them.
    [[nodiscard]] std::map<EndpointIndex, int> shares(std::size_t first = SIZE_MAX) const {
        std::map<EndpointIndex, int> frames;
        for (std::size_t i = 0; i < std::min(first, arrivals.size()); ++i) {
            ++frames[arrivals[i].frame.to];
        }
        return frames;
    }
    /// Expects marks on all frames from this one on, and on none before.
    void expect_marks_from(std::size_t first) const {
        for (std::size_t i = 0; i < arrivals.size(); ++i) {
            EXPECT_EQ(arrivals[i].frame.has(kCongestionExperienced), i >= first) << i;
        }
        EXPECT_EQ(network.marks(), arrivals.size() - first);
    }

    [[nodiscard]] static LinkIndex up(std::uint32_t host) { return LinkIndex(2 * host); }
    [[nodiscard]] static LinkIndex down(std::uint32_t host) { return LinkIndex(2 * host + 1); }
};

inline SwitchConfig voq(Bytes buffer, Bytes queue_limit = 0) {
    SwitchConfig config;
    config.model = BufferModel::voq;
    config.buffer = buffer;
    config.port_limit = queue_limit;
    return config;
}

inline SwitchConfig drop_tail(std::uint32_t packets) {
    SwitchConfig config;
    config.model = BufferModel::drop_tail;
    config.queue_packets = packets;
    return config;
}

}  // namespace daqloom::ethernet
