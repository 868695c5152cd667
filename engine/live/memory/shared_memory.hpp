// Memory that several processes map. It has no name, so it is freed when all these processes have
// ended.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"

namespace daqloom::live {

/// A file descriptor with its owner, which closes it.
class OwnedFd {
  public:
    OwnedFd() = default;
    explicit OwnedFd(int fd) : fd_(fd) {}
    OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    OwnedFd& operator=(OwnedFd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~OwnedFd();

    [[nodiscard]] int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

/// memfd(2), mapped as a whole. It is sealed against any change of size, so that another process
/// cannot shrink it. It exists as long as a process maps it.
class SharedMemory {
  public:
    enum class Access { read, read_write };

    SharedMemory() = default;
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&& other) noexcept;
    ~SharedMemory();

    /// Creates zeroed memory; `bytes` above 0. `name`, up to 249 characters, is the descriptor's
    /// name in /proc. Fails without enough memory.
    static base::expected<SharedMemory> create(const std::string& name, base::Bytes bytes);
    /// Maps memory that another process made with `create` and passed on. Fails for any other file,
    /// an unsealed one, or memory larger than `most`.
    static base::expected<SharedMemory> attach(OwnedFd fd, Access access, base::Bytes most);

    /// Creates zeroed memory in the file `path`, which replaces an older file of that name.
    static base::expected<SharedMemory> create_file(const std::string& path, base::Bytes bytes);
    /// Maps a file of this user for reading. Fails for any other file, or one larger than `most`.
    static base::expected<SharedMemory> open_file(const std::string& path, base::Bytes most);

    /// Allocates and maps all pages, as far as the system allows, so that the first access to a
    /// page is as fast as later ones. Takes a second or more for a gigabyte.
    void populate() const;

    /// Closes the descriptor: the memory stays mapped, and no other process can map it any more.
    void close_descriptor() { fd_ = OwnedFd(); }

    [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }
    [[nodiscard]] int fd() const { return fd_.get(); }
    explicit operator bool() const { return data_ != nullptr; }

  private:
    SharedMemory(OwnedFd fd, std::byte* data, std::size_t size)
        : fd_(std::move(fd)), data_(data), size_(size) {}

    OwnedFd fd_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace daqloom::live
