#include "live/node/requested_epoch.hpp"

#include <algorithm>
#include <cstring>

#include "protocol/data/mfp.hpp"

namespace daqloom::live {

using base::Bytes;
using protocol::BuilderIndex;
using protocol::EventId;
using protocol::Immediate;
using protocol::ReadoutIndex;

namespace {

/// Bytes of a place that are zero if the MFP written there is empty: no MFP begins like this.
constexpr std::size_t kMark = 8;

}  // namespace

base::expected<void> RequestedEpoch::make_memory() {
    auto memory = EventMemory::of(config(), {readouts(), builders(), members_.readouts_in_run});
    if (!memory) {
        return tl::unexpected(memory.error());
    }
    memory_ = *memory;
    return {};
}

void RequestedEpoch::make_stream(std::uint32_t window) {
    stream_.emplace(parts_.streams[0], parts_.first_mep, window, counters_);
}

void RequestedEpoch::make_places() {
    make_outlet();
    event_in_.resize(memory_.slots);
    sizes_.resize(std::size_t{memory_.slots} * readouts());
}

void RequestedEpoch::take() {
    if (stream_->take() > memory_.place) {
        counters_.mfps_malformed.add(1);
    }
}

std::span<const std::byte> RequestedEpoch::mfp(std::uint64_t number) const {
    if (number >= stream_->taken()) {
        return {};
    }
    const auto bytes = stream_->bytes(number);
    return bytes.size() > static_cast<std::size_t>(memory_.place) ? bytes.first(0) : bytes;
}

void RequestedEpoch::write_mfp(std::uint64_t number, BuilderIndex to, Bytes offset) {
    const Immediate immediate{.epoch = parts_.epoch,
                              .slot = memory_.slot_at(offset) % Immediate::slots,
                              .stream = self_readout().value()};
    post_.write({.to = members_.builders[to],
                 .bytes = mfp(number),
                 .offset = offset,
                 .immediate = immediate.encode(),
                 .context = number});
}

void RequestedEpoch::count_written(std::uint64_t number) {
    counters_.mfps_written.add(1);
    counters_.mfp_bytes_written.add(mfp(number).size());
}

void RequestedEpoch::collect(EventId event, std::uint32_t slot) {
    if (event_in_[slot] != event) {
        event_in_[slot] = event;
        std::fill_n(&size_of(slot, ReadoutIndex()), memory_.readouts, unusable);
    }
    begin_building(slot);
}

/// Clears what an earlier event left there, so that it is not mistaken for its MFP.
Bytes RequestedEpoch::clear_place(std::uint32_t slot, ReadoutIndex readout) {
    std::memset(place(slot, readout).data(), 0, kMark);
    return memory_.mfp_at(slot, readout);
}

std::optional<RequestedEpoch::Arrived> RequestedEpoch::arrived(UnitIndex from, std::uint32_t bits) {
    const auto immediate = immediate_of(from, bits);
    if (!immediate) {
        return std::nullopt;
    }
    const ReadoutIndex readout(immediate->stream);
    // Of a lost unit it may be of the event that was in the slot before.
    if (immediate->slot >= event_in_.size() || !event_in_[immediate->slot] ||
        post_.is_forgotten(members_.readouts[readout])) {
        refuse_write();
        return std::nullopt;
    }
    counters_.mfps_received.add(1);
    return Arrived{*event_in_[immediate->slot], readout,
                   std::max<Bytes>(read_size(immediate->slot, readout), 0)};
}

std::span<std::byte> RequestedEpoch::place(std::uint32_t slot, ReadoutIndex readout) {
    return parts_.output->area().bytes().subspan(
        static_cast<std::size_t>(memory_.mfp_at(slot, readout)),
        static_cast<std::size_t>(memory_.place));
}

/// From the MFP's header, which another unit wrote.
Bytes RequestedEpoch::read_size(std::uint32_t slot, ReadoutIndex readout) {
    const auto front = place(slot, readout);
    const auto mark = front.first(kMark);
    Bytes& size = size_of(slot, readout);
    if (std::ranges::all_of(mark, [](std::byte byte) { return byte == std::byte{0}; })) {
        size = 0;
        return size;
    }
    const auto said = protocol::mfp_size(
        {reinterpret_cast<const std::uint8_t*>(front.data()), protocol::mfp_header_bytes});
    const bool fits = said && *said >= protocol::mfp_header_bytes && *said <= memory_.place;
    size = fits ? *said : unusable;
    if (size == unusable) {
        counters_.mfps_malformed.add(1);
    }
    return size;
}

}  // namespace daqloom::live
