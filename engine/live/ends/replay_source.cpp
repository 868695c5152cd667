#include "live/ends/replay_source.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "live/ends/packet_file.hpp"
#include "protocol/data/little_endian.hpp"

namespace daqloom::live {

namespace {

constexpr std::size_t kReplayedEventIdAt = 8;  ///< offset in an MFP

/// One file of a stream, open while MFPs with numbers in its range are requested.
class Part {
  public:
    Part(RecordedFile file, std::uint16_t packing) : file_(std::move(file)), packing_(packing) {}

    /// The MFP with this number, valid until the next call; empty if the file lacks it. Made for
    /// ascending numbers: a lower number than before restarts at the beginning of the file.
    std::span<const std::uint8_t> find(std::uint64_t number) {
        if (number < file_.first || number > file_.last) {
            open_.reset();
            return {};
        }
        if (!open_ && !open()) {
            return {};
        }
        if (number < std::exchange(last_requested_, number)) {
            at_ = kBefore;
            if (!open_->rewind()) {
                at_ = kEnd;
            }
        }
        while (at_ == kBefore || at_ < number) {
            at_ = next();
        }
        return at_ == number ? open_->packet() : std::span<const std::uint8_t>();
    }
    /// Damaged places that were skipped so far.
    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

  private:
    static constexpr std::uint64_t kBefore = ~std::uint64_t{0};
    static constexpr std::uint64_t kEnd = kBefore - 1;

    bool open() {
        auto file = MfpFile::open(file_.path);
        if (!file) {
            return false;
        }
        open_.emplace(std::move(*file));
        at_ = kBefore;
        last_requested_ = 0;
        return true;
    }

    /// Advances to the next MFP of the stream, and returns its number.
    std::uint64_t next() {
        while (true) {
            const auto mfp = open_->next();
            if (mfp && !*mfp) {
                return kEnd;
            }
            if (mfp && belongs((*mfp)->header())) {
                return (*mfp)->header().event_id / packing_;
            }
            ++skipped_;
            if (!mfp && !open_->skip()) {
                return kEnd;  // the rest of the file cannot be read
            }
        }
    }
    [[nodiscard]] bool belongs(const protocol::MfpHeader& header) const {
        const std::uint64_t number = header.event_id / packing_;
        return header.event_id % packing_ == 0 && header.source_id == file_.source_id &&
               number <= file_.last && (at_ == kBefore || number > at_);
    }

    RecordedFile file_;
    std::uint16_t packing_;
    std::optional<MfpFile> open_;
    std::uint64_t at_ = kBefore;        ///< number of the last MFP read
    std::uint64_t last_requested_ = 0;  ///< last number requested
    std::uint64_t skipped_ = 0;
};

class RecordedMfps final : public MfpFeed {
  public:
    RecordedMfps(std::vector<Part> parts, std::uint64_t first, std::uint64_t count,
                 const ReplayConfig& config)
        : parts_(std::move(parts)), first_(first), count_(count), config_(config) {}

    Fed feed(std::uint64_t mfp, BufferWriter& writer) override {
        for (Part& part : parts_) {
            if (const auto packet = part.find(first_ + mfp % count_); !packet.empty()) {
                return commit(mfp, packet, writer);
            }
        }
        return Fed::absent;
    }
    [[nodiscard]] std::uint64_t skipped() const override {
        std::uint64_t sum = 0;
        for (const Part& part : parts_) {
            sum += part.skipped();
        }
        return sum;
    }

  private:
    [[nodiscard]] Fed commit(std::uint64_t mfp, std::span<const std::uint8_t> packet,
                             BufferWriter& writer) const {
        const auto room = writer.reserve(static_cast<base::Bytes>(packet.size()));
        if (!room) {
            return Fed::no_room;
        }
        std::memcpy(room->data(), packet.data(), packet.size());
        const std::span header(reinterpret_cast<std::uint8_t*>(room->data()), room->size());
        protocol::put_number<std::uint64_t>(header, kReplayedEventIdAt, mfp * config_.packing);
        writer.commit(mfp, static_cast<base::Bytes>(packet.size()));
        return Fed::done;
    }

    std::vector<Part> parts_;
    std::uint64_t first_;
    std::uint64_t count_;
    ReplayConfig config_;
};

}  // namespace

base::expected<std::unique_ptr<MfpFeed>> replay_mfps(const Recording& recording,
                                                     const ReplayConfig& config, Buffer& buffer) {
    const auto room = static_cast<base::Bytes>(buffer.area().bytes().size());
    std::vector<Part> parts;
    for (const RecordedFile& file : recording.files) {
        if (file.source_id != config.source_id) {
            continue;
        }
        DAQLOOM_REFUSE_IF(file.largest > room,
                          "{} has an MFP of {} bytes; the stream's buffer has {}", file.path,
                          file.largest, room);
        parts.emplace_back(file, config.packing);
    }
    DAQLOOM_REFUSE_IF(parts.empty(),
                      "no file of source {} among the {} of the recording; expected at least one "
                      "for each stream",
                      config.source_id, recording.files.size());
    return std::make_unique<RecordedMfps>(std::move(parts), recording.first, recording.count,
                                          config);
}

}  // namespace daqloom::live
