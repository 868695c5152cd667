// Racks for tests, whose conservation laws are checked when a test ends, and racks of papers.
#pragma once

#include <gtest/gtest.h>

#include "base/expected_test.hpp"
#include "systems/rack/rack_system_test.hpp"

namespace daqloom::systems {

class RackTest : public ::testing::Test {
  protected:
    Rack& make(const RackConfig& config) {
        racks_.push_back(base::value_of(Rack::make(config)));
        return *racks_.back();
    }
    /// Runs a rack to its end.
    Rack& run(const RackConfig& config) {
        Rack& rack = make(config);
        rack.run(config.duration);
        return rack;
    }
    void TearDown() override {
        for (const std::unique_ptr<Rack>& rack : racks_) {
            EXPECT_EQ(base::message_of(rack->check_conservation()), "");
        }
    }

  private:
    std::vector<std::unique_ptr<Rack>> racks_;
};

/// The rack without random features, and with windows that never limit.
inline RackConfig without_chance(RackConfig config) {
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::deterministic;
    config.assignment = protocol::Assignment::round_robin;
    config.tcp.congestion = CongestionControl::static_window;
    config.tcp.static_window = 8 << 20;
    config.tcp.receive_window = 8 << 20;
    return config;
}

/// Frames of a reply, and their bytes, as buffered.
inline std::int64_t frame_count(base::Bytes payload, const TcpConfig& tcp) {
    return (payload + tcp.mss - 1) / tcp.mss;
}
inline base::Bytes frame_bytes(base::Bytes payload, const TcpConfig& tcp) {
    return payload + frame_count(payload, tcp) * (tcp.header_bytes() + kFrameOverhead);
}

}  // namespace daqloom::systems
