// The number of events assigned to a builder unit in an epoch, and when the builder unit reports
// this total to its readout units.
#pragma once

#include <cstdint>
#include <limits>

namespace daqloom::protocol {

/// Total of an epoch's assignments. The caller counts the assigned events.
class LastAssignment {
  public:
    /// Whether all events of the epoch are assigned.
    [[nodiscard]] bool is_reached(std::uint64_t assigned) const { return assigned >= last_; }

    /// The epoch is being closed.
    void close() { is_closing_ = true; }
    /// Sets the total number of events. False: it is set already, or below `assigned`.
    [[nodiscard]] bool set(std::uint64_t events, std::uint64_t assigned) {
        if (last_ != unknown || events < assigned) {
            return false;
        }
        last_ = events;
        return true;
    }
    /// Sets the total to the events assigned until now.
    void end_at(std::uint64_t assigned) { last_ = assigned; }

    /// Whether to report the total: true once, when the epoch is closing and all is assigned.
    [[nodiscard]] bool is_due(std::uint64_t assigned) {
        if (!is_closing_ || is_reported_ || !is_reached(assigned)) {
            return false;
        }
        is_reported_ = true;
        return true;
    }
    [[nodiscard]] bool is_reported() const { return is_reported_; }

  private:
    static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

    std::uint64_t last_ = unknown;
    bool is_closing_ = false;
    bool is_reported_ = false;
};

}  // namespace daqloom::protocol
