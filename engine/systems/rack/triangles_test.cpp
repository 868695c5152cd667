// The peak of the ToR's queue against the superposition of triangles, added up by brute force.
//
// An event of S bytes enters the switch at rate I and leaves it at rate O: its share of the queue
// rises for S/I with I − O and falls until S/O with O. Events come each 1/f and do not disturb one
// another while f·S < I. S counts frames as they are buffered; preamble and gap occupy both wires
// and never the buffer, so that I and O are line rates times frame / (frame + 20).
#include <algorithm>

#include "systems/rack/fixture_test.hpp"

namespace daqloom::systems {
namespace {

using base::Bytes;

struct Superposition {
    double size;    ///< S, bytes
    double input;   ///< I, bytes per second
    double output;  ///< O, bytes per second
    double period;  ///< 1/f, seconds

    explicit Superposition(const RackConfig& config) {
        const Bytes fragment = config.event_size.mean / config.readout_units;
        const auto frames = static_cast<double>(frame_count(fragment, config.tcp));
        const auto bytes = static_cast<double>(frame_bytes(fragment, config.tcp));
        const double buffered = bytes / (bytes + frames * kWireOverhead);
        size = bytes * config.readout_units;
        const auto readouts =
            static_cast<double>(config.readout_link.rate.bps) * config.readout_units;
        input = std::min(readouts, static_cast<double>(config.uplink.rate.bps)) / 8 * buffered;
        output = static_cast<double>(config.access_link.rate.bps) / 8 * buffered;
        period = 1 / config.arrivals.rate_hz;
    }

    /// One event's share of the queue, `t` after its first byte came.
    [[nodiscard]] double triangle(double t) const {
        return t <= 0 ? 0 : std::max(std::min(input * t, size) - output * t, 0.0);
    }
    /// The sum over all events, at the steps of a fine grid over one period.
    [[nodiscard]] double peak() const {
        constexpr int steps = 20'000;
        double peak = 0;
        for (int step = 0; step <= steps; ++step) {
            double sum = 0;
            for (int event = 0; event * period < size / output + period; ++event) {
                sum += triangle(period * (event + static_cast<double>(step) / steps));
            }
            peak = std::max(peak, sum);
        }
        return peak;
    }
};

struct Point {
    double rate_hz;
    Bytes size;
    Bytes mss;  ///< 1448: MTU 1500, 8948: MTU 9000
};

void PrintTo(const Point& point, std::ostream* out) {
    *out << point.rate_hz << " Hz of " << point.size << " B, MSS " << point.mss;
}

class RackTriangles : public RackTest, public ::testing::WithParamInterface<Point> {};

TEST_P(RackTriangles, ThePeakIsWithinOnePercentOfTheSuperposition) {
    RackConfig config = without_chance(atlas_lab());
    config.arrivals.rate_hz = GetParam().rate_hz;
    config.event_size.mean = GetParam().size;
    config.tcp.mss = GetParam().mss;
    const Superposition expected(config);
    ASSERT_LT(expected.size, expected.input * expected.period);
    config.warmup = base::Time::from_seconds(expected.size / expected.output + expected.period);
    config.duration = config.warmup + base::Time::from_seconds(10 * expected.period);
    Rack& rack = run(config);
    const auto peak = static_cast<double>(rack.report().tor_peak);
    RecordProperty("peak_over_superposition", std::to_string(peak / expected.peak()));
    EXPECT_NEAR(peak, expected.peak(), 0.01 * expected.peak());
}

INSTANTIATE_TEST_SUITE_P(
    AtlasLab, RackTriangles,
    ::testing::Values(Point{12e3, 5'000'000, 1448}, Point{12e3, 5'000'000, 8948},
                      Point{1e3, 1'000'000, 1448},  // one at a time
                      Point{1e3, 5'000'000, 8948},  // one or two
                      Point{18e3, 5'000'000, 1448}, Point{18e3, 5'000'000, 8948},
                      Point{12e3, 2'500'000, 1448}, Point{20e3, 1'000'000, 1448},
                      Point{6e3, 8'000'000, 8948}));

/// Two figures of the superposition worked out by hand, so that the brute force is not alone.
/// S = 5 MB, f = 12 kHz, I = 800 Gb/s, O = 25 Gb/s: 47.5 MB. At 1 kHz of 1 MB events do not
/// overlap: S·(1 − O/I) = 0.97 MB.
TEST(Superposition, GivesTheFiguresWorkedOutByHand) {
    Superposition triangles(atlas_lab());
    triangles.size = 5e6;
    triangles.input = 100e9;
    triangles.output = 3.125e9;
    triangles.period = 1 / 12e3;
    EXPECT_NEAR(triangles.peak(), 47.5e6, 0.05e6);
    triangles.size = 1e6;
    triangles.period = 1e-3;
    EXPECT_NEAR(triangles.peak(), 0.96875e6, 10);
}

}  // namespace
}  // namespace daqloom::systems
