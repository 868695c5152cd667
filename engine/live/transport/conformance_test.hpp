// Requirements on every transport: a suite of tests, to which one line adds a transport,
//
//     INSTANTIATE_TEST_SUITE_P(Shm, TransportConformance, testing::Values(TransportUnderTest{…}));
//
// Most tests poll the units in turn in one thread, so that runs are reproducible.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>

#include "base/expected.hpp"
#include "live/memory/doorbell.hpp"
#include "live/memory/shared_memory.hpp"
#include "live/transport/transport.hpp"
#include "live/transport/units_test.hpp"

namespace daqloom::live {

/// C++ allocations of this thread so far; 0 if a sanitizer hides them.
std::uint64_t allocations_here();

struct TransportUnderTest {
    std::string name;
    std::function<base::expected<std::unique_ptr<Transport>>(const TransportConfig&)> make;
    /// Sends bytes to a unit's address from outside of the run.
    std::function<void(std::span<const std::byte> address, std::span<const std::byte> bytes)>
        disturb;
    /// Whether the transport reports a killed unit; otherwise units need their own deadlines.
    bool tells_of_death = true;
    /// Why the library crashes when a unit ends during a write; empty: it does not.
    std::string crash_in_write = {};
    /// Why the loss of a unit ends all others; empty: it does not.
    std::string ends_together = {};
    /// Limit on the number of waits of an idle unit within a tenth of a second.
    int most_waits = 50;
    /// Rounds in which each unit sends to all units, as fast as possible.
    std::uint32_t rounds = 200;
    /// C++ allocations so far, with those of the units' processes.
    std::function<std::uint64_t()> allocations = allocations_here;
};
inline std::ostream& operator<<(std::ostream& out, const TransportUnderTest& transport) {
    return out << transport.name;
}

class TransportConformance : public testing::TestWithParam<TransportUnderTest> {};

/// Deadline after which a test counts as hung.
base::Time test_deadline();

struct Received {
    UnitIndex from{};
    std::vector<std::byte> bytes;
};
struct Written {
    UnitIndex from{};
    std::uint32_t immediate = 0;
};

/// A unit of a run: its memory, its transport, and a record of all its events.
class TestUnit : public TransportEvents {
  public:
    struct Options {
        base::Bytes arena = base::Bytes{4} << 20;
        base::Bytes source = base::Bytes{4} << 20;
        Waiting waiting = Waiting::blocking;
        Token token = {std::byte{7}};
        std::uint32_t epoch = 1;
    };
    TestUnit(const TransportUnderTest& transport, std::uint32_t self, std::uint32_t units,
             const Options& options);
    TestUnit(const TransportUnderTest& transport, std::uint32_t self, std::uint32_t units)
        : TestUnit(transport, self, units, Options{}) {}

    Transport& transport() { return *transport_; }
    Doorbell& doorbell() { return *doorbell_; }
    std::span<std::byte> arena() { return arena_.bytes(); }
    std::span<std::byte> source() { return source_.bytes(); }
    void close() { transport_.reset(); }

    bool poll() { return transport_->poll(*this); }

    std::vector<Received> messages;
    std::vector<Written> written;
    std::vector<std::uint64_t> done;  ///< contexts of writes
    std::vector<UnitIndex> unreachable;

    /// Called besides, if set.
    std::function<void(UnitIndex, std::span<const std::byte>)> at_message;
    std::function<void(UnitIndex, std::uint32_t)> at_written;
    std::function<void(std::uint64_t)> at_done;
    bool keeps = true;  ///< messages and the like; off: only the calls above

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override;
    void on_written(UnitIndex from, std::uint32_t immediate) override;
    void on_write_done(std::uint64_t context) override;
    void on_unreachable(UnitIndex unit) override;

  private:
    SharedMemory arena_;
    SharedMemory source_;
    std::optional<Doorbell> doorbell_;
    std::unique_ptr<Transport> transport_;
};

/// Polls all units in turn until `is_so`. False: it was never true before the deadline.
bool poll_until(std::span<TestUnit* const> units, const std::function<bool()>& is_so);
/// Runs a unit's loop until `is_so`: polls, and waits when there is no work.
bool run_until(TestUnit& unit, const std::function<bool()>& is_so);

/// Connected units 0 … n − 1 of a run, in this process.
class TestRun {
  public:
    TestRun(const TransportUnderTest& transport, std::uint32_t units,
            const TestUnit::Options& options);
    TestRun(const TransportUnderTest& transport, std::uint32_t units)
        : TestRun(transport, units, TestUnit::Options{}) {}

    TestUnit& operator[](std::uint32_t unit) { return *units_[unit]; }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(units_.size()); }

    bool poll_until(const std::function<bool()>& is_so) { return live::poll_until(all(), is_so); }
    /// Polls all units until no events occur any more.
    void settle();

  private:
    [[nodiscard]] std::vector<TestUnit*> all() const {
        std::vector<TestUnit*> pointers;
        for (const auto& unit : units_) {
            pointers.push_back(unit.get());
        }
        return pointers;
    }

    std::vector<std::unique_ptr<TestUnit>> units_;
};

/// Connects all `units` to each other at the same time. Returns the results of `connect`, by unit.
std::vector<std::vector<UnitIndex>> connect_all(std::span<TestUnit* const> units, base::Time until);

/// Fills with bytes that differ for each `seed` and position, so that misplaced bytes show.
void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);
bool has_pattern(std::span<const std::byte> bytes, std::uint64_t seed);
std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed);
template <class T>
std::span<const std::byte> as_message(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

/// Sends; polls all units while there is no space.
void send(TestRun& run, std::uint32_t from, std::uint32_t to, std::span<const std::byte> bytes);
void write(TestRun& run, std::uint32_t from, const Write& write);

}  // namespace daqloom::live
