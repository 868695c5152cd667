#include "ethernet/rack_config.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

namespace daqloom::ethernet {

using base::Bytes;
using base::Time;

namespace {

constexpr Bytes largest_message = Bytes{1} << 40;
constexpr std::uint64_t kMostHosts = 0xffff;  ///< and so ports of a switch, which have 16 bits

/// What is wrong, or nothing.
using Problem = std::optional<std::string>;

bool within(Time value, Time highest) { return value >= Time::zero() && value <= highest; }

Problem problem_of_hosts(const RackConfig& config) {
    const std::uint64_t builders = config.builders;
    const std::uint64_t uplinks = config.uplinks;
    if (config.readouts < 1 || builders < 1 || uplinks < 1 ||
        config.readouts + builders >= kMostHosts || config.readouts + uplinks >= kMostHosts ||
        builders + uplinks >= kMostHosts) {
        return "a rack has 1 to 65534 hosts, at least one of each kind, and uplinks";
    }
    if (config.request_size < 1 || config.request_size > largest_message) {
        return "a request has 1 B to 1 TiB";
    }
    if (!within(config.readout_cost_per_message, base::seconds(100)) ||
        !within(config.builder_cost_per_message, base::seconds(100))) {
        return "a message costs its host 0 to 100 s";
    }
    return {};
}

Problem problem_of_share(const RackConfig& config) {
    if (config.share.empty()) {
        return {};
    }
    bool positive = config.share.size() == config.readouts;
    double sum = 0;
    for (const double share : config.share) {
        positive = positive && share > 0;
        sum += share;
    }
    return positive && std::isfinite(sum)
               ? Problem{}
               : "shares of the event are given for each readout unit or for none, above zero";
}

Problem problem_of_link(const LinkConfig& link) {
    const auto possible = [](base::BitRate rate) {
        return rate.bps >= 1'000'000 && rate.bps <= 1'000'000'000'000'000;
    };
    const bool limit = link.rate_limit.bps == 0 || possible(link.rate_limit);
    return possible(link.rate) && limit && within(link.delay, base::seconds(100))
               ? Problem{}
               : "a link's rate is 1 Mb/s to 1 Pb/s, and its delay 0 to 100 s";
}

Problem problem_of_switch(const SwitchConfig& config) {
    const bool counts = config.buffer >= 0 && config.dedicated >= 0 && config.port_limit >= 0 &&
                        config.cell_size >= 0 && config.cell_metadata >= 0 &&
                        config.ecn_threshold >= 0;
    return counts && config.dedicated <= config.buffer && config.alpha > 0
               ? Problem{}
               : "a switch divides its buffer into parts of zero bytes or more, by an alpha above "
                 "zero";
}

/// Of a switch that has passed the above, with so many ports wired and frames of at most so much.
Problem problem_of_memory(const SwitchConfig& config, std::uint32_t ports, Bytes frame) {
    if (config.model != BufferModel::shared_memory) {
        return {};
    }
    if (config.dedicated_ports != 0 && config.dedicated_ports < ports) {
        return fmt::format(
            "dedicated memory is spread over {} ports, but {} are wired; expected as many at least",
            config.dedicated_ports, ports);
    }
    return SwitchBuffer(config, ports).fits(0, frame)
               ? Problem{}
               : "shared memory holds, of one port, at least one full frame";
}

Problem problem_of_tcp(const TcpConfig& tcp) {
    if (tcp.mss < 1 || tcp.mss + tcp.header_bytes() + kFrameOverhead > 0xffff) {
        return "a frame has at least one byte of payload and at most 65535 in all";
    }
    const bool fixed = tcp.congestion == CongestionControl::static_window;
    if (tcp.receive_window < tcp.mss || (fixed && tcp.static_window < tcp.mss) ||
        tcp.initial_window < 1 || tcp.ack_every < 1) {
        return "a window of TCP holds at least one full segment, and so much is acknowledged";
    }
    return {};
}

Problem problem_of_run(const RackConfig& config) {
    if (config.duration <= config.warmup || config.warmup < Time::zero()) {
        return "the run must be longer than its warm-up";
    }
    if (config.occupancy_bins < 1) {
        return "occupancy is recorded in one bin or more";
    }
    const LossConfig& loss = config.access_loss;
    return loss.probability >= 0 && loss.probability <= 1 ? Problem{}
                                                          : "loss is a probability, 0 to 1";
}

}  // namespace

base::expected<void> validate(const RackConfig& config) {
    for (const Problem& problem :
         {problem_of_hosts(config), problem_of_share(config), problem_of_link(config.readout_link),
          problem_of_link(config.uplink), problem_of_link(config.access_link),
          problem_of_switch(config.core), problem_of_switch(config.tor), problem_of_tcp(config.tcp),
          problem_of_run(config)}) {
        if (problem) {
            return base::failure(*problem);
        }
    }
    const Bytes frame = config.tcp.mss + config.tcp.header_bytes() + kFrameOverhead;
    for (const Problem& problem : {problem_of_memory(config.core, core_ports(config), frame),
                                   problem_of_memory(config.tor, tor_ports(config), frame)}) {
        if (problem) {
            return base::failure(*problem);
        }
    }
    return {};
}

}  // namespace daqloom::ethernet
