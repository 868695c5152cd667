#include "live/ends/recording.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "live/ends/packet_file.hpp"
#include "live/memory/shared_memory.hpp"
#include "protocol/data/little_endian.hpp"
#include "protocol/data/mfp.hpp"

namespace daqloom::live {

namespace {

namespace fs = std::filesystem;
using base::Bytes;
using protocol::number_at;

/// Walk through the MFPs of a file, by their headers or by the entries of its index.
class Walk {
  public:
    Walk(const std::string& path, OwnedFd file, Bytes bytes, std::uint32_t packing)
        : found_{.path = path}, file_(std::move(file)), bytes_(bytes), packing_(packing) {}

    base::expected<RecordedFile> all() {
        DAQLOOM_REFUSE_IF(bytes_ == 0, "{} is empty; expected MFPs", found_.path);
        if (const auto index = read_index(found_.path, bytes_); index && !index->empty()) {
            DAQLOOM_CHECK(take_all(*index));
            return found_;
        }
        while (offset_ < bytes_) {
            if (const Bytes size = read_header(); size > 0) {
                DAQLOOM_CHECK(take(number_at<std::uint64_t>(header_, 8), size));
                offset_ += size;
            } else if (is_first_) {
                return wrong("is none, or cut off");
            } else {
                DAQLOOM_CHECK(skip());
            }
        }
        return found_;
    }

  private:
    /// Walks by the index. The first MFP that agrees with it gives stream and packing factor.
    base::expected<void> take_all(const std::vector<IndexEntry>& index) {
        for (const IndexEntry& entry : index) {
            const bool is_known = !is_first_;
            if (is_known || (read_header() == Bytes{entry.bytes} &&
                             number_at<std::uint64_t>(header_, 8) == entry.event_id)) {
                DAQLOOM_CHECK(take(entry.event_id, entry.bytes));
            }
            offset_ += entry.bytes;
        }
        return is_first_ ? wrong("is no MFP of its index") : base::expected<void>{};
    }

    /// Returns the size of the MFP at this offset; 0: there is none.
    Bytes read_header() {
        const auto read = ::pread(file_.get(), header_.data(), header_.size(), offset_);
        const auto size = static_cast<Bytes>(number_at<std::uint32_t>(header_, 4));
        const bool is_mfp = read == static_cast<ssize_t>(header_.size()) &&
                            number_at<std::uint16_t>(header_, 0) == protocol::mfp_magic &&
                            size >= protocol::mfp_header_bytes && size <= bytes_ - offset_;
        return is_mfp ? size : 0;
    }

    base::expected<void> take(std::uint64_t event, Bytes size) {
        const auto source_id = number_at<std::uint16_t>(header_, 16);
        if (const auto count = number_at<std::uint16_t>(header_, 2); count != packing_) {
            const bool is_other_recording = is_first_ && count > 0;
            return wrong(fmt::format(
                "has {} fragments; expected the packing factor, {}{}", count, packing_,
                is_other_recording ? fmt::format("; set event.packing = {}", count) : ""));
        }
        const std::uint64_t number = event / packing_;
        if (event % packing_ != 0 || (!is_first_ && number <= found_.last)) {
            return wrong("is out of order; expected ascending multiples of the packing factor");
        }
        if (!is_first_ && source_id != found_.source_id) {
            return wrong("is of another stream than the one before");
        }
        found_.source_id = source_id;
        found_.first = is_first_ ? number : found_.first;
        found_.last = number;
        found_.largest = std::max(found_.largest, size);
        is_first_ = false;
        return {};
    }

    base::expected<void> skip() {
        if (!reader_) {
            DAQLOOM_TRY(reader, MfpFile::open(found_.path));
            reader_.emplace(std::move(reader));
        }
        DAQLOOM_TRY(bytes, reader_->skip_from(offset_));
        offset_ += bytes;
        return {};
    }

    [[nodiscard]] tl::unexpected<base::Error> wrong(const std::string& what) const {
        return base::failure(fmt::format("{}: the MFP at byte {} {}", found_.path, offset_, what));
    }

    RecordedFile found_;
    OwnedFd file_;
    Bytes bytes_;
    std::uint32_t packing_;
    bool is_first_ = true;
    Bytes offset_ = 0;
    std::array<std::uint8_t, protocol::mfp_header_bytes> header_{};
    std::optional<MfpFile> reader_;  ///< only for damaged files
};

base::expected<RecordedFile> file_at(const std::string& path, std::uint32_t packing) {
    OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    DAQLOOM_REFUSE_IF(!file || ::fstat(file.get(), &status) != 0, "cannot read {}: {}", path,
                      std::strerror(errno));
    DAQLOOM_REFUSE_IF(!S_ISREG(status.st_mode), "{} is no regular file; expected a file of MFPs",
                      path);
    return Walk(path, std::move(file), status.st_size, packing).all();
}

base::expected<std::vector<std::string>> paths_at(const std::string& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
        return std::vector<std::string>{path};
    }
    std::vector<std::string> paths;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().extension() == ".mfp") {
            paths.push_back(entry->path().string());
        }
    }
    DAQLOOM_REFUSE_IF(error, "cannot read {}: {}", path, error.message());
    DAQLOOM_REFUSE_IF(paths.empty(), "{} has no files that end in .mfp; expected a recording",
                      path);
    std::ranges::sort(paths);
    return paths;
}

}  // namespace

base::expected<Recording> Recording::open(const std::string& path, std::uint32_t packing) {
    DAQLOOM_REFUSE_IF(packing == 0, "packing 0 for {}; give 1 to 65535", path);
    DAQLOOM_TRY(paths, paths_at(path));
    Recording recording;
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t last = 0;
    for (const std::string& each : paths) {
        DAQLOOM_TRY(file, file_at(each, packing));
        first = std::min(first, file.first);
        last = std::max(last, file.last);
        recording.files.push_back(std::move(file));
    }
    recording.first = first;
    recording.count = last - first + 1;
    return recording;
}

}  // namespace daqloom::live
