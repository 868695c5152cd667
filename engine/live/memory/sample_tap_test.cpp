#include "live/memory/sample_tap.hpp"

#include "live/memory/consumers_fixture_test.hpp"

namespace daqloom::live {
namespace {

class Sampled : public testing::Test {
  protected:
    void SetUp() override {
        server_ = base::value_of(BufferServer::serve(
            {{name_, &buffer_, BufferSide::sampler, &*tap_, SampleCounters::slots}}));
    }
    void TearDown() override { server_.reset(); }
    [[nodiscard]] AttachedBuffer attach() const {
        return base::value_of(attach_sampler(name_, now() + kHung));
    }
    /// Offers a piece filled with its tag.
    void offer(std::uint64_t tag, std::size_t bytes = 1000) {
        tap_->offer(tag, std::vector<std::byte>(bytes, static_cast<std::byte>(tag)));
    }

    std::string name_ = "daqloom/test-tap-" + std::to_string(::getpid()) + "/0/output";
    Buffer buffer_ = buffer_of(4096);
    SampleCounters counters_;
    std::optional<SampleTap> tap_{std::in_place, 4096, counters_};
    std::unique_ptr<BufferServer> server_;
};

TEST_F(Sampled, ASamplerGetsCopies) {
    AttachedBuffer unit = attach();
    BufferReader reader(unit.buffer());
    std::uint64_t tag = 0;
    std::vector<std::uint64_t> taken;
    ASSERT_TRUE(comes_true([&] {
        offer(++tag);
        if (const auto piece = reader.next()) {
            EXPECT_EQ(piece->bytes.size(), 1000U);
            EXPECT_TRUE(std::ranges::all_of(piece->bytes, [&](std::byte byte) {
                return byte == static_cast<std::byte>(piece->tag);
            }));
            taken.push_back(piece->tag);
            reader.acknowledge();
        }
        return taken.size() == 20;
    }));
    EXPECT_TRUE(std::ranges::is_sorted(taken));
    EXPECT_EQ(counters_.copied[0], 20U);
    EXPECT_EQ(counters_.copied[0] + counters_.skipped[0], tag);
    server_.reset();
    tap_.reset();
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.is_at_end());
}

TEST_F(Sampled, OneThatReadsNothingGetsNoMoreThanItsBuffer) {
    const AttachedBuffer stuck = attach();
    AttachedBuffer unit = attach();
    BufferReader reader(unit.buffer());
    ASSERT_TRUE(comes_true([&] {
        offer(1);
        if (reader.next()) {
            reader.acknowledge();
        }
        return counters_.copied[1] == 50;
    }));
    EXPECT_EQ(counters_.copied[0], 4U);
    EXPECT_EQ(counters_.copied[0] + counters_.skipped[0],
              counters_.copied[1] + counters_.skipped[1]);
}

TEST_F(Sampled, PiecesBeyondTheBufferAreSkipped) {
    const AttachedBuffer unit = attach();
    offer(1, 5000);
    EXPECT_EQ(counters_.copied[0], 0U);
    EXPECT_EQ(counters_.skipped[0], 1U);
}

TEST_F(Sampled, CountsAreNotAffectedByHostileSamplers) {
    const AttachedBuffer unit = attach();
    const HostileControl control(const_cast<AttachedBuffer&>(unit).buffer());
    for (std::uint64_t turn = 0; turn < 1000; ++turn) {
        control.acknowledged() = turn * 0x9e3779b97f4a7c15U;
        offer(turn);
    }
    EXPECT_EQ(counters_.copied[0] + counters_.skipped[0], 1000U);
}

TEST_F(Sampled, CopiesTakeAHundredthOfTheTime) {
    const AttachedBuffer unit = attach();
    const base::Time begin = now();
    offer(1);
    const base::Time copied = now() - begin;  // at least the time of the copy itself
    ASSERT_EQ(counters_.copied[0], 1U);
    std::uint64_t offers = 0;
    for (; counters_.copied[0] == 1; ++offers) {
        offer(2);
    }
    EXPECT_EQ(counters_.skipped[0], offers - 1);
    EXPECT_LE(copied, now() - begin);
}

TEST_F(Sampled, TheNumberOfSamplersIsLimited) {
    std::vector<AttachedBuffer> units;
    for (std::size_t i = 0; i < SampleCounters::slots; ++i) {
        units.push_back(attach());
    }
    EXPECT_FALSE(attach_sampler(name_, now() + kHung));
    units.clear();
    EXPECT_TRUE(attach_sampler(name_, now() + kHung));
}

}  // namespace
}  // namespace daqloom::live
