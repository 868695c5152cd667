// Units of the engine: integer picoseconds, integer bytes, integer bits per second.
//
// Simulated and real time have the same unit, so that the state machines of protocol/ do not depend
// on which of the two drives them. 2^63 ps are 106 days.
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
    /// Later than every time of a run; the deadline of a timer that is not set.
    static constexpr Time never() { return {std::numeric_limits<std::int64_t>::max()}; }
    /// Rounded to the nearest picosecond; `s` within ±9.2e6 s.
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

/// Converts frame lengths to the time they occupy a wire of one given rate.
///
/// A division per frame would be the costliest instruction of a hop; the time per byte is kept in
/// 2^-20 ps instead, exact for every rate that divides 8e12 and within 1e-6 ps per byte otherwise.
class WireClock {
  public:
    constexpr WireClock() = default;
    constexpr explicit WireClock(BitRate rate)
        : ps_per_byte_q20_(((std::int64_t{8'000'000'000'000} / rate.bps) << 20) +
                           (((std::int64_t{8'000'000'000'000} % rate.bps) << 20) + rate.bps / 2) /
                               rate.bps) {}

    /// `bytes` up to 1 MiB at rates of 1 Mb/s and more, up to 8 GiB at 10 Gb/s.
    [[nodiscard]] constexpr Time operator()(Bytes bytes) const {
        return {(bytes * ps_per_byte_q20_) >> 20};
    }

  private:
    std::int64_t ps_per_byte_q20_ = 0;
};

}  // namespace daqloom::base
