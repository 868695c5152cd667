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
#include <system_error>

#include "live/memory/shared_memory.hpp"
#include "protocol/data/little_endian.hpp"
#include "protocol/data/mfp.hpp"

namespace daqloom::live {

namespace {

namespace fs = std::filesystem;
using base::Bytes;
using protocol::number_at;

/// From header to header.
class Walk {
  public:
    Walk(const std::string& path, OwnedFd file, Bytes bytes, std::uint32_t packing)
        : path_(path), file_(std::move(file)), bytes_(bytes), packing_(packing) {}

    base::expected<RecordedFile> all() {
        if (bytes_ == 0) {
            return base::failure(path_ + " is empty; expected MFPs");
        }
        RecordedFile found{.path = path_};
        bool is_first = true;
        while (offset_ < bytes_) {
            const auto read = ::pread(file_.get(), header_.data(), header_.size(), offset_);
            if (read != static_cast<ssize_t>(header_.size())) {
                return wrong("is cut off");
            }
            DAQLOOM_CHECK(take(found, is_first));
            is_first = false;
        }
        return found;
    }

  private:
    base::expected<void> take(RecordedFile& found, bool is_first) {
        const auto size = static_cast<Bytes>(number_at<std::uint32_t>(header_, 4));
        const auto event = number_at<std::uint64_t>(header_, 8);
        const auto source_id = number_at<std::uint16_t>(header_, 16);
        if (number_at<std::uint16_t>(header_, 0) != protocol::mfp_magic ||
            size < protocol::mfp_header_bytes || size > bytes_ - offset_) {
            return wrong("is none, or cut off");
        }
        if (number_at<std::uint16_t>(header_, 2) != packing_) {
            return wrong(fmt::format("has {} fragments; expected the packing factor, {}",
                                     number_at<std::uint16_t>(header_, 2), packing_));
        }
        const std::uint64_t number = event / packing_;
        if (event % packing_ != 0 || (!is_first && number <= found.last)) {
            return wrong("is out of order; expected ascending multiples of the packing factor");
        }
        if (!is_first && source_id != found.source_id) {
            return wrong("is of another stream than the one before");
        }
        found.source_id = source_id;
        found.first = is_first ? number : found.first;
        found.last = number;
        found.largest = std::max(found.largest, size);
        offset_ += size;
        return {};
    }
    [[nodiscard]] tl::unexpected<base::Error> wrong(const std::string& what) const {
        return base::failure(fmt::format("{}: the MFP at byte {} {}", path_, offset_, what));
    }

    const std::string& path_;
    OwnedFd file_;
    Bytes bytes_;
    std::uint32_t packing_;
    Bytes offset_ = 0;
    std::array<std::uint8_t, protocol::mfp_header_bytes> header_{};
};

base::expected<RecordedFile> file_at(const std::string& path, std::uint32_t packing) {
    OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0) {
        return base::failure(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    }
    if (!S_ISREG(status.st_mode)) {
        return base::failure(path + " is no regular file; expected a file of MFPs");
    }
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
    if (error) {
        return base::failure(fmt::format("cannot read {}: {}", path, error.message()));
    }
    if (paths.empty()) {
        return base::failure(path + " has no files that end in .mfp; expected a recording");
    }
    std::ranges::sort(paths);
    return paths;
}

}  // namespace

base::expected<Recording> Recording::open(const std::string& path, std::uint32_t packing) {
    if (packing == 0) {
        return base::failure(fmt::format("packing 0 for {}; give 1 to 65535", path));
    }
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
