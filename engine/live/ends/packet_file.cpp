#include "live/ends/packet_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

namespace daqloom::live {

namespace {

using base::Bytes;

constexpr std::size_t read_ahead = std::size_t{1} << 20;
constexpr Bytes write_behind = Bytes{8} << 20;
constexpr Bytes largest_packet = Bytes{1} << 33;  ///< a sparse file may have any size

}  // namespace

tl::unexpected<base::Error> PacketReader::failure(const std::string& message) const {
    return base::failure(fmt::format("{}, byte {}: {}", path_, offset_, message));
}

base::expected<PacketReader> PacketReader::open(std::string path, Bytes front, SizeOf size_of) {
    // Non-blocking: opening a pipe would wait for its writer.
    OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0) {
        return base::failure(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    }
    if (!S_ISREG(status.st_mode)) {
        return base::failure(fmt::format("cannot read {}: it is no file", path));
    }
    return PacketReader(std::move(path), std::move(file), front, size_of);
}

base::expected<std::span<const std::uint8_t>> PacketReader::next() {
    begin_ += packet_;
    offset_ += static_cast<Bytes>(packet_);
    packet_ = 0;
    DAQLOOM_CHECK(fetch(static_cast<std::size_t>(front_)));
    if (available() == 0) {
        return std::span<const std::uint8_t>();
    }
    const auto size = size_of_({buffer_.get() + begin_, available()});
    if (!size) {
        return failure(size.error().message);
    }
    if (*size < front_) {
        return failure(fmt::format("packet size {}; expected at least {}", *size, front_));
    }
    if (*size > largest_packet) {
        return failure(fmt::format("packet size {}; at most {} is read", *size, largest_packet));
    }
    const auto bytes = static_cast<std::size_t>(*size);
    if (bytes > available() && *size > left()) {
        return failure(fmt::format("a packet of {} bytes is cut off after {}, where the file ends",
                                   *size, left()));
    }
    DAQLOOM_CHECK(fetch(bytes));
    if (available() < bytes) {
        return failure("the file became shorter while it was read");
    }
    packet_ = bytes;
    return std::span<const std::uint8_t>(buffer_.get() + begin_, bytes);
}

base::expected<void> PacketReader::rewind() {
    offset_ = 0;
    packet_ = begin_ = end_ = 0;
    if (::lseek(file_.get(), 0, SEEK_SET) != 0) {
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
    return PacketReader::open(std::move(path), protocol::mfp_header_bytes, protocol::mfp_size)
        .map([](PacketReader&& reader) { return MfpFile(std::move(reader)); });
}

template <>
base::expected<MepFile> MepFile::open(std::string path) {
    return PacketReader::open(std::move(path), protocol::mep_overhead(0), protocol::mep_size)
        .map([](PacketReader&& reader) { return MepFile(std::move(reader)); });
}

base::expected<PacketFileWriter> PacketFileWriter::create(std::string path) {
    const std::string part = path + ending;
    OwnedFd file(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file) {
        return base::system_failure(fmt::format("cannot write {}: {}", part, std::strerror(errno)));
    }
    // On a file system without locks nobody can tell that the file is being written.
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
    bytes_ += static_cast<Bytes>(packet.size());
    if (bytes_ - on_its_way_ >= write_behind) {  // so that little is left for commit
        ::sync_file_range(file_.get(), on_its_way_, bytes_ - on_its_way_, SYNC_FILE_RANGE_WRITE);
        on_its_way_ = bytes_;
    }
    return true;
}

base::expected<void> PacketFileWriter::commit() {
    const OwnedFd file = std::move(file_);
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
