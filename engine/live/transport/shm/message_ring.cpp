#include "live/transport/shm/message_ring.hpp"

#include <algorithm>
#include <cstring>

namespace daqloom::live {

namespace {

struct RingRecordHeader {
    std::uint32_t length;
    std::uint32_t kind;
};

constexpr std::uint64_t room_of(std::uint64_t length) {
    return sizeof(RingRecordHeader) + (length + 7) / 8 * 8;
}

}  // namespace

MessageRingWriter::MessageRingWriter(std::span<std::byte> memory)
    : header_(reinterpret_cast<MessageRingHeader*>(memory.data())),
      records_(memory.subspan(sizeof(MessageRingHeader))) {}

MessageRingWriter::Put MessageRingWriter::put(std::uint32_t kind,
                                              std::span<const std::byte> bytes) {
    const std::uint64_t room = room_of(bytes.size());
    if (records_.size() - (written_ - read_) < room) {
        read_ = header_->read.load(std::memory_order_acquire);
        if (written_ - read_ > records_.size()) {
            return Put::broken;
        }
        if (records_.size() - (written_ - read_) < room) {
            needed_ = room;
            return Put::no_room;
        }
    }
    const RingRecordHeader header{static_cast<std::uint32_t>(bytes.size()), kind};
    copy_in(written_, std::as_bytes(std::span(&header, 1)));
    copy_in(written_ + sizeof header, bytes);
    written_ += room;
    header_->written.store(written_, std::memory_order_release);
    return Put::done;
}

bool MessageRingWriter::has_room() const {
    const auto fits = [this] {
        const std::uint64_t used = written_ - header_->read.load(std::memory_order_seq_cst);
        // An invalid count of the reader reports space, and the next `put` detects it.
        return used > records_.size() || records_.size() - used >= needed_;
    };
    if (fits()) {
        return true;
    }
    // Pairs with the reader, which stores `read` and then loads `writer_waits`: at least one side
    // sees the other's store.
    header_->writer_waits.store(1, std::memory_order_seq_cst);
    return fits();
}

void MessageRingWriter::copy_in(std::uint64_t at, std::span<const std::byte> bytes) {
    if (bytes.empty()) {
        return;
    }
    const std::size_t begin = at % records_.size();
    const std::size_t first = std::min(bytes.size(), records_.size() - begin);
    std::memcpy(records_.data() + begin, bytes.data(), first);
    std::memcpy(records_.data(), bytes.data() + first, bytes.size() - first);
}

MessageRingReader::MessageRingReader(std::span<std::byte> memory, std::size_t most)
    : header_(reinterpret_cast<MessageRingHeader*>(memory.data())),
      records_(memory.subspan(sizeof(MessageRingHeader))),
      record_(most) {}

MessageRingReader::Got MessageRingReader::next(Record& record) {
    if (read_ == written_) {
        written_ = header_->written.load(std::memory_order_acquire);
        if (read_ == written_) {
            return Got::nothing;
        }
    }
    const std::uint64_t there = written_ - read_;
    if (there > records_.size() || there < sizeof(RingRecordHeader)) {
        return Got::broken;
    }
    RingRecordHeader header{};
    copy_out(read_, std::as_writable_bytes(std::span(&header, 1)));
    if (header.length > record_.size() || room_of(header.length) > there) {
        return Got::broken;
    }
    const auto bytes = std::span(record_).first(header.length);
    copy_out(read_ + sizeof header, bytes);
    read_ += room_of(header.length);
    record = {.kind = header.kind, .bytes = bytes};
    return Got::record;
}

bool MessageRingReader::release() {
    header_->read.store(read_, std::memory_order_seq_cst);
    return header_->writer_waits.load(std::memory_order_seq_cst) != 0 &&
           header_->writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

bool MessageRingReader::is_empty() const {
    return read_ == header_->written.load(std::memory_order_acquire);
}

void MessageRingReader::copy_out(std::uint64_t at, std::span<std::byte> bytes) const {
    if (bytes.empty()) {
        return;
    }
    const std::size_t begin = at % records_.size();
    const std::size_t first = std::min(bytes.size(), records_.size() - begin);
    std::memcpy(bytes.data(), records_.data() + begin, first);
    std::memcpy(bytes.data() + first, records_.data(), bytes.size() - first);
}

}  // namespace daqloom::live
