// Requirements on every transport: a suite of tests that a transport joins with one line,
//
//     INSTANTIATE_TEST_SUITE_P(Shm, TransportConformance, testing::Values(TransportUnderTest{…}));
//
// Most tests drive units by turns in one thread: then what happens is the same each time.
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

struct TransportUnderTest {
    std::string name;
    std::function<base::expected<std::unique_ptr<Transport>>(const TransportConfig&)> make;
    /// Sends bytes to what `address` names, as a process that is not part of the run would.
    std::function<void(std::span<const std::byte> address, std::span<const std::byte> bytes)>
        disturb;
    /// Tells that a unit was killed; else that is left to the unit's own deadlines.
    bool tells_of_death = true;
    /// Limit on waits of an idle unit, in a tenth of a second.
    int most_waits = 50;
    /// Rounds in which all units send to all, as fast as they can.
    std::uint32_t rounds = 200;
};
inline std::ostream& operator<<(std::ostream& out, const TransportUnderTest& transport) {
    return out << transport.name;
}

class TransportConformance : public testing::TestWithParam<TransportUnderTest> {};

/// The end of a test that hangs.
base::Time test_deadline();

struct Received {
    UnitIndex from{};
    std::vector<std::byte> bytes;
};
struct Written {
    UnitIndex from{};
    std::uint32_t immediate = 0;
};

/// A unit of a run: its memory, its transport, and all its events.
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

/// Polls all by turns until it is so; false: it never was.
bool poll_until(std::span<TestUnit* const> units, const std::function<bool()>& is_so);
/// A unit's own loop until it is so: polls, and waits when there is nothing to do.
bool run_until(TestUnit& unit, const std::function<bool()>& is_so);

/// Units 0 … n − 1 of a run, connected, in this process.
class TestRun {
  public:
    TestRun(const TransportUnderTest& transport, std::uint32_t units,
            const TestUnit::Options& options);
    TestRun(const TransportUnderTest& transport, std::uint32_t units)
        : TestRun(transport, units, TestUnit::Options{}) {}

    TestUnit& operator[](std::uint32_t unit) { return *units_[unit]; }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(units_.size()); }

    bool poll_until(const std::function<bool()>& is_so) { return live::poll_until(all(), is_so); }
    /// Polls all until nothing happens any more.
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

/// Each of `units` to all of `units`, at the same time; what `connect` returned, by unit.
std::vector<std::vector<UnitIndex>> connect_all(std::span<TestUnit* const> units, base::Time until);

/// Bytes that show where they belong: different for each `seed` and place.
void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);
bool has_pattern(std::span<const std::byte> bytes, std::uint64_t seed);
std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed);
template <class T>
std::span<const std::byte> as_message(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

/// Poll all while there is no room.
void send(TestRun& run, std::uint32_t from, std::uint32_t to, std::span<const std::byte> bytes);
void write(TestRun& run, std::uint32_t from, const Write& write);

}  // namespace daqloom::live
