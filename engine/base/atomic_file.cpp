#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>

namespace daqloom::base {
namespace {

namespace fs = std::filesystem;

std::string reason(int error) { return std::generic_category().message(error); }

/// Opens a new file; fails (null, errno) if a file or a link with this name exists.
std::FILE* create_new(const std::string& path) {
    const int handle = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    std::FILE* file = handle < 0 ? nullptr : ::fdopen(handle, "wb");
    if (handle >= 0 && file == nullptr) {
        ::close(handle);
    }
    return file;
}

/// An unpredictable name in the folder of `path`, unique across processes and machines.
std::string part_of(const std::string& path) {
    std::uint64_t number = 0;
    while (::getrandom(&number, sizeof number, 0) != sizeof number) {
    }
    return fmt::format("{}.{:016x}.part", path, number);
}

}  // namespace

expected<AtomicFile> AtomicFile::create(std::string path) {
    std::error_code ignored;
    const auto status = fs::status(path, ignored);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        return failure("cannot write " + path +
                       ": it exists and is no regular file; give the name of a file");
    }
    auto part_path = part_of(path);
    std::FILE* file = create_new(part_path);
    if (file == nullptr) {
        return system_failure("cannot write " + path + ": " + reason(errno) +
                              "; give a name in a folder that exists and may be written");
    }
    return AtomicFile(std::move(path), std::move(part_path), file);
}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
    if (this != &other) {
        discard();
        path_ = std::move(other.path_);
        part_path_ = std::move(other.part_path_);
        file_ = std::move(other.file_);
        error_ = other.error_;
    }
    return *this;
}

void AtomicFile::write(std::string_view bytes) {
    if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
        error_ = errno;
    }
}

expected<void> AtomicFile::commit() {
    if (error_ == 0 && std::fflush(file_.get()) != 0) {
        error_ = errno;
    }
    if (error_ != 0) {
        discard();
        return cannot_write(error_);
    }
    const bool closed = std::fclose(file_.release()) == 0;
    if (!closed || std::rename(part_path_.c_str(), path_.c_str()) != 0) {
        const int error = errno;
        std::remove(part_path_.c_str());
        return cannot_write(error);
    }
    return {};
}

void AtomicFile::discard() noexcept {
    if (file_ != nullptr) {
        file_.reset();
        std::remove(part_path_.c_str());
    }
}

tl::unexpected<Error> AtomicFile::cannot_write(int error) const {
    return system_failure("cannot write " + path_ + ": " + reason(error) +
                          "; nothing is left of it under that name");
}

}  // namespace daqloom::base
