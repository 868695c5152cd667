#include "live/replay_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "live/packet_file.hpp"
#include "protocol/little_endian.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;

constexpr std::size_t kEventIdAt = 8;  ///< in an MFP
constexpr std::size_t kSourceIdAt = 16;

/// Which numbers of the recording are played: [first, first + count).
struct Range {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};

class RecordedMfps final : public MfpFeed {
  public:
    RecordedMfps(MfpFile file, const ReplayConfig& config, Range range)
        : file_(std::move(file)), config_(config), range_(range) {}

    Fed feed(std::uint64_t mfp, BufferWriter& writer) override {
        if (!config_.loop && mfp >= range_.count) {
            return Fed::end;
        }
        const std::uint64_t recorded = range_.first + mfp % range_.count;
        if (!seek(recorded)) {
            return Fed::end;  // the file is not any more what it was
        }
        if (number_ != recorded) {
            return Fed::absent;
        }
        const auto packet = file_.packet();
        const auto room = writer.reserve(static_cast<Bytes>(packet.size()));
        if (!room) {
            return Fed::no_room;
        }
        std::memcpy(room->data(), packet.data(), packet.size());
        const std::span header(reinterpret_cast<std::uint8_t*>(room->data()), room->size());
        protocol::put_number<std::uint64_t>(header, kEventIdAt, mfp * config_.packing);
        protocol::put_number<std::uint16_t>(header, kSourceIdAt, config_.source_id);
        writer.commit(mfp, static_cast<Bytes>(packet.size()));
        return Fed::done;
    }

  private:
    /// Up to the first MFP with this number or a later one; none is left behind the last one.
    bool seek(std::uint64_t recorded) {
        if (recorded < asked_ && !rewind()) {
            return false;
        }
        asked_ = recorded;
        while (!number_ || *number_ < recorded) {
            const auto mfp = file_.next();
            if (!mfp) {
                return false;
            }
            number_ = *mfp ? (*mfp)->header().event_id / config_.packing : behind_all;
        }
        return true;
    }
    bool rewind() {
        number_.reset();
        return file_.rewind().has_value();
    }

    static constexpr std::uint64_t behind_all = ~std::uint64_t{0};

    MfpFile file_;
    ReplayConfig config_;
    Range range_;
    std::optional<std::uint64_t> number_;  ///< of the MFP that the file is at
    std::uint64_t asked_ = 0;
};

/// From the first to the last number in the file; each MFP is such as can be replayed.
base::expected<Range> range_of(MfpFile& file, const ReplayConfig& config, Bytes room) {
    std::optional<std::uint64_t> first;
    std::uint64_t last = 0;
    while (true) {
        const auto mfp = file.next();
        if (!mfp) {
            return tl::unexpected(mfp.error());
        }
        if (!*mfp) {
            break;
        }
        const auto& header = (*mfp)->header();
        const auto wrong = [&](const std::string& what) {
            return base::failure(fmt::format("{}, at byte {}: MFP of event {} {}", config.path,
                                             file.offset(), header.event_id, what));
        };
        if ((*mfp)->count() != config.packing) {
            return wrong(fmt::format("has {} fragments; expected the packing factor, {}",
                                     (*mfp)->count(), config.packing));
        }
        if (header.event_id % config.packing != 0 ||
            (first && header.event_id / config.packing <= last)) {
            return wrong("is out of order; expected ascending multiples of the packing factor");
        }
        if ((*mfp)->bytes() > room) {
            return wrong(fmt::format("has {} bytes; the buffer has {}", (*mfp)->bytes(), room));
        }
        last = header.event_id / config.packing;
        first = first.value_or(last);
    }
    if (!first) {
        return base::failure(fmt::format("{} is empty; expected MFPs", config.path));
    }
    return Range{.first = *first, .count = last - *first + 1};
}

}  // namespace

base::expected<std::unique_ptr<MfpFeed>> replay_mfps(const ReplayConfig& config, Buffer& buffer) {
    if (config.packing == 0) {
        return base::failure(fmt::format("packing 0 for {}; give 1 to 65535", config.path));
    }
    auto file = MfpFile::open(config.path);
    if (!file) {
        return tl::unexpected(file.error());
    }
    auto range = range_of(*file, config, static_cast<Bytes>(buffer.area().bytes().size()));
    if (!range) {
        return tl::unexpected(range.error());
    }
    if (config.meps > 0) {
        range = Range{.first = config.first_mep, .count = config.meps};
    }
    if (const auto rewound = file->rewind(); !rewound) {
        return tl::unexpected(rewound.error());
    }
    return std::make_unique<RecordedMfps>(std::move(*file), config, *range);
}

}  // namespace daqloom::live
