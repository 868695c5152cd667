// The poll loop over devices that are rings in memory: a test enqueues frames as input for a port.
#include "softswitch/io/dpdk_poll_loop.hpp"

#include <gtest/gtest.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>

#include "base/failure_test.hpp"
#include "softswitch/io/dpdk_eal.hpp"

namespace daqloom::softswitch::io {
namespace {

/// Starts EAL once for all tests of the process.
void start_eal() {
    static const auto eal = [] {
        const std::vector<std::string> arguments{"--no-huge",   "--no-shconf",    "--no-pci", "-m",
                                                 "128",         "--no-telemetry", "-l",       "0",
                                                 "--log-level", "error"};
        return base::value_of(Eal::start(arguments));
    }();
}

constexpr std::uint32_t kBuffers = 2'047;

/// A switch whose ports are all connected to the test.
class Wired {
  public:
    explicit Wired(const ForwarderConfig& config)
        : ends_(config.output.ports),
          devices_(opened()),
          forwarder_(Forwarder::make(config).value()),
          loop_(forwarder_, devices_) {}

    void put(std::size_t port, const std::vector<std::uint8_t>& frame) {
        rte_mbuf* buffer = rte_pktmbuf_alloc(devices_.buffers());
        ASSERT_NE(buffer, nullptr);
        std::memcpy(rte_pktmbuf_append(buffer, static_cast<std::uint16_t>(frame.size())),
                    frame.data(), frame.size());
        ASSERT_EQ(rte_ring_enqueue(ends_[port].to_switch, buffer), 0);
    }
    /// Enqueues `count` copies of a frame, with marks from 0 on.
    void put_marked(std::size_t port, std::vector<std::uint8_t> frame, int count) {
        for (int mark = 0; mark < count; ++mark) {
            frame.back() = static_cast<std::uint8_t>(mark);
            put(port, frame);
        }
    }
    void turn_until_idle() {
        while (loop_.turn()) {
        }
    }
    /// Marks (last bytes) of the frames that left by a port.
    std::vector<int> taken(std::size_t port) {
        std::vector<int> found;
        void* object = nullptr;
        while (rte_ring_dequeue(ends_[port].from_switch, &object) == 0) {
            auto* const buffer = static_cast<rte_mbuf*>(object);
            found.push_back(*rte_pktmbuf_mtod_offset(buffer, std::uint8_t*, buffer->data_len - 1));
            rte_pktmbuf_free(buffer);
        }
        return found;
    }
    [[nodiscard]] std::uint32_t buffers_free() const {
        return rte_mempool_avail_count(devices_.buffers());
    }
    [[nodiscard]] PollLoop& loop() { return loop_; }
    [[nodiscard]] Forwarder& forwarder() { return forwarder_; }
    [[nodiscard]] Devices& devices() { return devices_; }

  private:
    struct End {
        rte_ring* to_switch = nullptr;
        rte_ring* from_switch = nullptr;
    };

    Devices opened() {
        start_eal();
        static int made = 0;
        DevicesConfig config;
        config.buffers = kBuffers;
        for (End& end : ends_) {
            const std::string name = "end" + std::to_string(made++);
            end.to_switch = rte_ring_create((name + "in").c_str(), 256, 0, 0);
            end.from_switch = rte_ring_create((name + "out").c_str(), 256, 0, 0);
            const int id =
                rte_eth_from_rings(name.c_str(), &end.to_switch, 1, &end.from_switch, 1, 0);
            std::array<char, RTE_ETH_NAME_MAX_LEN> device{};
            rte_eth_dev_get_name_by_port(static_cast<std::uint16_t>(id), device.data());
            config.names.emplace_back(device.data());
        }
        return base::value_of(Devices::open(config));
    }

    std::vector<End> ends_;
    Devices devices_;
    Forwarder forwarder_;
    PollLoop loop_;
};

ForwarderConfig config_of(std::uint16_t ports, RingConfig each = {}) {
    ForwarderConfig config;
    config.output.ports = ports;
    config.output.rings.assign(ports, each);
    for (std::uint16_t port = 0; port < ports; ++port) {
        config.output.rings[port].port = PortIndex(port);
    }
    return config;
}

/// A frame of 60 B from host `from` to host `to`; 255: broadcast.
std::vector<std::uint8_t> frame(int from, int to, int mark = 0) {
    std::vector<std::uint8_t> bytes(60);
    if (to == 255) {
        std::fill_n(bytes.begin(), 6, std::uint8_t{0xff});
    } else {
        bytes[0] = 2;
        bytes[5] = static_cast<std::uint8_t>(to);
    }
    bytes[6] = 2;
    bytes[11] = static_cast<std::uint8_t>(from);
    bytes[12] = 0x88;
    bytes[13] = 0xb5;
    bytes[59] = static_cast<std::uint8_t>(mark);
    return bytes;
}

TEST(PollLoop, FloodsLearnsAndForwards) {
    Wired wired(config_of(3));
    wired.put(0, frame(1, 2, 10));
    EXPECT_TRUE(wired.loop().turn());
    EXPECT_EQ(wired.taken(1), (std::vector<int>{10}));
    EXPECT_EQ(wired.taken(2), (std::vector<int>{10}));
    EXPECT_TRUE(wired.taken(0).empty());
    wired.put(2, frame(2, 1, 11));
    wired.loop().turn();
    EXPECT_EQ(wired.taken(0), (std::vector<int>{11}));
    EXPECT_TRUE(wired.taken(1).empty());
    EXPECT_FALSE(wired.loop().turn());
    EXPECT_EQ(wired.buffers_free(), kBuffers);
    EXPECT_EQ(wired.loop().counters().received, 2U);
    EXPECT_EQ(wired.loop().counters().sent, 3U);
}

/// Copies of a frame share a buffer, which is freed when the last copy has been sent.
TEST(PollLoop, GivesEveryBufferBack) {
    Wired wired(config_of(4, {.packets = 8}));
    for (int round = 0; round < 100; ++round) {
        for (std::size_t port = 0; port < 4; ++port) {
            wired.put_marked(port, frame(static_cast<int>(port), 255), 20);  // more than rings hold
        }
        wired.turn_until_idle();
        for (std::size_t port = 0; port < 4; ++port) {
            wired.taken(port);
        }
        ASSERT_EQ(wired.buffers_free(), kBuffers) << round;
    }
    EXPECT_GT(wired.forwarder().counters(PortIndex(0)).full, 0U);
}

/// A port whose device accepts no frames delays no other port; its ring fills and drops frames.
TEST(PollLoop, AStuckPortHurtsNoOther) {
    Wired wired(config_of(3, {.packets = 64}));
    wired.forwarder().fix_address({0x020000000001}, 0, PortIndex(1));
    wired.forwarder().fix_address({0x020000000002}, 0, PortIndex(2));
    std::size_t through = 0;
    for (int i = 0; i < 1'000; ++i) {
        wired.put(0, frame(9, 1, 0));  // its ring of 256 is full, and stays so
        wired.put(0, frame(9, 2, 0));
        wired.loop().turn();
        through += wired.taken(2).size();
    }
    EXPECT_EQ(through, 1'000U);
    EXPECT_EQ(wired.taken(1).size(), 255U);  // what a ring of DPDK of 256 holds
    const RingCounters& stuck = wired.forwarder().queues().counters(RingIndex(1));
    // 255 frames in the device, a batch that the device does not accept, and 64 frames in the ring.
    EXPECT_EQ(stuck.packets, 255U + PollLoop::kBatch + 64);
    EXPECT_EQ(stuck.drops, 1'000U - stuck.packets);
}

TEST(PollLoop, AFullRingDelaysNoOtherOfItsPortByMoreThanABatch) {
    // At port 1, host 2 has a full ring with the lowest pace, and host 3 a ring without a pace.
    ForwarderConfig config = config_of(2);
    config.output.rings.push_back({.port = PortIndex(1), .rate = kLeastPace, .packets = 100});
    config.output.rings.push_back({.port = PortIndex(1)});
    Wired wired(config);
    for (const std::uint32_t host : {2U, 3U}) {
        Match match;
        match.destination = MacAddress{0x020000000000U + host};
        ASSERT_TRUE(wired.forwarder().set_rule(
            match, 0, {.what = Action::What::queue, .ring = RingIndex(host)}));
    }
    wired.put_marked(0, frame(1, 2), 200);
    wired.turn_until_idle();
    EXPECT_EQ(wired.forwarder().queues().held_packets(RingIndex(2)), 100U);
    std::ignore = wired.taken(1);
    // A frame behind a batch for the full ring leaves in the turn in which it arrives.
    wired.put_marked(0, frame(1, 2), static_cast<int>(PollLoop::kBatch) - 1);
    wired.put(0, frame(1, 3, 3));
    wired.loop().turn();
    EXPECT_EQ(wired.taken(1), (std::vector<int>{3}));
    EXPECT_EQ(wired.forwarder().queues().counters(RingIndex(3)).drops, 0U);
}

/// The port that fills a long ring gets pause frames, and an end of the pause once it is short.
TEST(PollLoop, PausesThePortThatFillsALongRing) {
    Wired wired(config_of(3, {.packets = 100}));
    wired.forwarder().fix_address({0x020000000001}, 0, PortIndex(1));
    wired.forwarder().queues().set_rate(RingIndex(1), kLeastPace);
    wired.forwarder().set_pause(RingIndex(1), 10);
    wired.put_marked(0, frame(9, 1), 30);
    wired.loop().turn();
    EXPECT_EQ(wired.loop().counters().pauses, 1U);
    EXPECT_EQ(wired.taken(0).size(), 1U);
    EXPECT_TRUE(wired.taken(2).empty());
    wired.forwarder().queues().drain([&](std::uint64_t handle) { wired.loop().drop(handle); });
    wired.loop().turn();
    EXPECT_EQ(wired.taken(0).size(), 1U);
    EXPECT_EQ(wired.loop().counters().pauses, 2U);
    EXPECT_FALSE(wired.forwarder().pauses().is_paused(PortIndex(0)));
    wired.taken(1);
    EXPECT_EQ(wired.buffers_free(), kBuffers);
}

TEST(PollLoop, BuffersHeldAtTheEndAreFreed) {
    Wired wired(config_of(2, {.rate = {1'000}}));
    wired.put_marked(0, frame(1, 255), 50);
    {
        PollLoop loop(wired.forwarder(), wired.devices());
        loop.turn();
        loop.turn();
        EXPECT_EQ(wired.forwarder().queues().held_packets(RingIndex(1)), 49U);
    }
    wired.taken(1);
    EXPECT_EQ(wired.buffers_free(), kBuffers);
}

/// The cores of a switch, over its devices.
class Cores {
  public:
    Cores(const ForwarderConfig& config, Devices& devices, std::uint32_t cores)
        : exchange_(Exchange::make(cores, 256).value()) {
        for (std::uint32_t core = 0; core < cores; ++core) {
            ForwarderConfig its = config;
            its.share = {.number = core, .cores = cores};
            forwarders_.push_back(std::make_unique<Forwarder>(Forwarder::make(its).value()));
            loops_.push_back(std::make_unique<PollLoop>(*forwarders_.back(), devices, &exchange_));
        }
    }
    PollLoop& loop(std::size_t core) { return *loops_[core]; }
    Forwarder& forwarder(std::size_t core) { return *forwarders_[core]; }
    /// Gives each core turns until no core has work.
    void turn() {
        bool moved = true;
        while (moved) {
            moved = false;
            for (const std::unique_ptr<PollLoop>& loop : loops_) {
                moved = loop->turn() || moved || loop->waiting() > 0;
            }
        }
    }

  private:
    Exchange exchange_;
    std::vector<std::unique_ptr<Forwarder>> forwarders_;
    std::vector<std::unique_ptr<PollLoop>> loops_;  ///< end before the forwarders
};

TEST(PollLoop, SeveralCoresAreOneSwitch) {
    constexpr std::uint16_t kPorts = 5;
    Wired wired(config_of(kPorts));
    Cores cores(config_of(kPorts), wired.devices(), 3);
    // All cores learn the ports of hosts from one broadcast of each host.
    for (std::uint16_t port = 0; port < kPorts; ++port) {
        wired.put(port, frame(port, 255, port));
        cores.turn();
        for (std::uint16_t other = 0; other < kPorts; ++other) {
            EXPECT_EQ(wired.taken(other),
                      other == port ? std::vector<int>{} : std::vector<int>{port});
        }
    }
    // Frames from one port to another stay in order, and leave by no other port.
    std::vector<int> sent(100);
    std::iota(sent.begin(), sent.end(), 0);
    for (std::uint16_t from = 0; from < kPorts; ++from) {
        for (std::uint16_t to = 0; to < kPorts; ++to) {
            if (from == to) {
                continue;
            }
            wired.put_marked(from, frame(from, to), 100);
            cores.turn();
            EXPECT_EQ(wired.taken(to), sent);
        }
    }
    std::uint64_t flooded = 0;
    for (std::uint16_t port = 0; port < kPorts; ++port) {
        EXPECT_TRUE(wired.taken(port).empty());
        for (std::size_t core = 0; core < 3; ++core) {
            const PortCounters& counted = cores.forwarder(core).counters(PortIndex(port));
            flooded += counted.flooded;
            // Each port's frames are received by the core that owns the port.
            EXPECT_EQ(counted.packets, core == port % 3U ? 1 + 4 * 100U : 0U);
        }
    }
    EXPECT_EQ(flooded, std::uint64_t{kPorts});
    EXPECT_EQ(wired.buffers_free(), kBuffers);
}

TEST(PollLoop, ALateCoreCountsTheFramesThatItLoses) {
    Wired wired(config_of(2));
    std::uint64_t sent = 0;
    {
        Cores cores(config_of(2), wired.devices(), 2);
        const auto dropped = [&] { return cores.loop(0).counters().behind; };
        while (dropped() == 0 && wired.buffers_free() > 64) {
            wired.put_marked(0, frame(0, 255), 32);
            sent += 32;
            cores.loop(0).turn();  // the other one does not turn
        }
        EXPECT_EQ(dropped(), sent + 1 - 255);
        EXPECT_EQ(cores.loop(1).waiting() + dropped(), sent + 1);  // and where the host is
        std::size_t came = 0;
        while (cores.loop(1).turn() || cores.loop(1).waiting() > 0) {
            came += wired.taken(1).size();
        }
        came += wired.taken(1).size();
        EXPECT_EQ(came + dropped(), sent);
        wired.put_marked(0, frame(0, 255), 5);  // held only by the ring between the cores
        cores.loop(0).turn();
    }
    EXPECT_EQ(wired.buffers_free(), kBuffers);
}

TEST(PollLoop, DoesCallsBetweenTwoTurns) {
    Wired wired(config_of(2));
    std::thread runs([&] { wired.loop().run(base::milliseconds(1)); });
    std::thread::id where;
    for (int i = 0; i < 100; ++i) {
        wired.loop().do_between([&] {
            where = std::this_thread::get_id();
            wired.forwarder().queues().set_rate(RingIndex(1), {1'000'000 + i});
        });
        EXPECT_EQ(where, runs.get_id());
    }
    wired.loop().stop();
    runs.join();
}

/// A loop that is not woken would sleep for an hour in each case.
TEST(PollLoop, IsWokenByCallsAndByItsEnd) {
    Wired wired(config_of(2));
    std::thread runs([&] { wired.loop().run(base::seconds(3600)); });
    std::uint64_t turns = 0;
    while (turns < 200) {  // it sleeps after a hundred without a frame
        wired.loop().do_between([&] { turns = wired.loop().counters().turns; });
    }
    for (int call = 0; call < 20; ++call) {
        wired.loop().do_between([] {});
    }
    wired.loop().stop();
    runs.join();
}

TEST(Devices, ThatAreNotThereAreNamed) {
    start_eal();
    DevicesConfig config;
    config.names = {"net_nowhere"};
    config.buffers = 255;
    EXPECT_TRUE(base::fails_with("no device net_nowhere", Devices::open(config)));
}

}  // namespace
}  // namespace daqloom::softswitch::io
