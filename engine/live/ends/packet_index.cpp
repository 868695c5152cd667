#include "live/ends/packet_index.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/atomic_file.hpp"
#include "base/crc32c.hpp"
#include "live/memory/shared_memory.hpp"
#include "protocol/data/little_endian.hpp"

namespace daqloom::live {

namespace {

constexpr std::array<std::uint32_t, 2> kIndexHeader = {0x58494c44, 1};
constexpr base::Bytes kLargestIndex = base::Bytes{1} << 32;
static_assert(sizeof(IndexEntry) == 16);

template <class Values>
std::string_view text_of(const Values& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// All bytes of a file; empty if the file cannot be read.
std::vector<std::byte> contents(const std::string& path) {
    const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size > kLargestIndex) {
        return {};
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
        const auto count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
        if (count <= 0) {
            return {};
        }
        done += static_cast<std::size_t>(count);
    }
    return bytes;
}

}  // namespace

IndexEntry IndexEntry::of(std::span<const std::uint8_t> mfp) {
    return {.event_id = protocol::number_at<std::uint64_t>(mfp, 8),
            .bytes = static_cast<std::uint32_t>(mfp.size()),
            .checksum = base::crc32c(std::as_bytes(mfp))};
}

std::optional<std::vector<IndexEntry>> read_index(const std::string& path, base::Bytes file_bytes) {
    const std::vector<std::byte> bytes = contents(path + index_ending);
    constexpr std::size_t ends = sizeof kIndexHeader + sizeof(std::uint32_t);
    if (bytes.size() < ends || (bytes.size() - ends) % sizeof(IndexEntry) != 0 ||
        std::memcmp(bytes.data(), &kIndexHeader, sizeof kIndexHeader) != 0) {
        return std::nullopt;
    }
    const auto checked = std::span(bytes).first(bytes.size() - sizeof(std::uint32_t));
    std::uint32_t checksum = 0;
    std::memcpy(&checksum, bytes.data() + checked.size(), sizeof checksum);
    if (checksum != base::crc32c(checked)) {
        return std::nullopt;
    }
    std::vector<IndexEntry> entries((bytes.size() - ends) / sizeof(IndexEntry));
    if (!entries.empty()) {  // memcpy takes no null pointer
        std::memcpy(entries.data(), bytes.data() + sizeof kIndexHeader,
                    entries.size() * sizeof(IndexEntry));
    }
    base::Bytes indexed = 0;
    for (const IndexEntry& entry : entries) {
        indexed += entry.bytes;
    }
    return indexed >= file_bytes ? std::optional(std::move(entries)) : std::nullopt;
}

bool write_index(const std::string& path, std::span<const IndexEntry> entries) {
    ::unlink((path + index_ending).c_str());  // index of an earlier file
    auto file = base::AtomicFile::create(path + index_ending);
    if (!file) {
        return false;
    }
    const std::uint32_t checksum =
        base::crc32c(std::as_bytes(entries), base::crc32c(std::as_bytes(std::span(kIndexHeader))));
    file->write(text_of(kIndexHeader));
    file->write(text_of(entries));
    file->write(text_of(std::array{checksum}));
    return file->commit().has_value();
}

}  // namespace daqloom::live
