// A piece of memory that several processes map: nameless, so that nothing is left behind when they
// are gone.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"

namespace daqloom::live {

/// A file descriptor that is closed when nobody owns it any more.
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

/// memfd(2), mapped whole. Sealed against any change of size: whoever maps it cannot be hurt by
/// another process that shrinks it. Lives as long as somebody maps it.
class SharedMemory {
  public:
    enum class Access { read, read_write };

    SharedMemory() = default;
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&& other) noexcept;
    ~SharedMemory();

    /// Zeroed. `name` is for /proc only. `bytes` above 0; fails where there is not as much memory.
    static base::expected<SharedMemory> create(const std::string& name, base::Bytes bytes);
    /// What another process made with `create` and handed over. Fails for any other file, or one
    /// that is not sealed or larger than `most`.
    static base::expected<SharedMemory> attach(OwnedFd fd, Access access, base::Bytes most);

    /// All pages are there and mapped, as far as the system grants it: the first access to each is
    /// as fast as the others. Takes a while: a second or more for a gigabyte.
    void populate() const;

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
