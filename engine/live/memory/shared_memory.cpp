#include "live/memory/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace daqloom::live {

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

base::expected<std::byte*> map(int fd, std::size_t size, int protection) {
    void* data = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        return base::system_failure(
            fmt::format("cannot map {} bytes of shared memory: {}", size, std::strerror(errno)));
    }
    return static_cast<std::byte*>(data);
}

}  // namespace

OwnedFd::~OwnedFd() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

SharedMemory::~SharedMemory() {
    if (data_ != nullptr) {
        ::munmap(data_, size_);
    }
}

base::expected<SharedMemory> SharedMemory::create(const std::string& name, base::Bytes bytes) {
    OwnedFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd || bytes <= 0 || ::ftruncate(fd.get(), bytes) != 0 ||
        ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
        return base::system_failure(fmt::format("cannot make {} bytes of shared memory for {}: {}",
                                                bytes, name,
                                                bytes <= 0 ? "no size" : std::strerror(errno)));
    }
    const auto size = static_cast<std::size_t>(bytes);
    DAQLOOM_TRY(data, map(fd.get(), size, PROT_READ | PROT_WRITE));
    return SharedMemory(std::move(fd), data, size);
}

base::expected<SharedMemory> SharedMemory::attach(OwnedFd fd, Access access, base::Bytes most) {
    struct stat status {};
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(fd.get(), &status) != 0) {
        return base::system_failure(
            "shared memory that is no sealed memfd; expected one of daqloom's");
    }
    if (status.st_size <= 0 || status.st_size > most) {
        return base::system_failure(
            fmt::format("shared memory of {} bytes; expected 1 to {}", status.st_size, most));
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    DAQLOOM_TRY(data,
                map(fd.get(), size, access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE));
    return SharedMemory(std::move(fd), data, size);
}

base::expected<SharedMemory> SharedMemory::create_file(const std::string& path, base::Bytes bytes) {
    const std::string scratch = path + ".new";
    ::unlink(scratch.c_str());
    OwnedFd fd(::open(scratch.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    // Space is allocated now, since a write to a full file system would end the process.
    const int failed = fd && bytes > 0 ? ::posix_fallocate(fd.get(), 0, bytes) : errno;
    if (!fd || bytes <= 0 || failed != 0 || ::rename(scratch.c_str(), path.c_str()) != 0) {
        return base::system_failure(fmt::format("cannot make the file {} of {} bytes: {}", path,
                                                bytes,
                                                std::strerror(failed != 0 ? failed : errno)));
    }
    const auto size = static_cast<std::size_t>(bytes);
    DAQLOOM_TRY(data, map(fd.get(), size, PROT_READ | PROT_WRITE));
    return SharedMemory(std::move(fd), data, size);
}

base::expected<SharedMemory> SharedMemory::open_file(const std::string& path, base::Bytes most) {
    OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != ::geteuid() || status.st_size <= 0 || status.st_size > most) {
        return base::system_failure(
            fmt::format("{} is no file of this user of up to {} bytes", path, most));
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    DAQLOOM_TRY(data, map(fd.get(), size, PROT_READ));
    return SharedMemory(std::move(fd), data, size);
}

void SharedMemory::populate() const {
    if (data_ != nullptr) {
        ::madvise(data_, size_, MADV_HUGEPAGE);  // where shmem_enabled says "advise"
        ::madvise(data_, size_, MADV_POPULATE_WRITE);
    }
}

}  // namespace daqloom::live
