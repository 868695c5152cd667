#include "live/ends/packet_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "base/crc32c.hpp"
#include "protocol/data/little_endian.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;

constexpr std::size_t read_ahead = std::size_t{1} << 20;
constexpr Bytes write_behind = Bytes{8} << 20;
constexpr Bytes largest_packet = Bytes{1} << 33;  ///< a sparse file may have any size

constexpr std::array<std::uint8_t, 2> mfp_begins = {0xce, 0x40};
constexpr std::array<std::uint8_t, 4> mep_begins = {'M', 'E', 'P', '1'};

/// Whether `mfp` is a later MFP of the same stream, with the same number of fragments.
bool mfp_follows(PacketFormat::Bytes before, PacketFormat::Bytes mfp) {
    using protocol::number_at;
    return number_at<std::uint16_t>(before, 2) == number_at<std::uint16_t>(mfp, 2) &&
           number_at<std::uint64_t>(before, 8) < number_at<std::uint64_t>(mfp, 8) &&
           number_at<std::uint32_t>(before, 16) == number_at<std::uint32_t>(mfp, 16);
}

/// Always true: MEPs come in any order.
bool mep_follows(PacketFormat::Bytes, PacketFormat::Bytes) { return true; }

constexpr PacketFormat mfp_format = {.magic = mfp_begins,
                                     .front = protocol::mfp_header_bytes,
                                     .size_of = protocol::mfp_size,
                                     .bytes_for_size = protocol::MfpView::bytes_for_size,
                                     .size_from = protocol::MfpView::size_from,
                                     .follows = mfp_follows};
constexpr PacketFormat mep_format = {.magic = mep_begins,
                                     .front = protocol::mep_overhead(0),
                                     .size_of = protocol::mep_size,
                                     .bytes_for_size = protocol::MepView::bytes_for_size,
                                     .size_from = protocol::MepView::size_from,
                                     .follows = mep_follows};

}  // namespace

tl::unexpected<base::Error> PacketReader::failure(const std::string& message) const {
    return base::failure(fmt::format("{}, byte {}: {}", path_, offset_, message));
}

base::expected<PacketReader> PacketReader::open(std::string path, const PacketFormat& format) {
    // Non-blocking, because opening a pipe would otherwise wait for its writer.
    OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    DAQLOOM_REFUSE_IF(!file || ::fstat(file.get(), &status) != 0, "cannot read {}: {}", path,
                      std::strerror(errno));
    DAQLOOM_REFUSE_IF(!S_ISREG(status.st_mode), "cannot read {}: it is no file", path);
    PacketReader reader(std::move(path), std::move(file), format);
    reader.index_ = read_index(reader.path_, status.st_size);
    return reader;
}

base::expected<std::span<const std::uint8_t>> PacketReader::next() {
    if (packet_ > 0) {
        last_front_.assign(buffer_.get() + begin_, buffer_.get() + begin_ + format_->front);
        begin_ += packet_;
        offset_ += static_cast<Bytes>(packet_);
        packet_ = 0;
        ++number_;
    }
    DAQLOOM_CHECK(fetch(static_cast<std::size_t>(format_->front)));
    if (available() == 0 && (!index_ || number_ >= index_->size())) {
        return std::span<const std::uint8_t>();
    }
    DAQLOOM_TRY(size, size_of_next());
    const auto bytes = static_cast<std::size_t>(size);
    if (bytes > available() && size > left()) {
        return failure(fmt::format("a packet of {} bytes is cut off after {}, where the file ends",
                                   size, left()));
    }
    DAQLOOM_CHECK(fetch(bytes));
    if (available() < bytes) {
        return failure("the file became shorter while it was read");
    }
    DAQLOOM_CHECK(check_next(size));
    packet_ = bytes;
    return std::span<const std::uint8_t>(buffer_.get() + begin_, bytes);
}

base::expected<Bytes> PacketReader::size_of_next() const {
    if (index_) {
        return number_ < index_->size() ? Bytes{(*index_)[number_].bytes} : left();
    }
    const auto size = format_->size_of({buffer_.get() + begin_, available()});
    if (!size) {
        return failure(size.error().message);
    }
    if (*size < format_->front) {
        return failure(fmt::format("packet size {}; expected at least {}", *size, format_->front));
    }
    if (*size > largest_packet) {
        return failure(fmt::format("packet size {}; at most {} is read", *size, largest_packet));
    }
    return *size;
}

/// Compares the next packet, whose `bytes` bytes are in the buffer, with the index.
base::expected<void> PacketReader::check_next(Bytes bytes) const {
    if (!index_) {
        return {};
    }
    const auto packet = std::span(buffer_.get() + begin_, static_cast<std::size_t>(bytes));
    if (number_ >= index_->size() ||
        base::crc32c(std::as_bytes(packet)) != (*index_)[number_].checksum) {
        return failure(
            fmt::format("the packet of {} bytes is damaged: its checksum is not that of "
                        "the index, {}{}",
                        bytes, path_, index_ending));
    }
    return {};
}

base::expected<Bytes> PacketReader::skip() {
    const Bytes from = offset_;
    packet_ = 0;
    if (index_) {
        DAQLOOM_TRY(size, size_of_next());
        ++number_;
        DAQLOOM_CHECK(go_to(from + std::min(size, left())));
        return offset_ - from;
    }
    // If the size in the header is undamaged, the next packet begins where the damaged one ends.
    const auto front = bytes_at(from, format_->front);
    const auto size = front.empty() ? Bytes{0} : format_->size_of(front).value_or(0);
    if (size >= format_->front && size < left() && is_whole_at(from + size)) {
        DAQLOOM_CHECK(go_to(from + size));
        return size;
    }
    while (true) {
        DAQLOOM_CHECK(go_to(offset_ + std::min<Bytes>(1, left())));
        DAQLOOM_TRY(is_there, find_magic());
        if (!is_there || is_whole_at(offset_)) {
            return offset_ - from;
        }
    }
}

base::expected<Bytes> PacketReader::skip_from(Bytes offset) {
    DAQLOOM_CHECK(go_to(offset));
    return skip();
}

/// Advances to the next bytes with which a packet may begin. False: reached the end of the file.
base::expected<bool> PacketReader::find_magic() {
    const std::size_t length = format_->magic.size();
    while (true) {
        DAQLOOM_CHECK(fetch(length));
        const bool is_over = available() < length;
        auto* const end = buffer_.get() + end_;
        auto* found =
            std::search(buffer_.get() + begin_, end, format_->magic.begin(), format_->magic.end());
        const bool is_found = found != end;
        if (!is_found && !is_over) {
            found = end - (length - 1);  // the rest may be a part of the magic
        }
        offset_ += found - (buffer_.get() + begin_);
        begin_ = static_cast<std::size_t>(found - buffer_.get());
        if (is_found || is_over) {
            return is_found;
        }
    }
}

/// Reads bytes of the file without the buffer. Returns none if the file has fewer.
std::vector<std::uint8_t> PacketReader::bytes_at(Bytes at, Bytes bytes) const {
    std::vector<std::uint8_t> found(static_cast<std::size_t>(bytes));
    const auto count = ::pread(file_.get(), found.data(), found.size(), at);
    if (count != static_cast<ssize_t>(found.size())) {
        found.clear();
    }
    return found;
}

/// The size of the packet at this offset of the file; 0: there is no packet.
Bytes PacketReader::size_at(Bytes at) const {
    const auto header = bytes_at(at, format_->front);
    if (header.empty() || !format_->size_of(header)) {
        return 0;
    }
    const auto front = bytes_at(at, format_->bytes_for_size(header));
    const Bytes size = front.empty() ? 0 : format_->size_from(front).value_or(0);
    return size <= offset_ + left() - at ? size : 0;
}

/// Whether a packet is at this offset. Other bytes may look like a packet by chance, so the packet
/// must end at the end of the file or at another packet, or follow the packet before the damage.
bool PacketReader::is_whole_at(Bytes at) const {
    const Bytes size = size_at(at);
    const auto front = size > 0 ? bytes_at(at, format_->front) : std::vector<std::uint8_t>();
    if (front.empty()) {
        return false;
    }
    const Bytes end = at + size;
    return end == offset_ + left() ||
           (size_at(end) > 0 && format_->follows(front, bytes_at(end, format_->front))) ||
           (!last_front_.empty() && format_->follows(last_front_, front));
}

base::expected<void> PacketReader::rewind() {
    number_ = 0;
    last_front_.clear();
    return go_to(0);
}

/// Moves to an offset. The buffer keeps its bytes from this offset on.
base::expected<void> PacketReader::go_to(Bytes offset) {
    const Bytes further = offset - offset_;
    packet_ = 0;
    offset_ = offset;
    if (further >= 0 && further <= static_cast<Bytes>(available())) {
        begin_ += static_cast<std::size_t>(further);
        return {};
    }
    begin_ = end_ = 0;
    if (::lseek(file_.get(), offset, SEEK_SET) != offset) {
        return failure(std::strerror(errno));
    }
    return {};
}

base::expected<void> PacketReader::fetch(std::size_t bytes) {
    if (available() >= bytes) {
        return {};
    }
    DAQLOOM_CHECK(make_room(bytes));
    while (available() < bytes) {
        const auto count = ::read(file_.get(), buffer_.get() + end_, capacity_ - end_);
        if (count < 0 && errno != EINTR) {
            return failure(std::strerror(errno));
        }
        if (count == 0) {
            break;
        }
        end_ += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    return {};
}

base::expected<void> PacketReader::make_room(std::size_t bytes) {
    std::unique_ptr<std::uint8_t[]> larger;
    if (bytes > capacity_) {
        const std::size_t capacity = std::max(bytes, read_ahead);
        larger.reset(new (std::nothrow) std::uint8_t[capacity]);
        if (larger == nullptr) {
            return failure(fmt::format("no memory for a packet of {} bytes", bytes));
        }
        capacity_ = capacity;
    }
    const std::size_t kept = available();
    if (kept > 0) {
        std::memmove(larger ? larger.get() : buffer_.get(), buffer_.get() + begin_, kept);
    }
    if (larger) {
        buffer_ = std::move(larger);
    }
    begin_ = 0;
    end_ = kept;
    return {};
}

Bytes PacketReader::left() const {
    struct stat status {};
    return ::fstat(file_.get(), &status) == 0 ? std::max<Bytes>(status.st_size - offset_, 0) : 0;
}

template <>
base::expected<MfpFile> MfpFile::open(std::string path) {
    return PacketReader::open(std::move(path), mfp_format).map([](PacketReader&& reader) {
        return MfpFile(std::move(reader));
    });
}

template <>
base::expected<MepFile> MepFile::open(std::string path) {
    return PacketReader::open(std::move(path), mep_format).map([](PacketReader&& reader) {
        return MepFile(std::move(reader));
    });
}

base::expected<PacketFileWriter> PacketFileWriter::create(std::string path) {
    const std::string part = path + ending;
    OwnedFd file(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file) {
        return base::system_failure(fmt::format("cannot write {}: {}", part, std::strerror(errno)));
    }
    ::unlink((path + index_ending).c_str());  // index of a removed file of this name
    // The lock shows that the file is being written; file systems without locks cannot show this.
    [[maybe_unused]] const int locked = ::flock(file.get(), LOCK_EX | LOCK_NB);
    return PacketFileWriter(std::move(path), std::move(file));
}

PacketFileWriter::~PacketFileWriter() {
    if (file_) {
        ::unlink(part().c_str());
    }
}

bool PacketFileWriter::append(std::span<const std::uint8_t> packet) {
    if (error_ != 0) {
        return false;
    }
    for (auto rest = packet; !rest.empty();) {
        const auto count = ::write(file_.get(), rest.data(), rest.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            error_ = count < 0 ? errno : EIO;
            is_cut_ = ::ftruncate(file_.get(), bytes_) != 0;
            return false;
        }
        rest = rest.subspan(static_cast<std::size_t>(count));
    }
    ++packets_;
    if (index_.size() + 1 == packets_ &&
        packet.size() >= static_cast<std::size_t>(protocol::mfp_header_bytes) &&
        protocol::mfp_size(packet).value_or(0) == static_cast<Bytes>(packet.size())) {
        index_.push_back(IndexEntry::of(packet));
    }
    bytes_ += static_cast<Bytes>(packet.size());
    if (bytes_ - on_its_way_ >= write_behind) {  // limits what commit has to write
        ::sync_file_range(file_.get(), on_its_way_, bytes_ - on_its_way_, SYNC_FILE_RANGE_WRITE);
        on_its_way_ = bytes_;
    }
    return true;
}

base::expected<void> PacketFileWriter::commit() {
    const OwnedFd file = std::move(file_);
    if (index_.size() == packets_) {
        static_cast<void>(write_index(path_, index_));
    }
    const bool is_whole = !is_cut_ && ::fdatasync(file.get()) == 0;
    if (is_whole && ::rename(part().c_str(), path_.c_str()) == 0) {
        return {};
    }
    if (error_ == 0) {
        error_ = errno;
    }
    return base::system_failure(fmt::format("cannot finish {}: {}", path_, std::strerror(error_)));
}

}  // namespace daqloom::live
