// Units of the engine: integer picoseconds, integer bytes, integer bits per second.
//
// Simulated and real time have the same unit, so that the state machines in protocol/ run in
// simulated and in real time. 2^63 ps are 106 days.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace daqloom::base {

/// A point in time or a duration, in picoseconds.
struct Time {
    std::int64_t ps = 0;

    friend constexpr auto operator<=>(Time, Time) = default;
    friend constexpr Time operator+(Time a, Time b) { return {a.ps + b.ps}; }
    friend constexpr Time operator-(Time a, Time b) { return {a.ps - b.ps}; }
    friend constexpr Time operator*(Time a, std::int64_t n) { return {a.ps * n}; }
    friend constexpr Time operator/(Time a, std::int64_t n) { return {a.ps / n}; }
    constexpr Time& operator+=(Time other) {
        ps += other.ps;
        return *this;
    }

    [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ps) * 1e-12; }

    static constexpr Time zero() { return {0}; }
    /// A time later than every time of a run; the deadline of a timer that is not set.
    static constexpr Time never() { return {std::numeric_limits<std::int64_t>::max()}; }
    /// Time rounded to the nearest picosecond; `s` must be within ±9.2e6 s.
    static constexpr Time from_seconds(double s) {
        return {static_cast<std::int64_t>(s * 1e12 + (s < 0 ? -0.5 : 0.5))};
    }
};

constexpr Time nanoseconds(std::int64_t n) { return {n * 1'000}; }
constexpr Time microseconds(std::int64_t n) { return {n * 1'000'000}; }
constexpr Time milliseconds(std::int64_t n) { return {n * 1'000'000'000}; }
constexpr Time seconds(std::int64_t n) { return {n * 1'000'000'000'000}; }

using Bytes = std::int64_t;

/// A data rate in bits per second.
struct BitRate {
    std::int64_t bps = 0;

    friend constexpr auto operator<=>(BitRate, BitRate) = default;
};

constexpr BitRate gigabits_per_second(std::int64_t n) { return {n * 1'000'000'000}; }
constexpr BitRate megabits_per_second(std::int64_t n) { return {n * 1'000'000}; }

/// Converts the length of a frame to the time that the frame occupies a wire of a given rate.
///
/// A division per frame would be the costliest instruction of a hop. To avoid it, the time per byte
/// is kept in 2^-20 ps: exact if the rate divides 8e12 bit/s, else within 1e-6 ps per byte.
class WireClock {
  public:
    constexpr WireClock() = default;
    constexpr explicit WireClock(BitRate rate)
        : ps_per_byte_q20_(((std::int64_t{8'000'000'000'000} / rate.bps) << 20) +
                           (((std::int64_t{8'000'000'000'000} % rate.bps) << 20) + rate.bps / 2) /
                               rate.bps) {}

    /// Time of `bytes` on the wire: up to 1 MiB from 1 Mb/s on, up to 8 GiB at 10 Gb/s.
    [[nodiscard]] constexpr Time operator()(Bytes bytes) const {
        return {(bytes * ps_per_byte_q20_) >> 20};
    }

  private:
    std::int64_t ps_per_byte_q20_ = 0;
};

}  // namespace daqloom::base
