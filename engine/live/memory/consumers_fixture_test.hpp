// For tests: consumers of a fan-out, in this process and in child processes.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "live/memory/buffer_by_hand_test.hpp"
#include "live/memory/buffer_client.hpp"
#include "live/memory/buffer_server.hpp"
#include "live/memory/fan_out.hpp"

namespace daqloom::live {

/// Polls `is_so`. False: it was never true within the time limit.
inline bool comes_true(const std::function<bool()>& is_so) {
    const base::Time deadline = now() + kHung;
    while (!is_so()) {
        if (now() > deadline) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

/// A consumer in this process.
struct ConsumerHere {
    explicit ConsumerHere(const std::string& name)
        : unit(base::value_of(attach_reader(name, now() + kHung))) {}

    AttachedBuffer unit;
    BufferReader reader{unit.buffer()};
};

/// A child process, forked before this process has threads. It runs `main` after `go` and reports
/// one byte at a time. It is killed at the end of the test.
class Child {
  public:
    explicit Child(const std::function<void(const Child&)>& main) {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        process_ = ::fork();
        if (process_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            end_ = OwnedFd(ends[1]);
            ::close(ends[0]);
            if (received() == 'g') {
                main(*this);
            }
            ::_exit(0);
        }
        ::close(ends[1]);
        end_ = OwnedFd(ends[0]);
    }
    Child(Child&& other) noexcept
        : process_(std::exchange(other.process_, 0)), end_(std::move(other.end_)) {}
    ~Child() { kill(); }

    void say(char word) const { EXPECT_EQ(::send(end_.get(), &word, 1, MSG_NOSIGNAL), 1); }
    /// The next byte from the other side; 0: it has ended.
    [[nodiscard]] char received() const {
        char word = 0;
        return ::read(end_.get(), &word, 1) == 1 ? word : '\0';
    }
    void send(int signal) const { ::kill(process_, signal); }
    void kill() {
        if (process_ > 0) {
            ::kill(process_, SIGKILL);
            ::waitpid(process_, nullptr, 0);
            process_ = 0;
        }
    }

  private:
    pid_t process_ = 0;
    OwnedFd end_;
};

class FannedOut : public testing::Test {
  protected:
    void serve(FanOutConfig config) {
        buffer_ = std::make_unique<Buffer>(base::value_of(Buffer::create(
            {.name = "test", .bytes = base::Bytes{1} << 20, .pieces = 1024}, &bell_)));
        writer_.emplace(*buffer_);
        fan_out_.emplace(*buffer_, bell_, config, counters_);
        server_ = base::value_of(BufferServer::serve(
            {{name_, buffer_.get(), BufferSide::reader, &*fan_out_, FanOutCounters::slots}}));
    }
    void TearDown() override {
        server_.reset();
        fan_out_.reset();
    }
    /// Commits pieces of 100 bytes, each filled with its tag.
    void write(std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t tag = from; tag < to; ++tag) {
            const auto room = writer_->reserve(100);
            ASSERT_TRUE(room);
            std::ranges::fill(*room, static_cast<std::byte>(tag));
            writer_->commit(tag, 100);
        }
    }
    static testing::AssertionResult takes(ConsumerHere& consumer, std::uint64_t tag) {
        const auto piece = take(consumer.reader);
        const bool is_right = piece && piece->tag == tag && piece->bytes.size() == 100 &&
                              std::ranges::all_of(piece->bytes, [&](std::byte byte) {
                                  return byte == static_cast<std::byte>(tag);
                              });
        return is_right ? testing::AssertionSuccess()
                        : testing::AssertionFailure()
                              << "piece " << (piece ? piece->tag : ~0U) << " in place of " << tag;
    }
    [[nodiscard]] bool is_acknowledged_to(std::uint64_t count) const {
        return comes_true([&] { return writer_->acknowledged() == count; });
    }
    [[nodiscard]] std::uint64_t returned() const {
        std::uint64_t all = 0;
        for (const Counter& slot : counters_.returned) {
            all += slot;
        }
        return all;
    }

    std::string name_ = "daqloom/test-fan-out-" + std::to_string(::getpid()) + "/0/output";
    Doorbell bell_ = base::value_of(Doorbell::create());
    std::unique_ptr<Buffer> buffer_;
    std::optional<BufferWriter> writer_;
    FanOutCounters counters_;
    std::optional<FanOut> fan_out_;
    std::unique_ptr<BufferServer> server_;
};

}  // namespace daqloom::live
