#include "live/transport/tcp/stream.hpp"

#include <algorithm>
#include <utility>

namespace daqloom::live {

void OutgoingStream::copy_in(std::span<const std::byte> bytes) {
    const std::size_t at = end_ % copied_.size();
    const std::size_t before_wrap = std::min(bytes.size(), copied_.size() - at);
    if (!bytes.empty()) {
        std::memcpy(copied_.data() + at, bytes.data(), before_wrap);
        std::memcpy(copied_.data(), bytes.data() + before_wrap, bytes.size() - before_wrap);
    }
    end_ += bytes.size();
    if (!segments_.empty() && segments_.back().bytes == nullptr) {
        segments_.back().length += bytes.size();
    } else if (!bytes.empty()) {
        segments_.push({nullptr, bytes.size()});
    }
}

/// Queues pieces for one system call: one piece of full size, or many short ones.
void OutgoingStream::take_up_writes() {
    while (!waiting_.empty() && pieces_ < kMostPieces && piece_bytes_ < kPiece &&
           room() >= sizeof(RecordHeader)) {
        const Write& write = waiting_.front();
        const auto piece =
            write.bytes.subspan(taken_up_, std::min(kPiece, write.bytes.size() - taken_up_));
        const std::uint64_t offset = static_cast<std::uint64_t>(write.offset) + taken_up_;
        taken_up_ += piece.size();
        const bool is_last = taken_up_ == write.bytes.size();
        put({.kind = is_last ? RecordHeader::Kind::last_piece : RecordHeader::Kind::piece,
             .length = static_cast<std::uint32_t>(piece.size()),
             .offset = offset,
             .immediate = write.immediate,
             .content = has_checksums_ ? base::crc32c(piece) : 0});
        if (!piece.empty()) {
            segments_.push({piece.data(), piece.size()});
            ++pieces_;
            piece_bytes_ += piece.size();
        }
        if (is_last) {
            given_.push(write);
            waiting_.pop();
            taken_up_ = 0;
        }
    }
}

void OutgoingStream::put_answers() {
    for (; !refused_.empty() && room() >= sizeof(RecordHeader); refused_.pop()) {
        put({.kind = RecordHeader::Kind::damaged, .count = refused_.front()});
    }
    if (owed_ > 0 && refused_.empty() && room() >= sizeof(RecordHeader)) {
        put({.kind = RecordHeader::Kind::written, .count = std::exchange(owed_, 0)});
    }
}

std::span<iovec> OutgoingStream::gather() {
    put_answers();
    take_up_writes();
    std::size_t count = 0;
    std::size_t place = begin_;
    std::size_t skip = sent_;
    const auto add = [&](const std::byte* bytes, std::size_t length) {
        // The const is cast away for iovec; sendmsg(2) does not write to the bytes.
        parts_[count++] = {const_cast<std::byte*>(bytes), length};
    };
    for (std::uint32_t i = 0; i < segments_.size() && count + 2 <= kParts; ++i) {
        const Segment& segment = segments_[i];
        const std::size_t length = segment.length - skip;
        if (segment.bytes != nullptr) {
            add(segment.bytes + skip, length);
        } else {
            const std::size_t at = place % copied_.size();
            const std::size_t before_wrap = std::min(length, copied_.size() - at);
            add(copied_.data() + at, before_wrap);
            if (before_wrap < length) {
                add(copied_.data(), length - before_wrap);
            }
            place += length;
        }
        skip = 0;
    }
    return std::span(parts_).first(count);
}

void OutgoingStream::on_sent(std::size_t bytes) {
    while (bytes > 0) {
        Segment& first = segments_.front();
        const std::size_t of_it = std::min(bytes, first.length - sent_);
        bytes -= of_it;
        sent_ += of_it;
        if (first.bytes == nullptr) {
            begin_ += of_it;
        }
        if (sent_ < first.length) {
            return;
        }
        if (first.bytes != nullptr) {
            --pieces_;
            piece_bytes_ -= first.length;
        }
        segments_.pop();
        sent_ = 0;
    }
}

bool IncomingStream::begin_record() {
    if (!header_.is_whole() || header_.number != next_number_++) {
        return damaged();
    }
    content_ = 0;
    switch (header_.kind) {
        case Kind::message:
            place_ =
                std::span(message_).first(std::min<std::size_t>(header_.length, message_.size()));
            return header_.length <= Transport::most_message;
        case Kind::piece:
        case Kind::last_piece:
            if (header_.length > arena_.size() || header_.offset > arena_.size() - header_.length) {
                return false;
            }
            place_ = arena_.subspan(header_.offset, header_.length);
            return true;
        case Kind::written:
        case Kind::damaged:
            return header_.length == 0;
    }
    return false;
}

}  // namespace daqloom::live
