#include "live/ends/card_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "live/memory/buffer_by_hand_test.hpp"

namespace daqloom::live {
namespace {

using base::microseconds;
using base::Time;

constexpr base::Bytes kMfp = 640;
constexpr std::int64_t kMs = 1'000'000'000;  ///< ps

/// MFPs that contain their number.
class Numbered final : public MfpFeed {
  public:
    Fed feed(std::uint64_t mfp, BufferWriter& writer) override {
        if (!writer.reserve(kMfp)) {
            return Fed::no_room;
        }
        writer.commit(mfp, kMfp);
        return Fed::done;
    }
};

/// A unit with cards of some streams, out of as many streams of the run.
class CardUnit {
  public:
    CardUnit(CardSourceConfig config, std::size_t streams, base::Bytes buffer = 1 << 20) {
        std::vector<CardSource::Stream> all;
        for (std::size_t stream = 0; stream < streams; ++stream) {
            buffers_.push_back(base::value_of(Buffer::create(
                {.name = "test", .bytes = buffer, .pieces = 4096}, nullptr, &bell_)));
        }
        for (Buffer& each : buffers_) {
            all.push_back({&each, std::make_unique<Numbered>()});
            readers_.emplace_back(each);
        }
        source_.emplace(std::move(config), std::move(all), bell_, counters_);
    }

    CardSource& source() { return *source_; }
    [[nodiscard]] const SourceCounters& counters() const { return counters_.source; }
    [[nodiscard]] std::int64_t stopped() const {
        return static_cast<std::int64_t>(counters_.stopped_for_acknowledge_ps);
    }
    [[nodiscard]] std::int64_t without_memory() const {
        return static_cast<std::int64_t>(counters_.stopped_for_memory_ps);
    }
    /// Takes the MFPs [from, end) of each stream, in order.
    void take(std::uint64_t from, std::uint64_t end) {
        for (std::uint64_t mfp = from; mfp < end; ++mfp) {
            for (BufferReader& reader : readers_) {
                const auto piece = live::take(reader);
                ASSERT_TRUE(piece);
                ASSERT_EQ(piece->tag, mfp);
                reader.acknowledge();
            }
        }
    }
    [[nodiscard]] bool comes_true(auto is_so) const {
        const Time deadline = now() + kHung;
        while (!is_so() && now() < deadline) {
            std::this_thread::yield();
        }
        return is_so();
    }

  private:
    Doorbell bell_ = base::value_of(Doorbell::create());
    std::vector<Buffer> buffers_;
    std::vector<BufferReader> readers_;
    CardCounters counters_;
    std::optional<CardSource> source_;
};

/// An MFP each 500 µs, a buffer of half an MFP, and acknowledgements after `usual` or `spike`.
CardSourceConfig card(std::size_t streams, Time usual, Time spike, double probability) {
    return {.interval = microseconds(500),
            .card_buffer = kMfp / 2,
            .mfps = std::vector<base::Bytes>(streams, kMfp),
            .acknowledge = {{.mean = usual}, {.mean = spike}, probability},
            .seed = 7};
}

TEST(CardSource, AcknowledgementsInTimeStopNothing) {
    CardUnit unit(card(2, microseconds(200), {}, 0), 2);
    unit.source().start(0);
    unit.take(0, 100);
    unit.source().stop();
    EXPECT_EQ(unit.stopped(), 0);
    EXPECT_EQ(unit.without_memory(), 0);
}

TEST(CardSource, ALateAcknowledgementStopsTheTriggerForTheTimeThatIsNotBridged) {
    CardUnit unit(card(1, microseconds(1250), {}, 0), 1);  // 1.25 ms, of which 0.25 ms are bridged
    unit.source().start(0);
    unit.take(0, 100);
    unit.source().stop();
    EXPECT_GE(unit.stopped(), 99 * kMs);
    EXPECT_LE(unit.stopped(), static_cast<std::int64_t>(unit.counters().mfps) * kMs);
}

/// Half of the MFPs of each of 4 streams have a spike, which stops the trigger for 1 ms; the spikes
/// of one MFP coincide. The trigger stops after 1 − (1/2)^4 of the MFPs.
TEST(CardSource, UnitsStopForTheCardsOfAllUnits) {
    CardSourceConfig config = card(4, microseconds(10), microseconds(1250), 0.5);
    std::vector<std::int64_t> stopped;
    for (const std::size_t first : {0, 2}) {
        config.first_stream = first;
        CardUnit unit(config, 2);
        unit.source().start(10);
        unit.take(10, 210);
        unit.source().stop();
        const auto mfps = static_cast<std::int64_t>(unit.counters().mfps / 2);
        stopped.push_back(unit.stopped() * 1000 / (mfps * kMs));
    }
    EXPECT_NEAR(static_cast<double>(stopped[0]), 1000 * 15 / 16, 60);  // 3.5 standard deviations
    EXPECT_NEAR(static_cast<double>(stopped[0]), static_cast<double>(stopped[1]), 8);
}

TEST(CardSource, AFullStreamBufferStopsTheTriggerAndLosesNothing) {
    CardUnit unit(card(1, microseconds(1), {}, 0), 1, 4 * kMfp);
    unit.source().start(0);
    ASSERT_TRUE(unit.comes_true([&] { return unit.counters().blocked == 1; }));
    EXPECT_EQ(unit.counters().mfps, 4U);
    // The card's own memory bridges 250 µs.
    const Time is_full = now() + microseconds(2'000);
    ASSERT_TRUE(unit.comes_true([&] { return now() > is_full; }));
    unit.take(0, 50);
    unit.source().stop();
    EXPECT_GT(unit.without_memory(), 0);
    EXPECT_LE(unit.stopped(), 50 * microseconds(1).ps) << "each time until the acknowledgement";
}

TEST(CardSource, ContinuesAfterAStopWithoutGapOrDuplicate) {
    CardUnit unit(card(2, microseconds(400), {}, 0), 2);
    unit.source().start(3);
    unit.take(3, 20);
    unit.source().stop();
    unit.source().start(15);  // some MFPs from here on are in the buffer
    unit.take(20, 60);
    unit.source().stop();
    const std::int64_t before = unit.stopped();
    unit.source().start(0);
    unit.take(60, 80);
    unit.source().stop();
    EXPECT_GE(unit.stopped(), before);
}

}  // namespace
}  // namespace daqloom::live
