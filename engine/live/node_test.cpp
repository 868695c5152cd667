#include "live/node.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "live/buffer_client.hpp"
#include "live/clock.hpp"
#include "live/transport/make.hpp"
#include "protocol/immediate.hpp"
#include "protocol/mep_check.hpp"
#include "protocol/unit_message.hpp"

namespace daqloom::live {
namespace {

using Units = std::vector<UnitIndex>;

constexpr base::Time kHung = base::seconds(120);  // ends a test that would hang
constexpr Token kToken = {std::byte{1}, std::byte{2}};

/// Looks again and again; false: it never was so.
bool until(const std::function<bool()>& is_so) {
    const base::Time deadline = now() + kHung;
    while (!is_so()) {
        if (now() > deadline) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

Units first(UnitIndex count) {
    Units units;
    for (UnitIndex unit = 0; unit < count; ++unit) {
        units.push_back(unit);
    }
    return units;
}

Units without(Units units, const Units& lost) {
    std::erase_if(units, [&](UnitIndex unit) { return std::ranges::count(lost, unit) > 0; });
    return units;
}

/// So many folded units that check every byte.
NodeConfig folded(UnitIndex units, const std::string& transport = "shm") {
    static std::atomic<int> runs = 0;
    NodeConfig config;
    config.run = "node-test-" + std::to_string(::getpid()) + "-" + std::to_string(runs++);
    config.token = kToken;
    config.readout_in_slot = config.builder_in_slot = first(units);
    config.transport = transport;
    config.waiting = Waiting::blocking;
    config.packing = 10;
    config.fragment_bytes = std::vector<base::Bytes>(units, 200);
    config.stream_buffer = base::Bytes{1} << 20;
    config.output_buffer = base::Bytes{1} << 20;
    return config;
}

/// 0: not counted, such as what only units that build do.
std::uint64_t count_of(const Node& node, const std::string& name) {
    std::uint64_t found = 0;
    node.each_counter([&](const std::string& each, std::uint64_t value) {
        found = each == name ? value : found;
    });
    return found;
}

/// The units of a run in this process, and what the run control would tell them.
class System {
  public:
    explicit System(const NodeConfig& config) : System(config, all_of(config)) {}
    /// Only these are here.
    System(const NodeConfig& config, const Units& here) {
        for (const UnitIndex unit : here) {
            NodeConfig its = config;
            its.self = unit;
            auto made = Node::make(std::move(its));
            EXPECT_TRUE(made) << made.error().message;
            nodes_[unit] = std::move(*made);
        }
    }

    Node& operator[](UnitIndex unit) { return *nodes_.at(unit); }

    /// The next epoch. Addresses of members that are not here come from elsewhere.
    void begin(const Units& members, std::vector<Transport::Peer> elsewhere = {}) {
        std::vector<Transport::Peer> peers = std::move(elsewhere);
        for (const UnitIndex unit : here(members)) {
            auto address = nodes_.at(unit)->prepare(epoch_, members);
            ASSERT_TRUE(address) << address.error().message;
            peers.push_back({unit, std::move(*address)});
        }
        ++epoch_;
        if (at_addresses) {
            at_addresses(peers);
        }
        all(here(members), [&](UnitIndex unit) {
            const auto missing = nodes_.at(unit)->connect(peers, kHung);
            EXPECT_TRUE(missing) << missing.error().message;
            EXPECT_EQ(missing.value_or(Units{99}), Units{}) << "at unit " << unit;
        });
        for (const UnitIndex unit : here(members)) {
            const auto started = nodes_.at(unit)->start(next_mep);
            ASSERT_TRUE(started) << started.error().message;
        }
    }

    void halt(const Units& members, const Units& lost = {}, base::Time timeout = kHung) {
        std::mutex mutex;
        all(here(members), [&](UnitIndex unit) {
            const auto halted = nodes_.at(unit)->halt(lost, timeout);
            EXPECT_TRUE(halted.is_drained) << "unit " << unit;
            const std::lock_guard lock(mutex);
            next_mep = std::max(next_mep, halted.next_mep);
        });
    }

    [[nodiscard]] std::uint64_t count(UnitIndex unit, const std::string& name) {
        return count_of(*nodes_.at(unit), name);
    }
    [[nodiscard]] std::uint64_t sum(const std::string& name) {
        std::uint64_t all = 0;
        for (const auto& [unit, node] : nodes_) {
            all += count(unit, name);
        }
        return all;
    }
    /// Each of these has had so many more MEPs checked.
    bool builds(const Units& units, std::uint64_t meps = 20) {
        std::map<UnitIndex, std::uint64_t> before;
        for (const UnitIndex unit : units) {
            before[unit] = count(unit, "meps_checked");
        }
        return until([&] {
            return std::ranges::all_of(units, [&](UnitIndex unit) {
                return count(unit, "meps_checked") >= before[unit] + meps;
            });
        });
    }
    /// What became of all MEPs that any unit was given so far.
    [[nodiscard]] std::uint64_t accounted() {
        return sum("meps_built") + sum("meps_incomplete") + sum("meps_dropped") +
               sum("meps_discarded");
    }
    void expect_nothing_wrong() {
        EXPECT_EQ(sum("meps_wrong"), 0U);
        EXPECT_EQ(sum("meps_repeated"), 0U);
        EXPECT_EQ(sum("mfps_malformed"), 0U);
    }
    void expect_all_checked() {
        expect_nothing_wrong();
        EXPECT_TRUE(until([&] { return sum("meps_checked") == sum("meps_delivered"); }));
    }

    std::uint64_t next_mep = 0;
    std::function<void(std::vector<Transport::Peer>&)> at_addresses;

  private:
    static Units all_of(const NodeConfig& config) {
        std::set<UnitIndex> units;
        for (const auto* slots : {&config.readout_in_slot, &config.builder_in_slot}) {
            units.insert(slots->begin(), slots->end());
        }
        units.erase(nobody);
        return {units.begin(), units.end()};
    }
    Units here(const Units& members) {
        Units found;
        std::ranges::copy_if(members, std::back_inserter(found),
                             [&](UnitIndex unit) { return nodes_.contains(unit); });
        return found;
    }
    static void all(const Units& units, const std::function<void(UnitIndex)>& action) {
        std::vector<std::jthread> threads;
        for (const UnitIndex unit : units) {
            threads.emplace_back([&action, unit] { action(unit); });
        }
    }

    std::map<UnitIndex, std::unique_ptr<Node>> nodes_;
    std::uint32_t epoch_ = 0;
};

// ---- all is well --------------------------------------------------------------------------------

class NodesOver : public testing::TestWithParam<std::string> {
  protected:
    /// Until each builder has built a number of MEPs, then an orderly stop. Builders wait for room:
    /// else a consumer that is kept from its processor would make them discard.
    static void expect_right(NodeConfig config, const Units& builders) {
        config.when_full = protocol::WhenFull::wait;
        System run(config);
        const Units members =
            first(static_cast<UnitIndex>(*std::ranges::max_element(config.builder_in_slot) + 1));
        run.begin(members);
        EXPECT_TRUE(run.builds(builders));
        run.halt(members);
        run.expect_all_checked();
        EXPECT_EQ(run.sum("meps_built"), run.accounted()) << "all of them whole";
        EXPECT_EQ(run.accounted(), run.next_mep) << "none is left out";
        EXPECT_EQ(run.sum("refused_messages"), 0U);
        EXPECT_EQ(run.sum("refused_writes"), 0U);
        EXPECT_EQ(run.sum("unreachable"), 0U);
    }
};

std::vector<std::string> transports() {
    std::vector<std::string> found = {"shm"};
    for (const std::string& name : transport_names()) {
        if (name == "libfabric:tcp;ofi_rxm") {
            found.push_back(name);
        }
    }
    return found;
}

INSTANTIATE_TEST_SUITE_P(Transports, NodesOver, testing::ValuesIn(transports()),
                         [](const auto& name) {
                             return name.param == "shm" ? std::string("Shm") : std::string("Tcp");
                         });

TEST_P(NodesOver, FoldedUnitsBuildEveryEventOnce) { expect_right(folded(3, GetParam()), first(3)); }

TEST_P(NodesOver, UnfoldedUnitsBuildEveryEventOnce) {
    NodeConfig config = folded(2, GetParam());
    config.builder_in_slot = {2, 3};
    expect_right(config, {2, 3});
}

TEST_P(NodesOver, SeveralStreamsOfAUnitBelongToTheSameEvents) {
    NodeConfig config = folded(2, GetParam());
    config.streams = 3;
    config.fragment_bytes = {1, 50, 200, 10, 400, 80};
    expect_right(config, first(2));
}

TEST_P(NodesOver, EveryBarrierAndNoneBuildsTheSame) {
    for (const auto barrier :
         {protocol::ShiftBarrier::none, protocol::ShiftBarrier::centralised,
          protocol::ShiftBarrier::tournament, protocol::ShiftBarrier::dissemination}) {
        NodeConfig config = folded(3, GetParam());
        config.barrier = barrier;
        config.meps_per_phase = 3;
        SCOPED_TRACE(static_cast<int>(barrier));
        expect_right(config, first(3));
    }
}

TEST_P(NodesOver, PhasesCanFollowTheClock) {
    NodeConfig config = folded(2, GetParam());
    config.change = protocol::PhaseChange::by_time;
    config.window = base::milliseconds(5);
    config.grace = base::milliseconds(1);
    config.meps_per_phase = 4;
    expect_right(config, first(2));
}

TEST_P(NodesOver, EventsCanBeBuiltOneByOne) {
    NodeConfig config = folded(2, GetParam());
    config.packing = 1;
    config.fragment_bytes = {10, 10};
    config.meps_per_phase = 16;
    expect_right(config, first(2));
}

// ---- units come and go --------------------------------------------------------------------------

TEST_P(NodesOver, ALostUnitIsLeftOutAndComesBack) {
    System run(folded(3, GetParam()));
    run.begin({0, 1, 2});
    EXPECT_TRUE(run.builds({0, 1, 2}));
    run.halt({0, 1}, {2});
    const std::uint64_t incomplete = run.count(0, "meps_incomplete");
    run.begin({0, 1});
    EXPECT_TRUE(run.builds({0, 1}));
    EXPECT_GT(run.count(0, "meps_incomplete"), incomplete) << "unit 2's fragments are missing";
    run.halt({0, 1});
    const std::uint64_t built = run.count(0, "meps_built");
    run.begin({0, 1, 2});
    EXPECT_TRUE(run.builds({0, 1, 2}));
    EXPECT_GT(run.count(0, "meps_built"), built);
    run.halt({0, 1, 2});
    run.expect_all_checked();
    EXPECT_LE(run.accounted(), run.next_mep);
}

TEST_P(NodesOver, TwoUnitsAreLostAtOnceOrOneAfterTheOther) {
    System run(folded(4, GetParam()));
    run.begin(first(4));
    EXPECT_TRUE(run.builds(first(4)));
    run.halt({0, 3}, {1, 2});
    run.begin(first(4));
    EXPECT_TRUE(run.builds(first(4)));
    // What is told first, that 1 is lost, is not enough: 2 is as well.
    for (const UnitIndex unit : {0U, 3U}) {
        static_cast<void>(run[unit].halt(Units{1}, base::milliseconds(1)));
    }
    run.halt({0, 3}, {2});
    run.begin({0, 3});
    EXPECT_TRUE(run.builds({0, 3}));
    run.halt({0, 3});
    run.expect_all_checked();
    EXPECT_LE(run.accounted(), run.next_mep);
}

TEST_P(NodesOver, ManyEpochsWithChangingMembersBuildNothingTwice) {
    System run(folded(3, GetParam()));
    for (UnitIndex i = 0; i < 12; ++i) {
        const Units lost = {i % 3};
        run.begin(first(3));
        EXPECT_TRUE(run.builds(first(3), 3));
        const Units left = without(first(3), lost);
        run.halt(left, lost);
        run.begin(left);
        EXPECT_TRUE(run.builds(left, 3));
        run.halt(left);
    }
    run.expect_all_checked();
    EXPECT_LE(run.accounted(), run.next_mep);
}

// ---- what a consumer sees -----------------------------------------------------------------------

/// A user's consumer of a unit's events, which checks them and remembers what each lacks.
class Consumer {
  public:
    Consumer(const NodeConfig& config, UnitIndex unit)
        : name_(buffer_name(config.run, unit, "output")) {
        for (std::uint32_t source = 0; source < config.fragment_bytes.size(); ++source) {
            auto made = protocol::MfpGenerator::make(
                {.source_id = static_cast<std::uint16_t>(source),
                 .packing = config.packing,
                 .align = config.align,
                 .sizes = std::make_shared<protocol::PatternSizes>(
                     config.sizes, config.fragment_bytes[source], config.seed)});
            expected_.push_back(std::move(*made));
        }
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    ~Consumer() { is_held = false; }

    std::atomic<bool> is_held = false;  ///< consumes nothing
    std::atomic<std::uint64_t> meps = 0;
    std::atomic<std::uint64_t> wrong = 0;
    std::atomic<std::uint64_t> repeated = 0;

    /// By MEP number, the sources whose MFPs are missing, and those that are empty.
    struct Lacks {
        std::set<std::uint32_t> missing;
        std::set<std::uint32_t> empty;
    };
    std::map<std::uint64_t, Lacks> seen() {
        const std::lock_guard lock(mutex_);
        return seen_;
    }

  private:
    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            auto attached = attach_reader(name_, now() + base::milliseconds(20));
            if (!attached) {
                continue;
            }
            BufferReader reader(attached->buffer());
            while (!reader.is_at_end() && !stop.stop_requested()) {
                if (is_held) {
                    std::this_thread::yield();
                } else if (const auto piece = reader.next()) {
                    take(*piece);
                    reader.acknowledge();
                } else {
                    reader.wait(now() + base::milliseconds(20));
                }
            }
        }
    }
    void take(const Piece& piece) {
        const std::span memory(reinterpret_cast<const std::uint8_t*>(piece.bytes.data()),
                               piece.bytes.size());
        const auto check = protocol::check_mep(expected_, memory);
        const auto mep = protocol::MepView::decode(memory);
        const bool is_right = check.fault == protocol::DataFault::none && mep &&
                              mep->header().mep == protocol::MepId{piece.tag};
        wrong += is_right ? 0 : 1;
        Lacks lacks;
        for (std::uint32_t source = 0; is_right && source < mep->sources(); ++source) {
            const auto state = mep->entry(source).state;
            if (state != protocol::MepState::complete) {
                (state == protocol::MepState::missing ? lacks.missing : lacks.empty).insert(source);
            }
        }
        const std::lock_guard lock(mutex_);
        repeated += seen_.emplace(piece.tag, lacks).second ? 0 : 1;
        ++meps;
    }

    std::string name_;
    std::vector<protocol::MfpGenerator> expected_;
    std::mutex mutex_;
    std::map<std::uint64_t, Lacks> seen_;
    std::jthread thread_;
};

TEST_P(NodesOver, WhatALostUnitDidNotWriteIsMissingAndNothingElse) {
    NodeConfig config = folded(3, GetParam());
    config.sink = SinkKind::user;
    std::vector<std::unique_ptr<Consumer>> consumers;
    System run(config);
    for (const UnitIndex unit : first(3)) {
        consumers.push_back(std::make_unique<Consumer>(config, unit));
    }
    const auto consume = [&](const Units& units) {
        std::map<UnitIndex, std::uint64_t> before;
        for (const UnitIndex unit : units) {
            before[unit] = consumers[unit]->meps;
        }
        return until([&] {
            return std::ranges::all_of(
                units, [&](UnitIndex unit) { return consumers[unit]->meps >= before[unit] + 20; });
        });
    };
    run.begin({0, 1, 2});
    EXPECT_TRUE(consume({0, 1, 2}));
    run.halt({0, 1}, {2});
    const std::uint64_t without_2_from = run.next_mep;
    run.begin({0, 1});
    EXPECT_TRUE(consume({0, 1}));
    run.halt({0, 1});
    const std::uint64_t with_2_from = run.next_mep;
    run.begin({0, 1, 2});
    EXPECT_TRUE(consume({0, 1, 2}));
    run.halt({0, 1, 2});
    EXPECT_TRUE(until([&] {
        return consumers[0]->meps + consumers[1]->meps + consumers[2]->meps ==
               run.sum("meps_delivered");
    }));

    std::set<std::uint64_t> all;
    for (const auto& consumer : consumers) {
        EXPECT_EQ(consumer->wrong, 0U);
        EXPECT_EQ(consumer->repeated, 0U);
        for (const auto& [mep, lacks] : consumer->seen()) {
            EXPECT_TRUE(all.insert(mep).second) << "MEP " << mep << " at two builders";
            EXPECT_TRUE(lacks.empty.empty());
            if (mep >= without_2_from && mep < with_2_from) {
                EXPECT_EQ(lacks.missing, std::set<std::uint32_t>{2}) << "MEP " << mep;
            } else if (mep >= with_2_from) {
                EXPECT_EQ(lacks.missing, std::set<std::uint32_t>{}) << "MEP " << mep;
            } else {
                EXPECT_TRUE(lacks.missing.empty() || lacks.missing == std::set<std::uint32_t>{2})
                    << "MEP " << mep;
            }
        }
    }
}

TEST_P(NodesOver, ABuilderWithAFullOutputDiscardsAndTheOthersGoOn) {
    NodeConfig config = folded(2, GetParam());
    config.sink = SinkKind::user;
    config.output_buffer = 64 << 10;
    System run(config);
    Consumer slow(config, 0);
    Consumer quick(config, 1);
    slow.is_held = true;
    run.begin({0, 1});
    EXPECT_TRUE(until([&] { return run.count(0, "meps_discarded") > 50; }));
    EXPECT_TRUE(until([&] { return quick.meps > 50; }));
    EXPECT_EQ(slow.meps, 0U);
    slow.is_held = false;
    EXPECT_TRUE(until([&] { return slow.meps > 50; }));
    run.halt({0, 1});
    EXPECT_EQ(run.accounted(), run.next_mep) << "none is left out";
    EXPECT_TRUE(until([&] { return slow.meps + quick.meps == run.sum("meps_delivered"); }));
    EXPECT_EQ(slow.wrong + quick.wrong + slow.repeated + quick.repeated, 0U);
}

TEST_P(NodesOver, ABuilderThatIsToldToWaitLosesNothing) {
    NodeConfig config = folded(2, GetParam());
    config.sink = SinkKind::user;
    config.output_buffer = 64 << 10;
    config.when_full = protocol::WhenFull::wait;
    System run(config);
    Consumer slow(config, 0);
    Consumer quick(config, 1);
    slow.is_held = true;
    run.begin({0, 1});
    EXPECT_TRUE(until([&] { return run.count(0, "waits") == 1 && quick.meps > 0; }));
    slow.is_held = false;
    EXPECT_TRUE(until([&] { return slow.meps > 50 && quick.meps > 50; }));
    run.halt({0, 1});
    EXPECT_EQ(run.sum("meps_discarded"), 0U);
    EXPECT_EQ(run.sum("meps_built"), run.accounted());
    EXPECT_EQ(run.accounted(), run.next_mep) << "none is left out";
    EXPECT_TRUE(until([&] { return slow.meps + quick.meps == run.accounted(); }));
    EXPECT_EQ(slow.wrong + quick.wrong + slow.repeated + quick.repeated, 0U);
}

/// The end of an epoch gives it half of its time, and then does without its room.
TEST_P(NodesOver, AStuckConsumerDoesNotKeepAnEpochFromItsEnd) {
    NodeConfig config = folded(2, GetParam());
    config.sink = SinkKind::user;
    config.output_buffer = 64 << 10;
    config.when_full = protocol::WhenFull::wait;
    System run(config);
    Consumer stuck(config, 0);
    const Consumer quick(config, 1);
    stuck.is_held = true;
    run.begin({0, 1});
    EXPECT_TRUE(until([&] { return run.count(0, "waits") == 1 && quick.meps > 0; }));
    run.halt({0, 1}, {}, base::seconds(4));
    EXPECT_EQ(run.accounted(), run.next_mep) << "none is left out";
    EXPECT_LE(run.count(0, "meps_discarded"), 4U);
    EXPECT_EQ(run.count(1, "meps_discarded"), 0U);
}

TEST_P(NodesOver, WhatAUsersSourceLeavesOutIsEmpty) {
    NodeConfig config = folded(2, GetParam());
    config.source = SourceKind::user;
    config.sink = SinkKind::user;
    constexpr std::uint64_t kMeps = 40;
    System run(config);
    Consumer one(config, 0);
    Consumer other(config, 1);
    run.begin({0, 1});
    std::vector<AttachedBuffer> streams;
    for (const UnitIndex unit : first(2)) {
        auto attached = attach_writer(buffer_name(config.run, unit, "stream-0"), now() + kHung);
        ASSERT_TRUE(attached) << attached.error().message;
        streams.push_back(std::move(*attached));
        const auto generator = protocol::MfpGenerator::make(
            {.source_id = static_cast<std::uint16_t>(unit),
             .packing = config.packing,
             .align = config.align,
             .sizes = std::make_shared<protocol::PatternSizes>(
                 config.sizes, config.fragment_bytes[unit], config.seed)});
        BufferWriter writer(streams.back().buffer());
        for (std::uint64_t mfp = 0; mfp < kMeps; ++mfp) {
            if (mfp % (3 + unit) == 1) {
                continue;  // left out
            }
            const std::uint64_t event = mfp * config.packing;
            const auto room = writer.reserve(generator->bytes_of(event));
            ASSERT_TRUE(room);
            ASSERT_TRUE(generator->generate(
                event, {reinterpret_cast<std::uint8_t*>(room->data()), room->size()}));
            writer.commit(mfp, static_cast<base::Bytes>(room->size()));
        }
    }
    EXPECT_TRUE(until([&] { return one.meps + other.meps == kMeps; }));
    run.halt({0, 1});
    EXPECT_EQ(run.next_mep, kMeps);
    EXPECT_EQ(one.wrong + other.wrong + one.repeated + other.repeated, 0U);
    for (auto* consumer : {&one, &other}) {
        for (const auto& [mep, lacks] : consumer->seen()) {
            std::set<std::uint32_t> left_out;
            for (std::uint32_t source = 0; source < 2; ++source) {
                if (mep % (3 + source) == 1) {
                    left_out.insert(source);
                }
            }
            EXPECT_EQ(lacks.empty, left_out) << "MEP " << mep;
            EXPECT_TRUE(lacks.missing.empty());
        }
    }
}

// ---- a unit that is stopped, and goes on when nobody expects it any more ------------------------

/// Unit 2 of 3 in a process of its own.
class StoppedUnit : public testing::TestWithParam<std::string> {
  protected:
    static NodeConfig config(const std::string& transport) {
        NodeConfig made = folded(3, transport);
        made.packing = 100;
        made.fragment_bytes = {20, 20, 10'000};  // unit 2 copies most of the time
        made.stream_buffer = base::Bytes{16} << 20;
        made.output_buffer = base::Bytes{8} << 20;
        return made;
    }

    struct Pipe {
        Pipe() { EXPECT_EQ(::pipe(ends.data()), 0); }
        std::array<int, 2> ends{};

        void put(std::span<const std::byte> bytes) const {
            const std::uint64_t length = bytes.size();
            ASSERT_EQ(::write(ends[1], &length, sizeof length),
                      static_cast<ssize_t>(sizeof length));
            ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()),
                      static_cast<ssize_t>(bytes.size()));
        }
        [[nodiscard]] std::vector<std::byte> get() const {
            std::uint64_t length = 0;
            if (::read(ends[0], &length, sizeof length) != static_cast<ssize_t>(sizeof length)) {
                return {};
            }
            std::vector<std::byte> bytes(length);
            for (std::size_t at = 0; at < length;) {
                const ssize_t got = ::read(ends[0], bytes.data() + at, length - at);
                if (got <= 0) {
                    return {};
                }
                at += static_cast<std::size_t>(got);
            }
            return bytes;
        }
    };

    /// Epoch 0 with all three; then it says, for each byte that it gets, how many MFPs it has
    /// written.
    static void be_unit_2(NodeConfig config, const Pipe& in, const Pipe& out) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        config.self = 2;
        auto node = Node::make(std::move(config));
        const auto address = node ? (*node)->prepare(0, first(3)) : std::vector<std::byte>{};
        if (!address) {
            return;
        }
        out.put(*address);
        std::vector<Transport::Peer> peers;
        for (UnitIndex unit = 0; unit < 3; ++unit) {
            peers.push_back({unit, in.get()});
        }
        if (!(*node)->connect(peers, kHung) || !(*node)->start(0)) {
            return;
        }
        while (!in.get().empty()) {
            const std::uint64_t written = count_of(**node, "mfps_written");
            out.put(std::as_bytes(std::span(&written, 1)));
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Transports, StoppedUnit, testing::ValuesIn(transports()),
                         [](const auto& name) {
                             return name.param == "shm" ? std::string("Shm") : std::string("Tcp");
                         });

TEST_P(StoppedUnit, DamagesNoEventWhenItGoesOn) {
    std::mt19937 random(1);
    for (int life = 0; life < 4; ++life) {
        const NodeConfig all = config(GetParam());
        const Pipe to;
        const Pipe from;
        const pid_t child = ::fork();
        if (child == 0) {
            be_unit_2(all, to, from);
            ::_exit(0);
        }
        {
            System run(all, {0, 1});
            run.at_addresses = [&](std::vector<Transport::Peer>& peers) {
                if (peers.size() == 3) {
                    for (UnitIndex unit = 0; unit < 3; ++unit) {
                        const auto its = std::ranges::find(peers, unit, &Transport::Peer::unit);
                        to.put(its->address);
                    }
                }
            };
            run.begin(first(3), {{2, from.get()}});
            EXPECT_TRUE(run.builds({0, 1}, 5 + random() % 20));
            ::kill(child, SIGSTOP);
            int status = 0;
            ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
            ASSERT_TRUE(WIFSTOPPED(status));
            run.halt({0, 1}, {2});
            // The same memory again, and again.
            for (int epoch = 0; epoch < 3; ++epoch) {
                run.begin({0, 1});
                EXPECT_TRUE(run.builds({0, 1}, 200));
                if (epoch == 1) {
                    ::kill(child, SIGCONT);
                    to.put(std::as_bytes(std::span("?", 1)));
                    EXPECT_EQ(from.get().size(), 8U) << "it lives, and writes what it has to write";
                    EXPECT_TRUE(run.builds({0, 1}, 200));
                }
                run.halt({0, 1});
            }
            run.expect_all_checked();
            EXPECT_LE(run.accounted(), run.next_mep);
        }
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        for (const auto* pipe : {&to, &from}) {
            ::close(pipe->ends[0]);
            ::close(pipe->ends[1]);
        }
    }
}

// ---- a unit that says what no unit says ---------------------------------------------------------

/// Unit 1 of 2, which knows the token and does as the test wants. Unit 0 is ours.
class BadUnit : public TransportEvents {
  public:
    explicit BadUnit(const std::string& transport) : name_(transport) {
        auto bell = Doorbell::create();
        EXPECT_TRUE(bell);
        doorbell_.emplace(std::move(*bell));
        memory_ = std::move(*SharedMemory::create("bad-unit", 1 << 20));
        source_ = std::move(*SharedMemory::create("bad-unit", 1 << 20));
    }
    std::vector<std::byte> prepare() {
        auto made = make_transport(name_, {.self = 1,
                                           .units = 2,
                                           .token = kToken,
                                           .epoch = 0,
                                           .arena = &memory_,
                                           .sources = {source_.bytes()},
                                           .doorbell = &*doorbell_,
                                           .waiting = Waiting::blocking});
        EXPECT_TRUE(made) << made.error().message;
        transport_ = std::move(*made);
        return transport_->address();
    }
    void connect(std::span<const Transport::Peer> peers) {
        const auto missing = transport_->connect(peers, now() + kHung);
        EXPECT_TRUE(missing && missing->empty());
    }
    void say(std::span<const std::byte> bytes) {
        EXPECT_TRUE(until([&] {
            transport_->poll(*this);
            return transport_->send(0, bytes);
        }));
    }
    void say(const protocol::UnitMessage& message) {
        std::vector<std::byte> bytes(protocol::encoded_bytes(message));
        protocol::encode_message(message, bytes);
        say(bytes);
    }
    void write(std::uint32_t immediate) {
        const Write write{.to = 0,
                          .bytes = source_.bytes().first(64),
                          .offset = 0,
                          .immediate = immediate,
                          .context = 0};
        const std::uint64_t before = done_;
        EXPECT_TRUE(until([&] {
            transport_->poll(*this);
            return transport_->write(write);
        }));
        EXPECT_TRUE(until([&] {
            transport_->poll(*this);
            return done_ > before;
        }));
    }
    void poll() { transport_->poll(*this); }

    void on_message(UnitIndex, std::span<const std::byte>) override {}
    void on_written(UnitIndex, std::uint32_t) override {}
    void on_write_done(std::uint64_t) override { ++done_; }
    void on_unreachable(UnitIndex) override { ADD_FAILURE() << "unit 0 is not reachable"; }

  private:
    std::string name_;
    std::optional<Doorbell> doorbell_;
    SharedMemory memory_;
    SharedMemory source_;
    std::unique_ptr<Transport> transport_;
    std::uint64_t done_ = 0;
};

TEST_P(NodesOver, WhatNoUnitSaysIsRefusedAndCounted) {
    using Kind = protocol::UnitMessage::Kind;
    const NodeConfig config = folded(2, GetParam());
    System run(config, {0});
    BadUnit bad(GetParam());
    std::jthread meanwhile;
    run.at_addresses = [&](std::vector<Transport::Peer>& peers) {
        if (peers.size() == 2) {
            meanwhile = std::jthread([&bad, peers] { bad.connect(peers); });
        }
    };
    run.begin({0, 1}, {{1, bad.prepare()}});
    meanwhile.join();

    std::uint64_t messages = 0;
    const auto say = [&](const protocol::UnitMessage& message) {
        bad.say(message);
        ++messages;
    };
    bad.say(std::vector<std::byte>(5, std::byte{0xff}));
    bad.say(std::vector<std::byte>(16, std::byte{0}));
    bad.say(std::vector<std::byte>(4'000, std::byte{1}));
    messages += 3;
    const std::array<base::Bytes, 1> one = {64};
    for (const Kind kind :
         {Kind::assign, Kind::last_assignment, Kind::done, Kind::request}) {  // of another protocol
        say({kind, 0, 0, one});
    }
    say({Kind::grant, 0, 0, one});          // unit 0's own MEP
    say({Kind::grant, 0, 1'000'001, one});  // nobody has announced it
    say({Kind::discard, 0, 1'000'001, {}});
    say({Kind::closing, 0, 1'000'001, {}});
    say({Kind::last_answer, 0, 1'000'001, {}});
    say({Kind::last_announcement, 0, 1, {}});  // nothing is being closed
    say({Kind::announce, 0, 1, one});          // its own MEP
    say({Kind::announce, 0, 2'000'000, one});  // far too early
    say({Kind::announce, 0, 0, {}});           // of no stream
    say({Kind::barrier, 999, 999, {}});
    EXPECT_TRUE(until([&] {
        bad.poll();
        return run.count(0, "refused_messages") == messages;
    })) << run.count(0, "refused_messages")
        << " of " << messages;

    const auto immediate = [](std::uint32_t epoch, std::uint32_t slot, std::uint32_t source) {
        return protocol::Immediate{.epoch = epoch, .slot = slot, .source = source}.encode();
    };
    bad.write(immediate(1, 0, 1));       // of another epoch
    bad.write(immediate(0, 0, 2));       // of a source that nobody has
    bad.write(immediate(0, 0, 65'535));  //
    bad.write(immediate(0, 0, 1));       // not granted
    bad.write(immediate(0, 1'023, 1));   //
    std::uint64_t writes = 5;
    if (GetParam() == "shm") {  // which knows who it was
        bad.write(immediate(0, 0, 0));
        ++writes;
    }
    EXPECT_TRUE(until([&] {
        bad.poll();
        return run.count(0, "refused_writes") == writes;
    })) << run.count(0, "refused_writes")
        << " of " << writes;

    run.halt({0}, {1});
    run.begin({0});
    EXPECT_TRUE(run.builds({0}));
    run.halt({0});
    run.expect_all_checked();
}

}  // namespace
}  // namespace daqloom::live
