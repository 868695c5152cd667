#include "live/transport/libfabric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <thread>

#include "live/clock.hpp"

namespace daqloom::live {
namespace {

constexpr Token kToken{std::byte{7}, std::byte{1}};

/// What a unit is told.
struct Told : TransportEvents {
    void on_message(UnitIndex from, std::span<const std::byte> bytes) override {
        messages.emplace_back(from, std::vector(bytes.begin(), bytes.end()));
    }
    void on_written(UnitIndex, std::uint32_t immediate) override { written.push_back(immediate); }
    void on_write_done(std::uint64_t context) override { done.push_back(context); }
    void on_unreachable(UnitIndex unit) override { unreachable.push_back(unit); }

    std::vector<std::pair<UnitIndex, std::vector<std::byte>>> messages;
    std::vector<std::uint32_t> written;
    std::vector<std::uint64_t> done;
    std::vector<UnitIndex> unreachable;
};

/// A unit of a run in this process.
struct Unit {
    Unit(const std::string& provider, UnitIndex self, std::uint32_t units, std::uint32_t epoch = 1,
         base::Bytes most_per_write = base::Bytes{1} << 62)
        : arena(*SharedMemory::create("arena", 1 << 22)),
          source(1 << 22),
          bell(*Doorbell::create()) {
        for (std::size_t i = 0; i < source.size(); ++i) {
            source[i] = static_cast<std::byte>(i * 7 + i / 251 + self);
        }
        auto made = make_libfabric({.self = self,
                                    .units = units,
                                    .token = kToken,
                                    .epoch = epoch,
                                    .arena = &arena,
                                    .sources = {source},
                                    .doorbell = &bell},
                                   {.provider = provider, .most_per_write = most_per_write});
        EXPECT_TRUE(made) << made.error().message;
        transport = std::move(*made);
    }

    SharedMemory arena;
    std::vector<std::byte> source;
    Doorbell bell;
    std::unique_ptr<Transport> transport;
    Told told;
};

const base::Time kHung = base::seconds(5);

/// All connect to all; those that did not answer, of any of them.
std::vector<UnitIndex> connect(std::span<Unit* const> units) {
    std::vector<Transport::Peer> peers;
    for (UnitIndex i = 0; i < units.size(); ++i) {
        peers.push_back({i, units[i]->transport->address()});
    }
    std::vector<std::vector<UnitIndex>> silent(units.size());
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < units.size(); ++i) {
            threads.emplace_back(
                [&, i] { silent[i] = *units[i]->transport->connect(peers, now() + kHung); });
        }
    }
    std::vector<UnitIndex> all;
    for (const auto& of_one : silent) {
        all.insert(all.end(), of_one.begin(), of_one.end());
    }
    return all;
}

template <class Condition>
bool run_until(std::span<Unit* const> units, Condition condition) {
    const base::Time deadline = now() + kHung;
    while (!condition() && now() < deadline) {
        for (Unit* unit : units) {
            unit->transport->poll(unit->told);
        }
    }
    return condition();
}

class LibfabricProvider : public testing::TestWithParam<std::string> {};

TEST_P(LibfabricProvider, CarriesMessagesAndWrites) {
    Unit a(GetParam(), 0, 2);
    Unit b(GetParam(), 1, 2);
    Unit* const both[] = {&a, &b};
    ASSERT_TRUE(connect(both).empty());

    const std::vector<std::byte> text(1000, std::byte{42});
    ASSERT_TRUE(a.transport->send(1, text));
    ASSERT_TRUE(a.transport->write({.to = 1,
                                    .bytes = std::span(a.source).subspan(3, 2'000'001),
                                    .offset = 17,
                                    .immediate = 0xfedcba98,
                                    .context = 99}));
    ASSERT_TRUE(run_until(both, [&] {
        return !b.told.messages.empty() && !b.told.written.empty() && !a.told.done.empty();
    }));
    EXPECT_EQ(b.told.messages[0].first, 0u);
    EXPECT_EQ(b.told.messages[0].second, text);
    EXPECT_EQ(b.told.written, std::vector<std::uint32_t>{0xfedcba98});
    EXPECT_EQ(a.told.done, std::vector<std::uint64_t>{99});
    EXPECT_TRUE(std::ranges::equal(b.arena.bytes().subspan(17, 2'000'001),
                                   std::span(a.source).subspan(3, 2'000'001)));
}

TEST_P(LibfabricProvider, TellsOfAWriteInPartsWhenAllOfThemAreThere) {
    Unit a(GetParam(), 0, 2, 1, 10'000);
    Unit b(GetParam(), 1, 2);
    Unit* const both[] = {&a, &b};
    ASSERT_TRUE(connect(both).empty());
    ASSERT_TRUE(a.transport->write(
        {.to = 1, .bytes = std::span(a.source).first(1'234'567), .immediate = 5, .context = 6}));
    ASSERT_TRUE(run_until(both, [&] { return !b.told.written.empty(); }));
    EXPECT_TRUE(
        std::ranges::equal(b.arena.bytes().first(1'234'567), std::span(a.source).first(1'234'567)));
    ASSERT_TRUE(run_until(both, [&] { return !a.told.done.empty(); }));
    EXPECT_EQ(b.told.written, std::vector<std::uint32_t>{5});
    EXPECT_EQ(a.told.done, std::vector<std::uint64_t>{6});
}

std::vector<std::string> provider_names() {
    std::vector<std::string> names;
    for (const auto& provider : libfabric_providers()) {
        names.push_back(provider.name);
    }
    return names;
}

std::string as_test_name(const testing::TestParamInfo<std::string>& provider) {
    std::string name = provider.param;
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c); }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Found, LibfabricProvider, testing::ValuesIn(provider_names()),
                         as_test_name);

}  // namespace
}  // namespace daqloom::live
