#include "live/ends/recorded_checksums.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "base/crc32c.hpp"
#include "live/ends/packet_file.hpp"
#include "protocol/data/little_endian.hpp"

namespace daqloom::live {

namespace {

using protocol::DataFault;
using Memory = std::span<const std::uint8_t>;

constexpr std::size_t kEventIdFrom = 8;  ///< offset in an MFP
constexpr std::size_t kEventIdTo = 16;

/// The index entry that a replayed MFP had in the recording, where its event id was `event`.
IndexEntry recorded_entry(Memory mfp, std::uint64_t event) {
    std::array<std::uint8_t, kEventIdTo - kEventIdFrom> event_id{};
    protocol::put_number<std::uint64_t>(event_id, 0, event);
    const auto bytes = std::as_bytes(mfp);
    const auto front = base::crc32c(bytes.first(kEventIdFrom));
    const auto with_event_id = base::crc32c(std::as_bytes(std::span(event_id)), front);
    return {.event_id = event,
            .bytes = static_cast<std::uint32_t>(mfp.size()),
            .checksum = base::crc32c(bytes.subspan(kEventIdTo), with_event_id)};
}

/// The index entries of those packets of a file that a replay reads.
std::vector<IndexEntry> read_all(const std::string& path) {
    std::vector<IndexEntry> entries;
    auto file = MfpFile::open(path);
    while (file) {
        const auto mfp = file->next();
        if ((mfp && !*mfp) || (!mfp && !file->skip())) {
            break;
        }
        if (mfp) {
            entries.push_back(IndexEntry::of(file->packet()));
        }
    }
    return entries;
}

/// Entries of a file from its index, else from the file, if that has at most `most_read` bytes,
/// which are subtracted.
std::optional<std::vector<IndexEntry>> entries_of(const std::string& path, base::Bytes& most_read) {
    std::error_code error;
    const auto bytes = static_cast<base::Bytes>(std::filesystem::file_size(path, error));
    if (error) {
        return std::nullopt;
    }
    if (auto entries = read_index(path, bytes)) {
        return entries;
    }
    if (bytes > most_read) {
        return std::nullopt;
    }
    most_read -= bytes;
    return read_all(path);
}

}  // namespace

RecordedChecksums::RecordedChecksums(const Recording& recording, std::uint16_t packing,
                                     base::Bytes most_read)
    : packing_(packing), first_(recording.first), count_(recording.count) {
    for (const RecordedFile& file : recording.files) {
        const auto entries = entries_of(file.path, most_read);
        std::vector<IndexEntry>& stream = streams_[file.source_id];
        if (entries) {
            stream.insert(stream.end(), entries->begin(), entries->end());
        } else {
            unread_.push_back(file);
        }
    }
    for (auto& [source_id, stream] : streams_) {
        std::ranges::sort(stream, {}, &IndexEntry::event_id);
    }
}

protocol::DataCheck RecordedChecksums::check_mep(std::uint32_t streams, Memory memory) const {
    protocol::DataCheck found;
    const auto mep = protocol::MepView::decode(memory);
    if (!mep) {
        found.fault = DataFault::malformed_mep;
        return found;
    }
    found.event = mep->header().event_id;
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < mep->streams() && found.fault == DataFault::none; ++i) {
        const protocol::MepEntry entry = mep->entry(i);
        found.source_id = entry.source_id;
        found.offset = entry.offset;
        if (entry.source_id < next || entry.source_id >= streams) {
            found.fault = DataFault::source_id;
        } else if (entry.state == protocol::MepState::complete) {
            check_mfp(entry.source_id, mep->mfp(i), found);
        }
        next = entry.source_id + 1U;
    }
    found.absent = streams - std::min(streams, found.mfps + found.unknown);
    return found;
}

void RecordedChecksums::check_mfp(std::uint16_t source_id, Memory mfp,
                                  protocol::DataCheck& found) const {
    const auto view = protocol::MfpView::decode(mfp);
    if (!view || view->bytes() != static_cast<base::Bytes>(mfp.size())) {
        found.fault = DataFault::malformed_mfp;
    } else if (view->header().source_id != source_id) {
        found.fault = DataFault::source_id;
    } else if (view->header().event_id != found.event || found.event % packing_ != 0) {
        found.fault = DataFault::event;
    } else if (view->count() != packing_) {
        found.fault = DataFault::count;
    }
    if (found.fault != DataFault::none) {
        return;
    }
    const std::uint64_t number = first_ + found.event / packing_ % count_;
    if (is_recorded(source_id, recorded_entry(mfp, number * packing_))) {
        ++found.mfps;
        found.fragments += view->count();
        found.fragment_bytes +=
            static_cast<base::Bytes>(protocol::fragment_bytes(std::as_bytes(mfp)));
    } else if (is_unknown(source_id, number)) {
        ++found.unknown;
    } else {
        found.fault = DataFault::pattern;
    }
}

/// Whether the recording has this MFP. If several files have its number, a replay sends any one.
bool RecordedChecksums::is_recorded(std::uint16_t source_id, const IndexEntry& mfp) const {
    const auto stream = streams_.find(source_id);
    return stream != streams_.end() &&
           std::ranges::count(
               std::ranges::equal_range(stream->second, mfp.event_id, {}, &IndexEntry::event_id),
               mfp) > 0;
}

bool RecordedChecksums::is_unknown(std::uint16_t source_id, std::uint64_t number) const {
    return !streams_.contains(source_id) ||
           std::ranges::any_of(unread_, [&](const RecordedFile& file) {
               return file.source_id == source_id && file.first <= number && number <= file.last;
           });
}

}  // namespace daqloom::live
