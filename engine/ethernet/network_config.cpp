#include "ethernet/network_config.hpp"

#include <fmt/format.h>

namespace daqloom::ethernet {

namespace {

base::expected<void> check_switch(const SwitchConfig& config, std::uint32_t ports,
                                  base::Bytes frame) {
    const bool counts = config.buffer >= 0 && config.dedicated >= 0 && config.port_limit >= 0 &&
                        config.cell_size >= 0 && config.cell_metadata >= 0 &&
                        config.ecn_threshold >= 0;
    if (!counts || config.dedicated > config.buffer || !(config.alpha > 0)) {
        return base::failure(
            std::string("a switch divides its buffer into parts of zero bytes or more, by an alpha "
                        "above zero"));
    }
    if (config.model != BufferModel::shared_memory) {
        return {};
    }
    if (config.dedicated_ports != 0 && config.dedicated_ports < ports) {
        return base::failure(fmt::format(
            "dedicated memory is spread over {} ports, but {} are wired; expected as many at least",
            config.dedicated_ports, ports));
    }
    if (!SwitchBuffer(config, ports).fits(0, frame)) {
        return base::failure(
            std::string("shared memory holds, of one port, at least one full frame"));
    }
    return {};
}

}  // namespace

base::expected<void> validate(const NetworkConfig& config, base::Bytes frame) {
    const network::Graph& graph = config;
    if (auto fine = network::validate(graph); !fine) {
        return fine;
    }
    const std::size_t links = 2 * config.cables.size();
    if (config.switches.size() != graph.switches() ||
        (!config.rate_limits.empty() && config.rate_limits.size() != links) ||
        (!config.link_names.empty() && config.link_names.size() != links)) {
        return base::failure(fmt::format(
            "{} switches with settings, {} rate limits and {} names of links; expected {} "
            "switches, and {} of the others or none",
            config.switches.size(), config.rate_limits.size(), config.link_names.size(),
            graph.switches(), links));
    }
    for (std::uint32_t i = 0; i < graph.switches(); ++i) {
        if (auto fine = check_switch(config.switches[i], config.switch_ports[i], frame); !fine) {
            return fine;
        }
    }
    for (const base::BitRate limit : config.rate_limits) {
        if (limit.bps != 0 && (limit.bps < 1'000'000 || limit.bps > 1'000'000'000'000'000)) {
            return base::failure(
                fmt::format("a rate limit of {} b/s; expected 1 Mb/s to 1 Pb/s", limit.bps));
        }
    }
    for (const LossConfig& loss : config.losses) {
        if (!(loss.probability >= 0 && loss.probability <= 1) || loss.link.value() >= links) {
            return base::failure(fmt::format(
                "a loss of {} on link {}; expected a probability, 0 to 1, and one of {} links",
                loss.probability, loss.link.value(), links));
        }
    }
    return {};
}

}  // namespace daqloom::ethernet
