#include "ethernet/switch_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.hpp"

namespace daqloom::ethernet {
namespace {

using base::Bytes;

/// Charges frames to one port until a frame does not fit; returns the number of frames charged.
int fill(SwitchBuffer& buffer, std::uint32_t port, Bytes frame) {
    int frames = 0;
    while (buffer.fits(port, frame)) {
        buffer.charge(port, frame);
        ++frames;
    }
    return frames;
}

SwitchConfig shared_memory(Bytes buffer, Bytes dedicated = 0) {
    SwitchConfig config;
    config.model = BufferModel::shared_memory;
    config.buffer = buffer;
    config.dedicated = dedicated;
    return config;
}

/// The first cell of 256 B holds 192 B of the frame, after 64 B of metadata.
TEST(SharedMemory, CountsCellsWithMetadataInTheFirstOrBytes) {
    struct Case {
        Bytes cell;
        Bytes metadata;
        std::vector<std::pair<Bytes, std::int64_t>> cells_by_frame;
    };
    for (const Case& each :
         std::vector<Case>{// (1518 + 64) / 256 = 6.2, (9018 + 64) / 256 = 35.5
                           {256, 64, {{64, 1}, {192, 1}, {193, 2}, {1518, 7}, {9018, 36}}},
                           {208, 0, {{208, 1}, {209, 2}, {1518, 8}}},  // 7.3
                           {0, 0, {{1518, 1518}}}}) {
        SwitchConfig config = shared_memory(1 << 20);
        config.cell_size = each.cell;
        config.cell_metadata = each.metadata;
        const SwitchBuffer buffer(config, 1);
        for (const auto& [frame, cells] : each.cells_by_frame) {
            EXPECT_EQ(buffer.memory().cells_of(frame), cells) << frame;
        }
    }
}

/// A memory of 10 kB: 1000 B dedicated to each of 4 ports, and a pool of 6000 B.
TEST(SharedMemory, TakesTheDedicatedPartFirstAndThenThePool) {
    SwitchBuffer buffer(shared_memory(10'000, 4'000), 4);
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(buffer.fits(0, 100));
        buffer.charge(0, 100);
        EXPECT_EQ(buffer.memory().used(), 0);
    }
    buffer.charge(0, 100);
    EXPECT_EQ(buffer.memory().used(), 100);
    EXPECT_EQ(buffer.memory().pool(), 6'000);
    buffer.release(0, 100);
    EXPECT_EQ(buffer.memory().used(), 0);
    EXPECT_EQ(buffer.held(), 1'000);
    // A frame may lie partly in the dedicated part.
    buffer.charge(1, 900);
    buffer.charge(1, 300);
    EXPECT_EQ(buffer.memory().used(), 200);
    buffer.release(1, 900);
    EXPECT_EQ(buffer.memory().used(), 0);
}

/// A memory with 1000 B dedicated to each of 4 ports, and alpha 1/2. Port 0 takes 8 frames of 500
/// B: 3000 B beyond its dedicated part. For the last frame, 2500 B of the pool are used by the
/// port, and more than twice as much must be free.
TEST(SharedMemory, ReturnsTheLeastBufferForTheLastFrame) {
    SwitchConfig config = shared_memory(1'000'000, 4'000);
    config.alpha = 0.5;
    SwitchBuffer buffer(config, 4);
    buffer.charge(0, 500);
    EXPECT_EQ(buffer.memory().least_buffer(0, 500), 4'000);
    for (int i = 1; i < 8; ++i) {
        buffer.charge(0, 500);
    }
    EXPECT_EQ(buffer.memory().least_buffer(0, 500), 4'000 + 2'500 + 5'001);
    // Port 1 first fills its dedicated part; of its second frame, 200 B lie in the pool.
    buffer.charge(1, 900);
    EXPECT_EQ(buffer.memory().least_buffer(1, 900), 4'000);
    buffer.charge(1, 300);
    EXPECT_EQ(buffer.memory().least_buffer(1, 300), 4'000 + 3'000 + 200);
}

/// Equal frames fit into a switch with just the least buffer, but not with one cell less.
TEST(SharedMemory, AdmitsInTheLeastBufferAndInNoSmallerOne) {
    base::RandomStream random(1, "least buffer");
    for (const double alpha : {0.0625, 0.3, 1.0, 8.0, 1e6}) {
        SwitchConfig config = shared_memory(100'000'000, 12'000);
        config.alpha = alpha;
        config.cell_size = 256;
        config.cell_metadata = 64;
        SwitchBuffer large(config, 4);
        std::vector<std::pair<std::uint32_t, Bytes>> charged;
        for (int i = 0; i < 60; ++i) {
            const auto port = static_cast<std::uint32_t>(random.uniform_int(4));
            const auto frame = static_cast<Bytes>(64 + random.uniform_int(9'000));
            large.charge(port, frame);
            const Bytes least = large.memory().least_buffer(port, frame);
            for (const Bytes size : {least, least - 256}) {
                config.buffer = size;
                SwitchBuffer other(config, 4);
                for (const auto& [before, bytes] : charged) {
                    other.charge(before, bytes);
                }
                EXPECT_EQ(other.fits(port, frame), size == least || least == config.dedicated);
            }
            charged.emplace_back(port, frame);
        }
    }
}

/// Choudhury and Hahne (1998), eq. 3: each of n greedy queues q may grow while q < α·(B − n·q), so
/// that all settle at q = α·(B − n·q), which is q = α·B / (1 + n·α). In whole cells, a queue that
/// is refused at q while j < n others are at q + 1 has q >= α·(B − n·q − j), at most one cell off.
TEST(SharedMemory, GreedyPortsSettleAtTheFixedPointOfTheDynamicThreshold) {
    constexpr std::int64_t cells = 100'000;
    for (const double alpha : {0.0625, 0.5, 1.0, 2.0, 8.0}) {
        for (const std::uint32_t n : {1U, 2U, 5U, 31U}) {
            SwitchConfig config = shared_memory(cells * 256);
            config.cell_size = 256;
            config.alpha = alpha;
            SwitchBuffer buffer(config, n);
            for (bool grown = true; grown;) {
                grown = false;
                for (std::uint32_t port = 0; port < n; ++port) {
                    if (buffer.fits(port, 256)) {
                        buffer.charge(port, 256);
                        grown = true;
                    }
                }
            }
            const double expected = alpha * cells / (1 + n * alpha);
            for (std::uint32_t port = 0; port < n; ++port) {
                EXPECT_NEAR(static_cast<double>(buffer.memory().cells(port)), expected, 1.0)
                    << n << " ports, alpha " << alpha;
            }
        }
    }
}

/// One greedy port holds α·B / (1 + α) = 2/3 of the pool at α = 2. A second port then finds 1/3
/// free and may take cells while q < 2·(B/3 − q), up to 2/9 of the pool; the first gets no more.
TEST(SharedMemory, ALateComerFindsRoomThatTheThresholdKeptFree) {
    SwitchConfig config = shared_memory(90'000);
    config.cell_size = 1;
    config.alpha = 2;
    SwitchBuffer buffer(config, 2);
    EXPECT_NEAR(fill(buffer, 0, 1), 60'000, 1);
    EXPECT_NEAR(fill(buffer, 1, 1), 20'000, 1);
    EXPECT_FALSE(buffer.fits(0, 1));
}

/// Numbers of frames of each size that fit, one port per size, filled one after the other. When a
/// frame has left port 0, one more fits there.
std::vector<int> fitting(const SwitchConfig& config, const std::vector<Bytes>& frames) {
    SwitchBuffer buffer(config, static_cast<std::uint32_t>(frames.size()));
    std::vector<int> counts;
    for (std::uint32_t port = 0; port < frames.size(); ++port) {
        counts.push_back(fill(buffer, port, frames[port]));
    }
    buffer.release(0, frames[0]);
    EXPECT_EQ(fill(buffer, 0, frames.back()), 1);
    return counts;
}

TEST(SwitchBuffer, HoldsAsManyFramesAsItsBoundsAllow) {
    using Counts = std::vector<int>;
    const std::vector<Bytes> full(2, 1518);
    // Limits per output in packets of any length, or in bytes; then one limit in bytes for all.
    EXPECT_EQ(fitting({.model = BufferModel::drop_tail, .queue_packets = 14}, {9018, 64}),
              (Counts{14, 14}));
    SwitchConfig config{.model = BufferModel::drop_tail, .port_limit = 10 * 1518};
    EXPECT_EQ(fitting(config, full), (Counts{10, 10}));
    config.buffer = 15 * 1518;
    EXPECT_EQ(fitting(config, full), (Counts{10, 5}));
    EXPECT_EQ(fitting({.model = BufferModel::voq, .buffer = 20 * 1518 + 1517}, full),
              (Counts{20, 0}));
    config = shared_memory(10'240'000);
    config.cell_size = 256;
    config.port_limit = 25'600;  // 100 cells: 14 frames of 7 cells each
    config.cell_metadata = 64;
    config.alpha = 1e9;
    EXPECT_EQ(fitting(config, full), (Counts{14, 14}));
    // Port 0 takes its 1000 B and all 6000 B of the pool; the others get their dedicated part.
    config = shared_memory(10'000, 4'000);
    config.alpha = 1e9;
    EXPECT_EQ(fitting(config, {100, 100, 100, 100}), (Counts{70, 10, 10, 10}));
    config.dedicated_ports = 40;  // 100 B for each, of which two are wired
    EXPECT_EQ(fitting(config, {100, 100}), (Counts{61, 1}));
}

TEST(InfiniteBuffer, TakesEverything) {
    SwitchBuffer buffer({}, 1);
    for (int i = 0; i < 1'000'000; ++i) {
        ASSERT_TRUE(buffer.fits(0, 9018));
        buffer.charge(0, 9018);
    }
    EXPECT_EQ(buffer.held(), Bytes{9018} * 1'000'000);
}

TEST(SwitchBuffer, CountsDropsByPort) {
    SwitchBuffer buffer({}, 2);
    buffer.count_drop(1, 1518);
    buffer.count_drop(1, 64);
    EXPECT_EQ(buffer.port(0).drops, 0U);
    EXPECT_EQ(buffer.port(1).drops, 2U);
    EXPECT_EQ(buffer.port(1).dropped_bytes, 1582);
}

/// A random switch with a buffer of a few dozen frames.
SwitchConfig draw_config(base::RandomStream& random, std::uint32_t ports) {
    SwitchConfig config;
    config.model = static_cast<BufferModel>(random.uniform_int(4));
    config.buffer = static_cast<Bytes>(10'000 + random.uniform_int(100'000));
    config.dedicated = static_cast<Bytes>(random.uniform_int(10'000));
    config.dedicated_ports =
        static_cast<std::uint32_t>(random.uniform_int(2) * (ports + random.uniform_int(9)));
    config.alpha = std::exp2(static_cast<double>(random.uniform_int(8)) - 4);
    config.port_limit = static_cast<Bytes>(random.uniform_int(2) * 20'000);
    config.cell_size = std::vector<Bytes>{0, 208, 256}[random.uniform_int(3)];
    config.cell_metadata = config.cell_size == 256 ? 64 : 0;
    config.queue_packets = static_cast<std::uint32_t>(random.uniform_int(2) * 15);
    return config;
}

Bytes draw_frame(base::RandomStream& random) {
    return static_cast<Bytes>(64 + random.uniform_int(1455));
}

/// `fits` is called with counters that still include departed frames. If a frame fits then, it must
/// also fit with these removed; else a frame without space could be admitted.
TEST(SwitchBuffer, WhateverFitsFitsWithLessOnTheBooks) {
    base::RandomStream random(1, "monotone");
    constexpr std::uint32_t ports = 3;
    std::uint64_t granted = 0;
    std::uint64_t only_less_fits = 0;
    for (int round = 0; round < 300; ++round) {
        const SwitchConfig config = draw_config(random, ports);
        SwitchBuffer more(config, ports);
        SwitchBuffer less(config, ports);
        for (int i = 0; i < 200; ++i) {
            const auto port = static_cast<std::uint32_t>(random.uniform_int(ports));
            const Bytes frame = draw_frame(random);
            if (more.fits(port, frame)) {
                ++granted;
                ASSERT_TRUE(less.fits(port, frame));
                more.charge(port, frame);
                if (random.uniform() < 0.7) {
                    less.charge(port, frame);
                }
            } else if (less.fits(port, frame)) {
                ++only_less_fits;
            }
        }
    }
    EXPECT_GT(granted, 5'000U);
    EXPECT_GT(only_less_fits, 1'000U);
}

TEST(SwitchBuffer, TheBooksBalanceUnderAnySequence) {
    base::RandomStream random(2, "books");
    constexpr std::uint32_t ports = 4;
    for (int round = 0; round < 200; ++round) {
        const SwitchConfig config = draw_config(random, ports);
        SwitchBuffer buffer(config, ports);
        std::vector<std::pair<std::uint32_t, Bytes>> inside;
        for (int i = 0; i < 300; ++i) {
            const auto port = static_cast<std::uint32_t>(random.uniform_int(ports));
            const Bytes frame = draw_frame(random);
            if (!inside.empty() && random.uniform() < 0.4) {
                std::swap(inside[random.uniform_int(inside.size())], inside.back());
                buffer.release(inside.back().first, inside.back().second);
                inside.pop_back();
            } else if (buffer.fits(port, frame)) {
                buffer.charge(port, frame);
                inside.emplace_back(port, frame);
            }
        }
        Bytes held = 0;
        std::vector<Bytes> held_by(ports);
        std::vector<std::uint32_t> frames_by(ports);
        std::vector<std::int64_t> cells_by(ports);
        for (const auto& [port, frame] : inside) {
            held += frame;
            held_by[port] += frame;
            frames_by[port] += 1;
            cells_by[port] += buffer.memory().cells_of(frame);
        }
        ASSERT_EQ(buffer.held(), held);
        std::int64_t cells = 0;
        std::int64_t beyond_dedicated = 0;
        const Bytes cell = std::max<Bytes>(config.cell_size, 1);
        const std::int64_t own = config.dedicated /
                                 (config.dedicated_ports == 0 ? ports : config.dedicated_ports) /
                                 cell;
        for (std::uint32_t port = 0; port < ports; ++port) {
            ASSERT_EQ(buffer.port(port).held, held_by[port]);
            ASSERT_EQ(buffer.port(port).frames, frames_by[port]);
            cells += cells_by[port];
            beyond_dedicated += std::max<std::int64_t>(cells_by[port] - own, 0);
        }
        if (config.model == BufferModel::shared_memory) {
            ASSERT_EQ(buffer.memory().taken(), buffer.memory().freed() + cells);
            ASSERT_EQ(buffer.memory().used(), beyond_dedicated);
            ASSERT_LE(buffer.memory().used(), buffer.memory().pool());
            ASSERT_LE(cells * cell, config.buffer);
        }
        if (config.model == BufferModel::voq || config.model == BufferModel::drop_tail) {
            ASSERT_LE(held, config.buffer);
        }
    }
}

}  // namespace
}  // namespace daqloom::ethernet
