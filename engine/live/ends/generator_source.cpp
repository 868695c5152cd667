#include "live/ends/generator_source.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "protocol/data/little_endian.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;

constexpr std::size_t kEventIdAt = 8;  ///< offset in an MFP

std::span<std::uint8_t> octets(std::span<std::byte> bytes) {
    return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

class EveryMfp final : public MfpFeed {
  public:
    explicit EveryMfp(protocol::MfpGenerator generator) : generator_(std::move(generator)) {}

    Fed feed(std::uint64_t mfp, BufferWriter& writer) override {
        const std::uint64_t event = mfp * generator_.packing();
        const auto room = writer.reserve(generator_.bytes_of(event));
        if (!room || !generator_.generate(event, octets(*room))) {
            return Fed::no_room;
        }
        writer.commit(mfp, static_cast<Bytes>(room->size()));
        return Fed::done;
    }

  private:
    protocol::MfpGenerator generator_;
};

/// Feed of prepared MFPs. The buffer has a fixed number of places, used in turn; a place is free
/// again after that number of acknowledgements.
class PreparedMfps final : public MfpFeed {
  public:
    struct Place {
        Bytes offset;
        Bytes bytes;
    };

    PreparedMfps(std::uint16_t packing, std::span<std::byte> area, std::vector<Place> places)
        : packing_(packing), area_(area), places_(std::move(places)) {}

    Fed feed(std::uint64_t mfp, BufferWriter& writer) override {
        if (writer.committed() - writer.acknowledged() >= places_.size()) {
            return Fed::no_room;
        }
        const Place& place = places_[writer.committed() % places_.size()];
        const auto at = static_cast<std::size_t>(place.offset);
        protocol::put_number<std::uint64_t>(octets(area_), at + kEventIdAt, mfp * packing_);
        return writer.put(mfp, place.offset, place.bytes) ? Fed::done : Fed::no_room;
    }

  private:
    std::uint16_t packing_;
    std::span<std::byte> area_;
    std::vector<Place> places_;
};

base::expected<std::unique_ptr<MfpFeed>> prepare(const protocol::MfpGenerator& generator,
                                                 Buffer& buffer) {
    constexpr Bytes line = 64;
    if (BufferWriter writer(buffer); writer.committed() != 0) {
        return base::failure("prepared MFPs for a buffer that is in use; give a new one");
    }
    const auto area = buffer.area().bytes();
    std::vector<PreparedMfps::Place> places;
    Bytes at = 0;
    while (true) {
        const std::uint64_t event = places.size() * generator.packing();
        const Bytes bytes = generator.bytes_of(event);
        if (bytes > static_cast<Bytes>(area.size()) - at) {
            break;
        }
        DAQLOOM_CHECK(
            generator.generate(event, octets(area.subspan(static_cast<std::size_t>(at)))));
        places.push_back({.offset = at, .bytes = bytes});
        at += (bytes + line - 1) / line * line;
    }
    return std::make_unique<PreparedMfps>(generator.packing(), area, std::move(places));
}

}  // namespace

base::expected<std::unique_ptr<MfpFeed>> generate_mfps(protocol::MfpGenerator generator,
                                                       Content content, Buffer& buffer) {
    const auto room = static_cast<Bytes>(buffer.area().bytes().size());
    DAQLOOM_REFUSE_IF(
        generator.largest() > room,
        "a buffer of {} bytes for MFPs of up to {} bytes; give a larger buffer, or a smaller "
        "packing",
        room, generator.largest());
    if (content == Content::once) {
        return prepare(generator, buffer);
    }
    return std::make_unique<EveryMfp>(std::move(generator));
}

}  // namespace daqloom::live
