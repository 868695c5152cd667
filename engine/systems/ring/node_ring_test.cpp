#include "systems/ring/node_ring.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/expected_test.hpp"

namespace daqloom::systems {
namespace {

using base::Time;
using Kind = base::DelayDistribution::Kind;

constexpr std::uint32_t kAll = 0;
constexpr std::uint32_t kOne = 1;
constexpr std::uint32_t kInStep = ~0U;  ///< given as the number of writers

/// A ring with equal transfers of 0.576 ms and exponential delays.
NodeRingConfig ring(std::uint32_t nodes, double delay_us) {
    NodeRingConfig config;
    config.work.assign(nodes, {Kind::fixed, base::microseconds(576), {}});
    config.delays = {{Kind::exponential, Time::from_seconds(delay_us * 1e-6), {}}};
    config.duration = base::seconds(1);
    config.bins = 5;
    return config;
}

NodeRingConfig with_spread(NodeRingConfig config, double share) {
    for (base::DelayDistribution& work : config.work) {
        work.kind = Kind::gaussian;
        work.spread = Time::from_seconds(share * work.mean.seconds());
    }
    return config;
}

/// The ring with three groups of nodes, whose transfers have different sizes.
NodeRingConfig in_groups(NodeRingConfig config) {
    const double shares[] = {0.28, 0.33, 0.39};
    const std::size_t nodes = config.work.size();
    for (std::size_t node = 0; node < nodes; ++node) {
        Time& mean = config.work[node].mean;
        mean = Time::from_seconds(3 * shares[3 * node / nodes] * mean.seconds());
    }
    return config;
}

NodeRingReport play(const NodeRingConfig& config) { return base::value_of(play_node_ring(config)); }

/// Share of the full rate in the steady state: the last four of six seconds, averaged over more
/// runs if there are few nodes.
double settled(NodeRingConfig config, std::uint32_t writers) {
    config.in_step = writers == kInStep;
    config.writers = config.in_step ? kAll : writers;
    config.duration = base::seconds(6);
    config.bins = 6;
    const std::uint64_t runs = config.work.size() > 100 ? 1 : 4;
    double sum = 0;
    for (config.seed = 1; config.seed <= runs; ++config.seed) {
        const std::vector<double> shares = play(config).shares;
        sum += std::accumulate(shares.begin() + 2, shares.end(), 0.0) / 4;
    }
    return sum / static_cast<double>(runs);
}

double harmonic(std::uint32_t n) {
    double sum = 0;
    for (std::uint32_t k = 1; k <= n; ++k) {
        sum += 1.0 / k;
    }
    return sum;
}

/// Equal nodes with equal shares: the product form of a closed network of as many stations
/// (Baskett et al., J. ACM 22, 1975), by its mean values for 1, 2, … N nodes (Reiser and Lavenberg,
/// J. ACM 27, 1980): an arriving node finds here what one node fewer leaves here on average.
/// Neither the distribution of transfers nor that of delays matters.
double product_form(std::uint32_t nodes, double delay_us) {
    double here = 0;
    double takes = 0;
    for (std::uint32_t n = 1; n <= nodes; ++n) {
        takes = 576 * (1 + here);
        here = n * takes / (nodes * (takes + delay_us));
    }
    return 576 / (takes + delay_us);
}

// ---- known answers by hand ----------------------------------------------------------------------

TEST(NodeRing, WithoutDelaysNodesNeverMeet) {
    for (const std::uint32_t writers : {kAll, kOne, 2U}) {
        NodeRingConfig config = ring(7, 0);
        config.writers = writers;
        EXPECT_EQ(play(config).shares, std::vector<double>(5, 1.0));
    }
}

TEST(NodeRing, DelaysThatAreAllTheSameCostThemselvesAlone) {
    NodeRingConfig config = ring(7, 0);
    // Two delays of 12 us before each transfer of 576 us: 600 us a step, 1000 steps in 0.6 s.
    config.delays.assign(2, {Kind::fixed, base::microseconds(12), {}});
    config.duration = base::microseconds(600'000);
    config.bins = 1;
    for (const std::uint32_t writers : {kAll, kOne, 2U}) {
        config.writers = writers;
        EXPECT_DOUBLE_EQ(play(config).shares[0], 576.0 / 600.0);
    }
    config.in_step = true;
    EXPECT_DOUBLE_EQ(play(config).shares[0], 576.0 / 600.0);
}

TEST(NodeRing, InStepTheSlowestOfAllDecides) {
    // The longest of N exponential delays of mean j has a mean of j (1 + 1/2 + … + 1/N).
    for (const std::uint32_t nodes : {1U, 2U, 8U, 40U}) {
        EXPECT_NEAR(settled(ring(nodes, 50), kInStep), 576 / (576 + 50 * harmonic(nodes)), 0.002);
    }
    // Two nodes, one 50 us longer: the slower is later by j, and by half of j if the delay of the
    // faster is more than 50 us: by then it has no memory, and it is the longest of two.
    NodeRingConfig two = ring(2, 50);
    two.work[1].mean = base::microseconds(626);
    EXPECT_NEAR(settled(two, kInStep), 601 / (626 + 50 + 25 * std::exp(-1)), 0.002);
}

TEST(NodeRing, TwoWithEqualSharesHaveTheProductForm) {
    // A node that comes finds the other one here with the chance that this has when it is alone,
    // and takes as much longer. Alone it is on either builder for T of T + j, here for half of it.
    const double first = 400;
    const double second = 700;
    const double delay = 100;
    const auto found_here = [&](double work) { return work / (work + delay) / 2; };
    const double first_takes = first * (1 + found_here(second));
    const double second_takes = second * (1 + found_here(first));
    NodeRingConfig config = ring(2, delay);
    config.work[0].mean = base::microseconds(400);
    config.work[1].mean = base::microseconds(700);
    const double expected = (first / (first_takes + delay) + second / (second_takes + delay)) / 2;
    EXPECT_NEAR(settled(config, kAll), expected, 0.003);
    // In the order of arrival one that comes to the other waits for what is left of it, and no
    // longer.
    EXPECT_GT(settled(config, kOne), expected + 0.02);
}

TEST(NodeRing, OfTwoServedInOrderEachWaitsAQuarterOfTheDelay) {
    // The node that ended later by z begins its delay as the other does or has to wait; with delays
    // d and d' they are |d' − (d − z)⁺| apart a step later. For exponential ones that is
    // exponential again, whatever z was: so a step takes (E max(d, z) + E d') / 2 = (1.5 j + j) / 2
    // beyond its work. No node overtakes: no delay is as long as the work of the other.
    EXPECT_NEAR(settled(ring(2, 20), kOne), 576 / (576 + 1.25 * 20), 0.0005);
}

TEST(NodeRing, ServedInOrderTheRateIsBetweenThatOfTheSlowestAndThatOfEachAlone) {
    for (const double delay : {1.0, 20.0, 50.0}) {
        const double served = settled(ring(108, delay), kOne);
        EXPECT_LT(served, 576 / (576 + delay));
        EXPECT_GT(served, 576 / (576 + delay * harmonic(108)));
    }
}

TEST(NodeRing, ServedInOrderTheLossGrowsAsTheDelay) {
    // Without overtaking, a transfer ends T after the later of two: its node, delay and
    // all, or the one before it at this builder. Times over j are then the same for every j.
    const auto lost_delays = [](double delay) {
        return 576 / delay * (1 / settled(ring(108, delay), kOne) - 1);
    };
    EXPECT_NEAR(lost_delays(5), lost_delays(40), 0.03);
}

TEST(NodeRing, WithEqualSharesSettlesAtHalfTheRateWhateverTheDelay) {
    EXPECT_NEAR(product_form(321, 0.001), 321.0 / (2 * 321 - 1), 1e-5);
    for (const double delay : {20.0, 50.0, 200.0}) {
        EXPECT_NEAR(settled(ring(321, delay), kAll), product_form(321, delay), 0.01) << delay;
    }
    EXPECT_NEAR(settled(with_spread(ring(321, 20), 0.05), kAll), product_form(321, 20), 0.01);
}

TEST(NodeRing, WithEqualSharesNeitherTheDistributionOfDelaysNorThatOfTransfersMatters) {
    for (const Kind kind : {Kind::exponential, Kind::uniform}) {
        for (const double spread : {0.0, 0.2}) {
            NodeRingConfig config = with_spread(ring(10, 200), spread);
            config.delays[0].kind = kind;
            config.delays[0].spread = config.delays[0].mean;
            config.duration = base::seconds(100);
            config.bins = 1;
            EXPECT_NEAR(play(config).shares[0], product_form(10, 200), 0.003) << spread;
        }
    }
}

// ---- laws ---------------------------------------------------------------------------------------

TEST(NodeRing, BuildersReceiveAllThatNodesSend) {
    for (const std::uint32_t writers : {kAll, kOne, 2U, 5U}) {
        NodeRingConfig config = in_groups(with_spread(ring(31, 80), 0.1));
        config.writers = writers;
        const NodeRingReport report = play(config);
        double received = 0;
        for (const double share : report.shares) {
            received += share * 31 * 0.2;
        }
        const Time sent = report.begun - report.left;
        EXPECT_NEAR(received, sent.seconds(), 1e-7);  // a picosecond for each event
        EXPECT_GT(report.left, Time::zero());
        const double mean = 31 * 1.0 * report.shares[4] / 576e-6;
        EXPECT_NEAR(static_cast<double>(report.transfers), mean, 0.25 * mean);
    }
}

TEST(NodeRing, IsTheSameWithTheSameSeedAndWithAsManyWritersAsNodes) {
    NodeRingConfig config = with_spread(ring(16, 80), 0.05);
    const NodeRingReport report = play(config);
    EXPECT_EQ(play(config).shares, report.shares);
    EXPECT_EQ(play(config).begun, report.begun);
    config.writers = 16;
    EXPECT_EQ(play(config).shares, report.shares);
    config.seed = 2;
    EXPECT_NE(play(config).shares, report.shares);
}

TEST(NodeRing, ImpossibleRingsAreRefused) {
    const auto refusal = [](const NodeRingConfig& config) {
        return base::message_of(play_node_ring(config));
    };
    EXPECT_EQ(refusal(ring(0, 1)), "a ring of 0 nodes; give at least one");
    NodeRingConfig config = ring(2, 1);
    config.work[1].mean = Time::zero();
    EXPECT_EQ(refusal(config),
              "a node of the ring has transfers that take no time; give their time");
    config = ring(2, 1);
    config.bins = 0;
    EXPECT_EQ(refusal(config),
              "the ring runs for 1.000000 s in 0 bins of time; give more than 0 of both");
}

// ---- an independent model -----------------------------------------------------------------------

/// The numbers are those of another program for the same ring, one run each.
TEST(NodeRing, HasTheRatesOfAnotherModel) {
    struct Other {
        const char* name;
        NodeRingConfig config;
        std::vector<std::pair<std::uint32_t, double>> shares;  ///< by writers
    };
    const NodeRingConfig differing = with_spread(ring(321, 20), 0.05);
    const NodeRingConfig groups = in_groups(ring(321, 20));
    for (const auto& [name, config, shares] : std::vector<Other>{
             {"321 nodes, delays of 20 us",
              ring(321, 20),
              {{kInStep, 0.819}, {kAll, 0.494}, {2, 0.546}, {3, 0.61}, {8, 0.51}, {kOne, 0.949}}},
             {"delays of 50 us",
              ring(321, 50),
              {{kInStep, 0.645}, {kAll, 0.49}, {2, 0.566}, {kOne, 0.881}}},
             {"delays of 1 us", ring(321, 1), {{kInStep, 0.989}, {kOne, 0.996}}},
             {"transfers that differ", differing, {{2, 0.57}, {kOne, 0.932}}},
             {"three groups", groups, {{kAll, 0.49}, {2, 0.64}, {kOne, 0.824}}},
             {"40 nodes", ring(40, 20), {{kInStep, 0.871}, {kAll, 0.51}, {kOne, 0.950}}},
             {"108 nodes", ring(108, 20), {{kInStep, 0.845}, {kAll, 0.49}, {kOne, 0.949}}}}) {
        for (const auto& [writers, share] : shares) {
            EXPECT_NEAR(settled(config, writers), share, 0.01) << name << ", " << writers;
        }
    }
    // Delays of 1 us and equal shares: it has not settled after a second, but falls all the time.
    const std::vector<double> shares = play(ring(321, 1)).shares;
    EXPECT_NEAR(std::accumulate(shares.begin() + 1, shares.end(), 0.0) / 4, 0.938, 0.01);
    for (std::size_t bin = 1; bin < shares.size(); ++bin) {
        EXPECT_LT(shares[bin], shares[bin - 1] - 0.005);
    }
    EXPECT_LT(settled(ring(321, 1), kAll), 0.9);
    // Transfers of different sizes: a run of a second deviates by this much, or more. In step, the
    // other program has 0.72: it adds the largest of the transfers to the longest of the delays,
    // √(2 ln 321) · 28.8 us + 20 us · H₃₂₁, as if one node always had both.
    EXPECT_NEAR(product_form(321, 20), 0.505, 0.01);
    const double both = std::sqrt(2 * std::log(321)) * 0.05 * 576 + 20 * harmonic(321);
    EXPECT_NEAR(576 / (576 + both), 0.72, 0.001);
    EXPECT_GT(settled(differing, kInStep), 0.72);
    // Three groups, in step: the other program has 0.719: it adds the longest of 321 delays to the
    // largest size, but the group that decides has 107 nodes. The next one is 0.18 · 576 us ahead,
    // five mean delays.
    const double largest = 3 * 0.39 * 576;
    EXPECT_NEAR(576 / (largest + 20 * harmonic(321)), 0.719, 0.001);
    EXPECT_NEAR(settled(groups, kInStep), 576 / (largest + 20 * harmonic(107)), 0.002);
}

}  // namespace
}  // namespace daqloom::systems
