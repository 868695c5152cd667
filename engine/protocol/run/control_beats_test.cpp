// Beats that units pass on, and the end of a lease without a run control.
#include "protocol/run/control_beats.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace daqloom::protocol {

namespace {

using base::milliseconds;
using base::seconds;
using base::Time;

constexpr ControlBeats::Config minute_of_grace{
    .heartbeat = milliseconds(200), .fault_timeout = seconds(1), .grace = seconds(60)};

std::vector<UnitIndex> first_units(std::uint32_t count) {
    std::vector<UnitIndex> found;
    for (std::uint32_t unit = 0; unit < count; ++unit) {
        found.emplace_back(unit);
    }
    return found;
}

ControlBeats beats_of(std::uint32_t unit, std::uint32_t units,
                      const ControlBeats::Config& config = minute_of_grace) {
    return {config, UnitIndex(unit), first_units(units), Time::zero()};
}

TEST(ControlBeats, ReachAllUnitsInAsManyHeartbeatsAsPowersOfTwo) {
    for (const std::uint32_t units : {2U, 3U, 8U, 326U}) {
        std::vector<ControlBeats> all;
        for (std::uint32_t unit = 0; unit < units; ++unit) {
            all.push_back(beats_of(unit, units));
        }
        all[1].renewed(Time::zero(), 7);
        std::uint32_t rounds = 0;
        for (std::uint32_t reach = 1; reach < units; reach *= 2) {
            const Time at = milliseconds(200) * static_cast<std::int64_t>(rounds++);
            std::vector<std::pair<UnitIndex, std::uint64_t>> sent;
            for (ControlBeats& each : all) {
                sent.emplace_back(each.due(at), each.newest());
                EXPECT_EQ(each.due(at), UnitIndex::none()) << "one message per heartbeat";
            }
            for (const auto& [to, beat] : sent) {
                all[to.value()].on_beat(at, beat);
            }
        }
        for (const ControlBeats& each : all) {
            EXPECT_EQ(each.newest(), 7U) << units;
        }
    }
}

TEST(ControlBeats, ALeaseIsNotExtendedWithoutGrace) {
    ControlBeats::Config config = minute_of_grace;
    config.grace = Time::zero();
    ControlBeats beats = beats_of(0, 4, config);
    EXPECT_EQ(beats.due(seconds(1)), UnitIndex::none());
    beats.on_beat(seconds(9), 0);
    EXPECT_EQ(beats.end_of(seconds(9), seconds(5)), seconds(5));
}

TEST(ControlBeats, ALeaseIsExtendedByTheGraceIfOthersKnowOfNoNewerBeat) {
    ControlBeats beats = beats_of(0, 4);
    beats.renewed(seconds(4), 20);
    beats.on_beat(milliseconds(5'900), 21);  // the last one of the run control
    EXPECT_EQ(beats.end_of(milliseconds(4'999), seconds(5)), seconds(5)) << "it is not over";
    EXPECT_EQ(beats.end_of(seconds(6), seconds(5)), seconds(65));
}

TEST(ControlBeats, ALeaseEndsIfOthersKnowOfNewerBeatsAndWhileTheseGrow) {
    ControlBeats beats = beats_of(0, 4);
    beats.renewed(seconds(4), 20);
    beats.on_beat(seconds(5), 23);
    EXPECT_EQ(beats.end_of(seconds(5), seconds(5)), seconds(5)) << "alone cut off";
    beats.on_beat(milliseconds(5'900), 23);
    EXPECT_EQ(beats.end_of(milliseconds(5'999), seconds(5)), seconds(5));
    EXPECT_EQ(beats.end_of(seconds(6), seconds(5)), seconds(65))
        << "no newer beat for a fault timeout: the run control has ended";
}

TEST(ControlBeats, ALeaseEndsIfNoUnitReachesThisOne) {
    ControlBeats beats = beats_of(0, 4);
    beats.renewed(seconds(4), 20);
    beats.on_beat(seconds(4), 20);
    EXPECT_EQ(beats.end_of(milliseconds(4'800), milliseconds(4'500)), milliseconds(64'500));
    EXPECT_EQ(beats.end_of(milliseconds(4'801), milliseconds(4'500)), milliseconds(4'500));
    const ControlBeats single = beats_of(0, 1);
    EXPECT_EQ(single.end_of(seconds(9), seconds(5)), seconds(65)) << "there is no other unit";
}

}  // namespace

}  // namespace daqloom::protocol
