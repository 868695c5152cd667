#include "ethernet/network_config.hpp"

#include <fmt/format.h>

namespace daqloom::ethernet {

namespace {

/// Whether a rate is from 1 Mb/s to 1 Pb/s.
bool is_possible(base::BitRate rate) {
    return rate.bps >= 1'000'000 && rate.bps <= 1'000'000'000'000'000;
}

base::expected<void> check_software(const SwitchConfig& config) {
    const SoftwareSwitchConfig& how = config.software;
    DAQLOOM_REFUSE_IF(config.schedule.scheduling == Scheduling::weighted,
                      "a software switch serves classes by weight; expected fifo or strict");
    constexpr std::uint32_t most = std::uint32_t{1} << 24;
    DAQLOOM_REFUSE_IF(how.ring_packets < 1 || how.ring_packets > most || how.cores < 1 ||
                          how.cores > 1024 || how.descriptors < 1 || how.descriptors > most,
                      "a software switch has {} packets a ring, {} cores and {} descriptors; "
                      "expected 1 to {} packets and descriptors, and 1 to 1024 cores",
                      how.ring_packets, how.cores, how.descriptors, most);
    DAQLOOM_REFUSE_IF(
        how.pause_at > most || (how.pause_at > 0 && how.cores > 1),
        "a software switch pauses above {} packets, with {} cores; expected 0 to {} packets, "
        "and 0 with several cores",
        how.pause_at, how.cores, most);
    DAQLOOM_REFUSE_IF(how.packet_cost < base::Time::zero() || how.batch_cost < base::Time::zero() ||
                          how.packet_cost > base::seconds(1) || how.batch_cost > base::seconds(1),
                      "a software switch takes 0 s to 1 s for a packet, and for a batch");
    for (const base::BitRate rate : {how.pace, how.memory_bandwidth}) {
        DAQLOOM_REFUSE_IF(rate.bps != 0 && !is_possible(rate),
                          "a software switch with a rate of {} b/s; expected 1 Mb/s to 1 Pb/s, "
                          "or 0: no limit",
                          rate.bps);
    }
    return {};
}

base::expected<void> check_switch(const SwitchConfig& config, std::uint32_t ports,
                                  base::Bytes frame) {
    const bool counts = config.buffer >= 0 && config.dedicated >= 0 && config.port_limit >= 0 &&
                        config.cell_size >= 0 && config.cell_metadata >= 0 &&
                        config.ecn_threshold >= 0;
    DAQLOOM_REFUSE_IF(!counts || config.dedicated > config.buffer || !(config.alpha > 0),
                      "a switch divides its buffer into parts of zero bytes or more, by an alpha "
                      "above zero");
    DAQLOOM_CHECK(validate(config.schedule));
    if (config.model == BufferModel::software) {
        return check_software(config);
    }
    if (config.model != BufferModel::shared_memory) {
        return {};
    }
    DAQLOOM_REFUSE_IF(
        config.dedicated_ports != 0 && config.dedicated_ports < ports,
        "dedicated memory is spread over {} ports, but {} are wired; expected as many at least",
        config.dedicated_ports, ports);
    DAQLOOM_REFUSE_IF(!SwitchBuffer(config, ports).fits(0, frame),
                      "shared memory holds, of one port, at least one full frame");
    return {};
}

base::expected<void> check_change(const LinkChange& change, const NetworkConfig& config) {
    const std::size_t links = 2 * config.cables.size();
    DAQLOOM_REFUSE_IF(change.link.value() >= links || change.at < base::Time::zero() ||
                          change.traffic_class.value() >= kTrafficClasses,
                      "a change of link {} at {} s, of class {}; expected one of {} links, a time "
                      "of the run and a class, 0 to {}",
                      change.link.value(), change.at.seconds(), change.traffic_class.value(), links,
                      kTrafficClasses - 1);
    const bool has_rate = change.what == LinkChange::What::rate ||
                          (change.what == LinkChange::What::pace && change.rate.bps != 0);
    DAQLOOM_REFUSE_IF(has_rate && !is_possible(change.rate),
                      "a link's rate changes to {} b/s; expected 1 Mb/s to 1 Pb/s",
                      change.rate.bps);
    DAQLOOM_REFUSE_IF(!(change.bit_errors >= 0 && change.bit_errors <= 1),
                      "a share of bits with errors of {}; expected 0 to 1", change.bit_errors);
    const network::Cable& cable = config.cables[change.link.value() / 2];
    const network::End from = change.link.value() % 2 == 0 ? cable.a : cable.b;
    DAQLOOM_REFUSE_IF(
        change.drops && (change.what != LinkChange::What::down || config.is_host(from.node)),
        "link {} is to drop waiting frames; expected a link from a switch, in a change to down",
        change.link.value());
    return {};
}

}  // namespace

base::expected<void> validate(const Schedule& schedule) {
    const std::uint32_t most = *std::ranges::max_element(schedule.weights);
    DAQLOOM_REFUSE_IF(schedule.scheduling != Scheduling::weighted && most > 0,
                      "weights of classes, which are not scheduled by weight; expected none");
    DAQLOOM_REFUSE_IF(
        schedule.scheduling == Scheduling::weighted && (most == 0 || most > kMostWeight),
        "the greatest weight of a class is {}; expected 1 to {}, and 0 of a class with strict "
        "priority",
        most, kMostWeight);
    return {};
}

base::expected<void> validate(const NetworkConfig& config, base::Bytes frame) {
    const network::Graph& graph = config;
    DAQLOOM_CHECK(network::validate(graph));
    const std::size_t links = 2 * config.cables.size();
    DAQLOOM_REFUSE_IF(config.switches.size() != graph.switches() ||
                          (!config.link_names.empty() && config.link_names.size() != links),
                      "{} switches with settings and {} names of links; expected {} switches, "
                      "and {} names or none",
                      config.switches.size(), config.link_names.size(), graph.switches(), links);
    constexpr base::Bytes most = 1 << 30;
    DAQLOOM_REFUSE_IF(
        (!config.buckets.empty() && config.buckets.size() != config.cables.size()) ||
            std::ranges::any_of(config.buckets,
                                [](auto bucket) { return bucket < 0 || bucket > most; }),
        "{} buckets of shapers, of {} cables; expected one each or none, of 0 to {} B",
        config.buckets.size(), config.cables.size(), most);
    for (std::uint32_t i = 0; i < graph.switches(); ++i) {
        DAQLOOM_CHECK(check_switch(config.switches[i], config.switch_ports[i], frame));
        for (const NodeIndex host : config.switches[i].software.destinations) {
            DAQLOOM_REFUSE_IF(host.value() >= graph.hosts,
                              "a ring for host {} in a software switch; expected one of {} hosts",
                              host.value(), graph.hosts);
        }
    }
    DAQLOOM_CHECK(validate(config.host_schedule));
    DAQLOOM_REFUSE_IF(config.classes() > kTrafficClasses,
                      "a service level has class {}; expected 0 to {}", config.classes() - 1,
                      kTrafficClasses - 1);
    for (const network::Rerouting& rerouting : config.reroutings) {
        DAQLOOM_CHECK(network::validate(graph, rerouting));
    }
    DAQLOOM_REFUSE_IF(!(config.host_jitter >= 0 && config.host_jitter <= 1000),
                      "a jitter of hosts of {} frames; expected 0 to 1000", config.host_jitter);
    for (const LinkChange& change : config.changes) {
        DAQLOOM_CHECK(check_change(change, config));
    }
    for (const LossConfig& loss : config.losses) {
        DAQLOOM_REFUSE_IF(
            !(loss.probability >= 0 && loss.probability <= 1) || loss.link.value() >= links,
            "a loss of {} on link {}; expected a probability, 0 to 1, and one of {} links",
            loss.probability, loss.link.value(), links);
    }
    return {};
}

}  // namespace daqloom::ethernet
