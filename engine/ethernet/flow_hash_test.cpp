#include "ethernet/flow_hash.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace daqloom::ethernet {
namespace {

/// The endpoint that accepted a connection; both ends of a connection get equally many frames.
constexpr EndpointIndex endpoint(std::uint32_t connection) {
    return EndpointIndex(2 * connection + 1);
}

/// Pearson's statistic for equally likely cells; its mean is the number of cells − 1.
double chi_squared(const std::vector<std::uint32_t>& counts) {
    double all = 0;
    for (const std::uint32_t count : counts) {
        all += count;
    }
    const double expected = all / static_cast<double>(counts.size());
    double sum = 0;
    for (const std::uint32_t count : counts) {
        sum += (count - expected) * (count - expected) / expected;
    }
    return sum;
}

std::vector<std::uint32_t> spread(std::uint32_t first, std::uint32_t flows, std::uint32_t seed,
                                  std::uint32_t links) {
    std::vector<std::uint32_t> counts(links);
    for (std::uint32_t i = 0; i < flows; ++i) {
        ++counts[link_of_flow(endpoint(first + i), seed, links)];
    }
    return counts;
}

/// Connections are numbered in the order of their creation, so that a host has few connections,
/// with consecutive numbers. Over w windows of such numbers, the mean statistic per degree of
/// freedom is 1 ± √(2 / w / (links − 1)), here ± 0.05 at most. A hash that spreads connections
/// better than chance also fails this test.
TEST(FlowHash, SpreadsFewConsecutiveConnectionsAsChanceDoes) {
    constexpr std::uint32_t windows = 1000;
    for (std::uint32_t links = 2; links <= 16; ++links) {
        for (const std::uint32_t flows : {8U, 12U, 16U, 20U, 32U, 48U}) {
            double sum = 0;
            for (std::uint32_t window = 0; window < windows; ++window) {
                sum += chi_squared(spread(window * flows, flows, window % 20, links));
            }
            EXPECT_NEAR(sum / windows / (links - 1), 1, 0.2) << links << " links, " << flows;
        }
    }
}

/// The mean number of flows on the fullest link, from the multinomial distribution: no link has
/// more than m flows with the probability flows! / linksᶠˡᵒʷˢ times the coefficient of xᶠˡᵒʷˢ in
/// (Σ_{k ≤ m} xᵏ / k!)ˡⁱⁿᵏˢ.
double mean_of_the_fullest(std::uint32_t flows, std::uint32_t links) {
    double mean = 0;
    for (std::uint32_t most = 0; most < flows; ++most) {
        std::vector<double> ways(flows + 1);  // of so many flows on the links so far, over their !
        ways[0] = 1;
        for (std::uint32_t link = 0; link < links; ++link) {
            std::vector<double> with(flows + 1);
            double factorial = 1;
            for (std::uint32_t k = 0; k <= most; factorial *= ++k) {
                for (std::uint32_t before = 0; before + k <= flows; ++before) {
                    with[before + k] += ways[before] / factorial;
                }
            }
            ways = with;
        }
        double chance = ways[flows];
        for (std::uint32_t i = 1; i <= flows; ++i) {
            chance *= static_cast<double>(i) / links;
        }
        mean += 1 - chance;  // that one has more
    }
    return mean;
}

TEST(FlowHash, TheFullestLinkHasAsManyFlowsAsByChance) {
    constexpr std::uint32_t windows = 2000;
    EXPECT_NEAR(mean_of_the_fullest(16, 4), 6.14, 0.01);
    for (const std::uint32_t links : {4U, 8U, 10U}) {
        for (const std::uint32_t flows : {8U, 16U, 48U}) {
            double sum = 0;
            for (std::uint32_t window = 0; window < windows; ++window) {
                const auto counts = spread(window * flows, flows, window % 20, links);
                sum += *std::ranges::max_element(counts);
            }
            EXPECT_NEAR(sum / windows, mean_of_the_fullest(flows, links), 0.15)
                << flows << " flows, " << links << " links";
        }
    }
}

/// Pearson's statistic for pairs of links: each flow takes one of `links` at two switches.
template <class First, class Second>
double chi_squared_of_pairs(std::uint32_t links, First&& first, Second&& second) {
    std::vector<std::uint32_t> counts(std::size_t{links} * links);
    for (std::uint32_t connection = 0; connection < 10'000; ++connection) {
        ++counts[first(connection) * links + second(connection)];
    }
    return chi_squared(counts) / (links * links - 1);
}

/// If choices are independent, the statistic per degree of freedom is 1 ± √(2 / 15), in 20 pairs.
TEST(FlowHash, SwitchesWithDifferentSeedsAndDirectionsOfAConnectionChooseIndependently) {
    constexpr std::uint32_t links = 4;
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        const auto link = [](std::uint32_t of) {
            return [of](std::uint32_t connection) {
                return link_of_flow(endpoint(connection), of, links);
            };
        };
        const auto back = [seed](std::uint32_t connection) {
            return link_of_flow(peer(endpoint(connection)), seed, links);
        };
        EXPECT_NEAR(chi_squared_of_pairs(links, link(seed), link(seed + 1)), 1, 1.6) << seed;
        EXPECT_NEAR(chi_squared_of_pairs(links, link(seed), back), 1, 1.6) << seed;
        EXPECT_GT(chi_squared_of_pairs(links, link(seed), link(seed)), 1000);  // polarisation
    }
}

}  // namespace
}  // namespace daqloom::ethernet
