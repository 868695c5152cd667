// Passes file descriptors between processes of one machine over an abstract Unix socket, which ends
// with its owner.
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
#include "live/memory/shared_memory.hpp"

namespace daqloom::live {

/// The secret of a run, given to its units by the run control.
using Token = std::array<std::byte, 16>;

/// One message with its descriptors.
struct Parcel {
    std::vector<std::byte> bytes;
    std::vector<OwnedFd> fds;
};

/// A connection to another process of the same user on this machine. It ends as soon as that
/// process dies.
class Handover {
  public:
    static constexpr std::size_t most_bytes = 4096;
    static constexpr std::size_t most_fds = 8;

    explicit Handover(OwnedFd socket, pid_t peer) : socket_(std::move(socket)), peer_(peer) {}

    /// Connects without waiting for the other side to accept.
    static base::expected<Handover> connect(const std::string& name);

    /// Sends up to `most_bytes` and `most_fds`.
    [[nodiscard]] base::expected<void> send(std::span<const std::byte> bytes,
                                            std::span<const int> fds = {}) const;
    /// Receives a message. Fails if none arrives before `until`, or if the peer is gone.
    [[nodiscard]] base::expected<Parcel> receive(base::Time until) const;
    /// Whether the other side is gone.
    [[nodiscard]] bool is_closed() const;

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] pid_t peer() const { return peer_; }

  private:
    OwnedFd socket_;
    pid_t peer_;
};

/// Accepts connections from processes of the same user; refuses and counts others. A connection
/// that cannot be accepted now, such as for lack of file descriptors, keeps the socket readable:
/// the listener then pauses, so that a loop that polls the socket sleeps meanwhile.
class HandoverListener {
  public:
    /// Listens at an abstract socket, with a `name` of up to 100 characters that is not in use.
    static base::expected<HandoverListener> listen(const std::string& name);

    /// Fails if no process has connected by `until`.
    [[nodiscard]] base::expected<Handover> accept(base::Time until);

    [[nodiscard]] int fd() const { return socket_.get(); }
    /// Descriptor to poll for POLLIN; -1, which poll() skips, during a pause.
    [[nodiscard]] int fd_to_poll() const { return is_paused() ? -1 : socket_.get(); }
    /// Latest time to poll: the end of the pause; never() if there is no pause.
    [[nodiscard]] base::Time wake() const;
    [[nodiscard]] std::uint64_t refused() const { return refused_; }

  private:
    explicit HandoverListener(OwnedFd socket) : socket_(std::move(socket)) {}
    [[nodiscard]] bool is_paused() const;

    OwnedFd socket_;
    base::Time pause_end_ = base::Time::zero();
    std::uint64_t refused_ = 0;
};

}  // namespace daqloom::live
