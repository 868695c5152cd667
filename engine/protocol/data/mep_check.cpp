#include "protocol/data/mep_check.hpp"

#include <algorithm>

#include "protocol/data/mep_layout.hpp"

namespace daqloom::protocol {

namespace {

using base::Bytes;
using Memory = std::span<const std::uint8_t>;

/// The offset of the first byte in [from, to) that is not zero; `to` if all bytes are zero.
Bytes first_not_zero(Memory memory, Bytes from, Bytes to) {
    while (from < to && memory[static_cast<std::size_t>(from)] == 0) {
        ++from;
    }
    return from;
}

/// Checks one MFP from front to back, until the first fault.
class MfpCheck {
  public:
    MfpCheck(const MfpGenerator& stream, std::uint64_t event, Memory memory)
        : stream_(stream), event_(event), memory_(memory) {
        found_.source_id = stream.source_id();
        found_.event = event;
    }

    DataCheck operator()() {
        const auto view = MfpView::decode(memory_);
        if (!view || view->bytes() != static_cast<Bytes>(memory_.size())) {
            is(DataFault::malformed_mfp, 0);
        } else if (header_is_right(*view) && fragments_are_right(*view)) {
            found_.mfps = 1;
        }
        return found_;
    }

  private:
    bool is(DataFault fault, Bytes offset) {
        found_.fault = fault;
        found_.offset = offset;
        return false;
    }

    bool header_is_right(const MfpView& view) {
        const MfpHeader& header = view.header();
        if (header.source_id != stream_.source_id()) {
            return is(DataFault::source_id, 16);
        }
        if (header.event_id != event_) {
            return is(DataFault::event, 8);
        }
        if (view.count() != stream_.packing()) {
            return is(DataFault::count, 2);
        }
        if (header.align != stream_.align()) {
            return is(DataFault::layout, 18);
        }
        return header.version == MfpGenerator::version || is(DataFault::layout, 19);
    }

    bool fragments_are_right(const MfpView& view) {
        const Bytes types_end = mfp_header_bytes + view.count();
        const Bytes sizes_at = aligned(types_end, 4);
        if (!is_padding(types_end, sizes_at) ||
            !is_padding(sizes_at + 2 * Bytes{view.count()}, mfp_overhead(view.count()))) {
            return false;
        }
        Bytes index = 0;
        Bytes at = mfp_overhead(view.count());
        for (const auto [type, payload] : view) {
            const std::size_t size = stream_.size(found_.event);
            if (type != MfpGenerator::type) {
                return is(DataFault::layout, mfp_header_bytes + index);
            }
            if (payload.size() != size) {
                return is(DataFault::size, sizes_at + 2 * index);
            }
            const auto right = check_pattern(stream_.source_id(), found_.event, payload);
            if (right != size) {
                return is(DataFault::pattern, at + static_cast<Bytes>(right));
            }
            const Bytes end = at + static_cast<Bytes>(size);
            at += aligned(static_cast<Bytes>(size), Bytes{1} << stream_.align());
            if (!is_padding(end, at)) {
                return false;
            }
            ++found_.fragments;
            found_.fragment_bytes += static_cast<Bytes>(size);
            ++index;
            ++found_.event;
        }
        found_.event = event_;
        return true;
    }

    bool is_padding(Bytes from, Bytes to) {
        const Bytes at = first_not_zero(memory_, from, to);
        return at == to || is(DataFault::padding, at);
    }

    const MfpGenerator& stream_;
    std::uint64_t event_;
    Memory memory_;
    DataCheck found_;
};

}  // namespace

std::string_view name_of(DataFault fault) {
    switch (fault) {
        case DataFault::none:
            return "none";
        case DataFault::malformed_mep:
            return "malformed multi-event packet";
        case DataFault::malformed_mfp:
            return "malformed multi-fragment packet";
        case DataFault::source_id:
            return "source id";
        case DataFault::event:
            return "event number";
        case DataFault::count:
            return "number of fragments";
        case DataFault::layout:
            return "alignment, version or type";
        case DataFault::size:
            return "fragment size";
        case DataFault::pattern:
            return "fragment bytes";
        case DataFault::padding:
            return "padding";
    }
    return "unknown";
}

DataCheck check_mfp(const MfpGenerator& stream, std::uint64_t event, Memory memory) {
    return MfpCheck(stream, event, memory)();
}

PatternScan scan_pattern(Memory memory) {
    PatternScan scan;
    const auto is = [&scan](DataFault fault, std::uint64_t event, Bytes offset) {
        if (scan.fault == DataFault::none) {
            scan.fault = fault;
            scan.event = event;
            scan.offset = offset;
        }
    };
    const auto view = MfpView::decode(memory);
    if (!view || view->bytes() != static_cast<Bytes>(memory.size())) {
        is(DataFault::malformed_mfp, 0, 0);
        return scan;
    }
    const MfpHeader& header = view->header();
    std::uint64_t event = header.event_id;
    for (const auto [type, payload] : *view) {
        const Bytes at = payload.data() - memory.data();
        const auto size = static_cast<Bytes>(payload.size());
        const Bytes end = at + aligned(size, Bytes{1} << header.align);
        const auto right = static_cast<Bytes>(check_pattern(header.source_id, event, payload));
        const Bytes zeros = first_not_zero(memory, at + size, end);
        if (right != size) {
            is(DataFault::pattern, event, at + right);
        } else if (zeros != end) {
            is(DataFault::padding, event, zeros);
        }
        scan.recognised += right == size && size >= 8 ? 1 : 0;
        ++event;
    }
    return scan;
}

DataCheck check_mep(std::span<const MfpGenerator> streams, Memory memory) {
    DataCheck all;
    const auto is = [&all](DataFault fault, Bytes offset) {
        all.fault = fault;
        all.offset = offset;
        return all;
    };
    const auto mep = MepView::decode(memory);
    if (!mep) {
        return is(DataFault::malformed_mep, 0);
    }
    all.event = mep->header().event_id;
    auto next = streams.begin();
    for (std::uint32_t i = 0; i < mep->streams(); ++i) {
        const MepEntry entry = mep->entry(i);
        all.source_id = entry.source_id;
        const auto stream = std::ranges::lower_bound(next, streams.end(), entry.source_id, {},
                                                     &MfpGenerator::source_id);
        if (stream == streams.end() || stream->source_id() != entry.source_id) {
            return is(DataFault::source_id, mep_overhead(i) + 12);
        }
        next = stream + 1;
        if (entry.state != MepState::complete) {
            continue;
        }
        if (mep->header().events != stream->packing()) {
            return is(DataFault::count, 24);
        }
        const DataCheck one = check_mfp(*stream, all.event, mep->mfp(i));
        if (one.fault != DataFault::none) {
            all.event = one.event;
            return is(one.fault, entry.offset + one.offset);
        }
        ++all.mfps;
        all.fragments += one.fragments;
        all.fragment_bytes += one.fragment_bytes;
    }
    all.source_id = 0;
    all.absent = static_cast<std::uint32_t>(streams.size()) - all.mfps;
    return all;
}

}  // namespace daqloom::protocol
