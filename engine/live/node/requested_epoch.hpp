// An epoch in which an event manager assigns events to builder units, and these request MFPs into
// places of their memory, one for each readout unit: DAQPIPE and pull building.
//
// What these protocols call an event is a multi-event packet: the MFPs with one number of all
// readout units.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "live/node/event_memory.hpp"
#include "live/node/stream_intake.hpp"
#include "live/node/unit_epoch.hpp"

namespace daqloom::live {

class RequestedEpoch : public UnitEpoch {
  protected:
    RequestedEpoch(const EpochParts& parts, Members members)
        : UnitEpoch(parts, std::move(members), 1) {}

    base::expected<void> make_memory();
    /// For a readout unit: `window` MFPs are taken and not given back at most.
    void make_stream(std::uint32_t window);
    /// For a builder unit.
    void make_places();

    [[nodiscard]] bool is_manager(UnitIndex unit) const {
        return unit == members_.readouts.front();
    }

    // ---- readout unit
    /// Takes the next MFP of the stream, which has one.
    void take();
    /// Empty: it has not been taken, or is larger than any place.
    [[nodiscard]] std::span<const std::byte> mfp(std::uint64_t number) const;
    /// `context` of the write is its number.
    void write_mfp(std::uint64_t number, protocol::BuilderIndex to, base::Bytes offset);
    void count_written(std::uint64_t number);

    // ---- builder unit
    /// From now on, the event is collected in this slot.
    void collect(protocol::EventId event, std::uint32_t slot);
    /// Offset of a place, in which there is no MFP of an earlier event any more.
    base::Bytes clear_place(std::uint32_t slot, protocol::ReadoutIndex readout);
    struct Arrived {
        protocol::EventId event;
        protocol::ReadoutIndex readout;
        base::Bytes bytes;  ///< 0: nothing of use
    };
    /// None: the write was refused.
    std::optional<Arrived> arrived(UnitIndex from, std::uint32_t bits);
    /// To the consumer, with the MFPs for which `is_here(readout)`.
    template <class IsHere>
    void deliver(protocol::EventId event, std::uint32_t slot, IsHere is_here) {
        clear_table();
        for (const protocol::ReadoutIndex readout : members_.readouts.indices()) {
            const base::Bytes size = size_of(slot, readout);
            if (is_here(readout) && size != unusable) {
                put_in_table(readout, 0, memory_.mfp_at(slot, readout) - memory_.event_at(slot),
                             size);
            }
        }
        const auto number = static_cast<std::uint64_t>(event);
        hand_over({.slot = slot,
                   .key = number,
                   .mep = number,
                   .place = memory_.event_at(slot),
                   .bytes = memory_.event_bytes()});
    }

    /// In place of a size: there is no valid MFP.
    static constexpr base::Bytes unusable = -1;
    [[nodiscard]] base::Bytes& size_of(std::uint32_t slot, protocol::ReadoutIndex readout) {
        return sizes_[std::size_t{slot} * memory_.readouts + readout.value()];
    }

    EventMemory memory_;  ///< of every builder unit
    std::optional<StreamIntake> stream_;

  private:
    [[nodiscard]] std::span<std::byte> place(std::uint32_t slot, protocol::ReadoutIndex readout);
    base::Bytes read_size(std::uint32_t slot, protocol::ReadoutIndex readout);

    std::vector<std::optional<protocol::EventId>> event_in_;  ///< by slot
    std::vector<base::Bytes> sizes_;  ///< of MFPs that are here, by slot and readout unit
};

}  // namespace daqloom::live
