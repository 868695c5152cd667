// The limit of TCP with io_uring: one message at a time to and from each other process, of which
// the kernel carries on with what does not go at once; one system call hands over what is new and
// waits.
#include <liburing.h>

#include "sockets.hpp"

namespace {

using daqloom::bench::give_up;
using daqloom::bench::Process;

class Ring {
  public:
    Ring(Process& process, bool zero_copy)
        : process_(process), zero_copy_(zero_copy), is_sending_(process.sockets.size(), 0) {
        const std::size_t peers = process.sockets.size();
        const auto check = [](int result, const char* what) {
            if (result < 0) {
                errno = -result;
                give_up(what);
            }
        };
        // The thread that waits does the kernel's part of the work too: nothing interrupts it.
        check(io_uring_queue_init(static_cast<unsigned>(4 * peers), &ring_,
                                  IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN),
              "io_uring");
        check(io_uring_register_ring_fd(&ring_), "io_uring: the ring");
        check(io_uring_register_files(&ring_, process.sockets.data(), static_cast<unsigned>(peers)),
              "io_uring: sockets");
        if (zero_copy_) {
            const iovec area{process.from.data(), process.from.size()};
            check(io_uring_register_buffers(&ring_, &area, 1), "io_uring: memory");
        }
    }

    void run() {
        for (std::size_t peer = 0; peer < process_.sockets.size(); ++peer) {
            if (peer != process_.self) {
                begin_to_receive(peer);
            }
        }
        while (true) {
            const bool did = send_what_may_go();
            io_uring_submit_and_wait(&ring_, did ? 0 : 1);
            take_completions();
        }
    }

  private:
    enum Kind : std::uint64_t { receiving, sending };

    void finish(io_uring_sqe* entry, Kind kind, std::size_t peer) {
        entry->flags |= IOSQE_FIXED_FILE;
        entry->user_data = peer << 1 | kind;
    }

    /// All of a message, into its final place.
    void begin_to_receive(std::size_t peer) {
        const auto rest = process_.rest_of_place(peer);
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
        io_uring_prep_recv(entry, static_cast<int>(peer), rest.data(), rest.size(), MSG_WAITALL);
        finish(entry, receiving, peer);
    }

    void begin_to_send(std::size_t peer) {
        const auto rest = process_.rest_of_message(peer);
        constexpr int flags = MSG_NOSIGNAL | MSG_WAITALL;
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
        if (zero_copy_) {
            io_uring_prep_send_zc_fixed(entry, static_cast<int>(peer), rest.data(), rest.size(),
                                        flags, 0, 0);
        } else {
            io_uring_prep_send(entry, static_cast<int>(peer), rest.data(), rest.size(), flags);
        }
        finish(entry, sending, peer);
        is_sending_[peer] = 1;
    }

    /// False: nothing was done that others may have answered meanwhile.
    bool send_what_may_go() {
        bool did = false;
        for (std::size_t i = 0; i < process_.sockets.size(); ++i) {
            const std::size_t peer = (process_.self + i) % process_.sockets.size();
            if (is_sending_[peer] || !process_.may_send(peer)) {
                continue;
            }
            if (peer == process_.self) {
                process_.copy_to_self();
                did = true;
            } else {
                begin_to_send(peer);
            }
        }
        return did;
    }

    void take_completions() {
        io_uring_cqe* entry = nullptr;
        while (io_uring_peek_cqe(&ring_, &entry) == 0) {
            const std::size_t peer = entry->user_data >> 1;
            // A notification that the kernel no longer needs a message is of no use: messages stay.
            if ((entry->flags & IORING_CQE_F_NOTIF) == 0) {
                on_done((entry->user_data & 1) != 0 ? sending : receiving, peer, entry->res);
            }
            io_uring_cq_advance(&ring_, 1);
        }
    }

    void on_done(Kind kind, std::size_t peer, int result) {
        if (result <= 0) {
            errno = -result;
            give_up(kind == sending ? "io_uring: send" : "io_uring: receive");
        }
        if (kind == sending) {
            process_.sent[peer] += static_cast<std::uint64_t>(result);
            is_sending_[peer] = 0;
        } else {
            process_.on_received(peer, static_cast<std::size_t>(result));
            begin_to_receive(peer);
        }
    }

    Process& process_;
    bool zero_copy_;
    io_uring ring_{};
    std::vector<char> is_sending_;
};

}  // namespace

int main(int argc, char** argv) {
    daqloom::bench::all_to_all(
        argc, argv, "zero_copy",
        [](Process& process, std::size_t zero_copy) { Ring(process, zero_copy != 0).run(); });
}
