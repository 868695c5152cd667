// For tests: buffers, and helpers for their readers and for hostile processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/expected_test.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/clock.hpp"
#include "live/memory/hung_test.hpp"

namespace daqloom::live {

inline Buffer buffer_of(base::Bytes bytes, std::uint32_t pieces = 64) {
    return base::value_of(Buffer::create({.name = "test", .bytes = bytes, .pieces = pieces}));
}

/// A buffer with its writer and its reader.
struct TwoSides {
    explicit TwoSides(base::Bytes bytes, std::uint32_t pieces = 64)
        : buffer(buffer_of(bytes, pieces)) {}

    Buffer buffer;
    BufferWriter writer{buffer};
    BufferReader reader{buffer};
};

/// Duplicates of the buffer's descriptors, as another process would receive them.
inline std::vector<OwnedFd> copied_descriptors(const Buffer& buffer) {
    std::vector<OwnedFd> fds;
    for (const int fd : buffer.descriptors()) {
        fds.emplace_back(::dup(fd));
    }
    return fds;
}

/// The next piece; none: the buffer is at its end or broken, or no piece came in time.
inline std::optional<Piece> take(BufferReader& reader) {
    const base::Time deadline = now() + kHung;
    auto piece = reader.next();
    while (!piece && !reader.is_at_end() && !reader.is_broken() && now() < deadline) {
        reader.wait(deadline);
        piece = reader.next();
    }
    EXPECT_TRUE(piece || reader.is_at_end() || reader.is_broken()) << "nothing came";
    return piece;
}

/// The words of a buffer's control block, which a hostile process may change.
class HostileControl {
  public:
    explicit HostileControl(const Buffer& buffer)
        : memory_(base::value_of(SharedMemory::attach(OwnedFd(::dup(buffer.descriptors()[0])),
                                                      SharedMemory::Access::read_write, 1 << 20))) {
    }
    [[nodiscard]] std::span<std::uint64_t> words() const {
        return {reinterpret_cast<std::uint64_t*>(memory_.bytes().data()),
                memory_.bytes().size() / sizeof(std::uint64_t)};
    }
    /// Count of acknowledged pieces, on the second cache line.
    [[nodiscard]] std::uint64_t& acknowledged() const { return words()[8]; }

  private:
    SharedMemory memory_;
};

inline std::span<const std::uint8_t> octets(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

/// Whether a process has ended by itself, with exit status 0.
inline bool has_succeeded(pid_t process) {
    int status = 0;
    ::waitpid(process, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace daqloom::live
