// Checksums from unit to unit, over transports that change bytes under way.
#include "live/transport/checksums.hpp"

#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "live/transport/conformance_test.hpp"
#include "live/transport/make.hpp"
#include "protocol/data/mep_check.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::live {
namespace {

constexpr std::size_t kPlace = 512;  ///< bytes of the arena for each write, by its immediate bits

/// A transport that flips a bit in some received writes and messages of an inner transport.
class Damaging final : public Transport, private TransportEvents {
  public:
    struct Rules {
        std::uint64_t one_write_in = 10;
        std::uint64_t one_message_in = ~std::uint64_t{0};
    };

    Damaging(std::unique_ptr<Transport> inner, const TransportConfig& config, Rules rules,
             std::uint64_t* damaged)
        : inner_(std::move(inner)),
          arena_(config.arena->bytes()),
          rules_(rules),
          damaged_(damaged),
          random_(config.self.value(), "damage") {}

    std::vector<std::byte> address() const override { return inner_->address(); }
    base::expected<std::vector<UnitIndex>> connect(std::span<const Peer> peers,
                                                   base::Time until) override {
        return inner_->connect(peers, until);
    }
    bool send(UnitIndex to, std::span<const std::byte> bytes) override {
        return inner_->send(to, bytes);
    }
    bool write(const Write& write) override { return inner_->write(write); }
    bool poll(TransportEvents& events) override {
        events_ = &events;
        return inner_->poll(*this);
    }
    void wait(base::Time until) override { inner_->wait(until); }
    const TransportCounters& counters() const override { return inner_->counters(); }

  private:
    void on_message(UnitIndex from, std::span<const std::byte> bytes) override {
        std::vector<std::byte> copy(bytes.begin(), bytes.end());
        if (random_.uniform_int(rules_.one_message_in) == 0) {
            flip(copy);
        }
        events_->on_message(from, copy);
    }
    void on_written(UnitIndex from, std::uint32_t immediate) override {
        if (random_.uniform_int(rules_.one_write_in) == 0) {
            flip(arena_.subspan(kPlace * immediate, 16));
        }
        events_->on_written(from, immediate);
    }
    void on_write_done(std::uint64_t context) override { events_->on_write_done(context); }
    void on_unreachable(UnitIndex unit) override { events_->on_unreachable(unit); }
    void flip(std::span<std::byte> bytes) {
        ++*damaged_;
        bytes[random_.uniform_int(bytes.size())] ^= std::byte{1}
                                                    << static_cast<int>(random_.uniform_int(8));
    }

    std::unique_ptr<Transport> inner_;
    std::span<std::byte> arena_;
    Rules rules_;
    std::uint64_t* damaged_;
    base::RandomStream random_;
    TransportEvents* events_ = nullptr;
};

/// All transports of this machine that need no checksums of their own.
std::vector<std::string> names() {
    std::vector<std::string> found = {"shm", "tcp"};
    for (const std::string& name : transport_names()) {
        if (name == "libfabric:tcp;ofi_rxm" || name == "libfabric:tcp") {
            found.push_back(name);
        }
    }
    return found;
}

class CheckedTransportOver : public testing::TestWithParam<std::string> {
  protected:
    TransportUnderTest transport(Damaging::Rules rules) {
        return {.name = GetParam(),
                .make = [this, rules](const TransportConfig& config)
                    -> base::expected<std::unique_ptr<Transport>> {
                    DAQLOOM_TRY(inner, make_transport(GetParam(), config));
                    auto bad =
                        std::make_unique<Damaging>(std::move(inner), config, rules, &damaged_);
                    return std::make_unique<CheckedTransport>(config, std::move(bad));
                },
                .disturb = {}};
    }

    std::uint64_t damaged_ = 0;
};

/// MFPs of a stream are written from unit 0 to unit 1, and checked byte for byte when the transport
/// reports each write.
TEST_P(CheckedTransportOver, NoWrongMfpIsUsedAndEachDamageIsCounted) {
    constexpr std::uint32_t kPlaces = 64;
    constexpr std::uint64_t kMfps = 5'000;
    const auto stream =
        *protocol::MfpGenerator::make({.source_id = 3,
                                       .packing = 4,
                                       .sizes = std::make_shared<protocol::PatternSizes>(
                                           protocol::FragmentSizes::poisson, 30, 1)});
    TestRun run(transport({}), 2, {.arena = kPlace * kPlaces, .source = kPlace * kPlaces});
    std::vector<std::uint64_t> event_in(kPlaces);
    std::vector<std::size_t> bytes_in(kPlaces);
    std::vector<std::uint32_t> free;
    std::uint64_t right = 0;
    for (std::uint32_t place = 0; place < kPlaces; ++place) {
        free.push_back(place);
    }
    run[1].at_written = [&](UnitIndex, std::uint32_t place) {
        const auto mfp = run[1].arena().subspan(kPlace * place, bytes_in[place]);
        const std::span there(reinterpret_cast<const std::uint8_t*>(mfp.data()), mfp.size());
        const auto check = protocol::check_mfp(stream, event_in[place], there);
        EXPECT_EQ(check.fault, protocol::DataFault::none);
        ++right;
    };
    run[0].at_done = [&](std::uint64_t place) {
        free.push_back(static_cast<std::uint32_t>(place));
    };
    run[0].keeps = run[1].keeps = false;
    for (std::uint64_t mfp = 0; mfp < kMfps; ++mfp) {
        ASSERT_TRUE(run.poll_until([&] { return !free.empty(); }));
        const std::uint32_t place = free.back();
        free.pop_back();
        const auto room = run[0].source().subspan(kPlace * place, kPlace);
        event_in[place] = mfp * 4;
        bytes_in[place] = static_cast<std::size_t>(*stream.generate(
            event_in[place], std::span(reinterpret_cast<std::uint8_t*>(room.data()), kPlace)));
        write(run, 0,
              {.to = UnitIndex(1),
               .bytes = room.first(bytes_in[place]),
               .offset = static_cast<base::Bytes>(kPlace * place),
               .immediate = place,
               .context = place});
    }
    ASSERT_TRUE(run.poll_until([&] { return free.size() == kPlaces; }));
    run.settle();
    EXPECT_EQ(right, kMfps);
    EXPECT_GT(damaged_, kMfps / 20);
    EXPECT_EQ(run[1].transport().counters().damaged_writes, damaged_);
    EXPECT_EQ(run[0].transport().counters().writes_repeated, damaged_);
    EXPECT_TRUE(run[0].unreachable.empty() && run[1].unreachable.empty());
}

TEST_P(CheckedTransportOver, ADamagedMessageIsNotPassedOnAndItsSenderIsUnreachable) {
    TestRun run(transport({.one_message_in = 50}), 2);
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    run[1].keeps = false;
    run[1].at_message = [&](UnitIndex, std::span<const std::byte> bytes) {
        EXPECT_TRUE(has_pattern(bytes, received++));
    };
    while (run[1].unreachable.empty()) {
        ASSERT_LT(sent, 100'000U);
        send(run, 0, 1, pattern(10 + sent % 100, sent));
        ++sent;
        run[0].poll();
        run[1].poll();
    }
    EXPECT_EQ(run[1].unreachable, Units{0});
    EXPECT_EQ(run[1].transport().counters().damaged_records, 1U);
    EXPECT_EQ(damaged_, 1U);
    EXPECT_LT(received, sent);
    run.settle();
    EXPECT_EQ(run[1].unreachable, Units{0});
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::ranges::replace_if(
        name, [](char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Each, CheckedTransportOver, testing::ValuesIn(names()), name_of);

}  // namespace
}  // namespace daqloom::live
