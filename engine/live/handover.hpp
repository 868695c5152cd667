// Processes of one machine hand file descriptors to each other: an abstract Unix socket, which
// leaves nothing behind when its owner is gone.
#pragma once

#include <sys/types.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/shared_memory.hpp"

namespace daqloom::live {

/// What those of one run know and nobody else. Given out by the run control.
using Token = std::array<std::byte, 16>;

/// One message with the descriptors that came with it.
struct Parcel {
    std::vector<std::byte> bytes;
    std::vector<OwnedFd> fds;
};

/// A connection to another process of the same user on this machine. Its end is seen at once when
/// that process dies.
class Handover {
  public:
    static constexpr std::size_t most_bytes = 4096;
    static constexpr std::size_t most_fds = 8;

    explicit Handover(OwnedFd socket, pid_t peer) : socket_(std::move(socket)), peer_(peer) {}

    /// Does not wait for the other side to accept.
    static base::expected<Handover> connect(const std::string& name);

    /// Up to `most_bytes` and `most_fds`.
    [[nodiscard]] base::expected<void> send(std::span<const std::byte> bytes,
                                            std::span<const int> fds = {}) const;
    /// Fails if nothing has come by then, or the other side is gone.
    [[nodiscard]] base::expected<Parcel> receive(base::Time until) const;
    /// Whether the other side is gone.
    [[nodiscard]] bool is_closed() const;

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] pid_t peer() const { return peer_; }

  private:
    OwnedFd socket_;
    pid_t peer_;
};

/// Where others connect to. Only processes of our own user are let in; others are counted.
class HandoverListener {
  public:
    /// `name`: of the abstract socket, up to 100 characters. Fails if somebody has it.
    static base::expected<HandoverListener> listen(const std::string& name);

    /// Fails if nobody has come by then.
    [[nodiscard]] base::expected<Handover> accept(base::Time until);

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] std::uint64_t refused() const { return refused_; }

  private:
    explicit HandoverListener(OwnedFd socket) : socket_(std::move(socket)) {}

    OwnedFd socket_;
    std::uint64_t refused_ = 0;
};

}  // namespace daqloom::live
