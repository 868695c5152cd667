// For tests of processes that run out of file descriptors.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/memory/handover.hpp"

namespace daqloom::live {

/// While this object lives, the process can make no file descriptor.
class NoDescriptors {
  public:
    NoDescriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const OwnedFd lowest(::eventfd(0, EFD_CLOEXEC));
        rlimit none = before_;
        none.rlim_cur = static_cast<rlim_t>(lowest.get());
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    NoDescriptors(const NoDescriptors&) = delete;
    NoDescriptors& operator=(const NoDescriptors&) = delete;

  private:
    rlimit before_{};
};

/// The single thread that a server starts, observed through /proc.
class ServingThread {
  public:
    explicit ServingThread(const std::function<void()>& start) {
        std::thread([] {}).join();  // with the first one, ThreadSanitizer starts one of its own
        const auto others = threads();
        start();
        auto all = threads();
        std::erase_if(all, [&](const auto& thread) { return others.contains(thread); });
        EXPECT_EQ(all.size(), 1U);
        if (!all.empty()) {
            status_ = OwnedFd(::open((*all.begin() + "/status").c_str(), O_RDONLY | O_CLOEXEC));
        }
    }

    /// Whether the thread falls asleep before `until`, and so has done its work.
    bool is_done(base::Time until) const {
        while (of("State") != "S" && now() < until) {
            std::this_thread::yield();
        }
        return of("State") == "S";
    }

    /// Whether the thread sleeps `times` more times before `until`; a spinning thread does not.
    bool sleeps(int times, base::Time until) const {
        const long before = slept();
        while (slept() < before + times && now() < until) {
            std::this_thread::yield();
        }
        return slept() >= before + times;
    }

  private:
    static std::set<std::string> threads() {
        std::set<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
            found.insert(entry.path());
        }
        return found;
    }
    long slept() const { return std::stol(of("voluntary_ctxt_switches")); }
    /// The first word of a line of the thread's status in /proc.
    std::string of(const std::string& key) const {
        std::string text(8192, '\0');
        EXPECT_GT(::pread(status_.get(), text.data(), text.size(), 0), 0);
        std::istringstream value(text.substr(text.find("\n" + key + ":") + key.size() + 2));
        std::string word;
        value >> word;
        return word;
    }

    OwnedFd status_;
};

/// A client that makes its descriptor immediately, and connects later, when none may be left.
class LateVisitor {
  public:
    LateVisitor() : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {}

    Handover connect(const std::string& name) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        name.copy(address.sun_path + 1, name.size());  // the leading zero makes it abstract
        const auto length =
            static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
        EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
        return Handover(std::move(socket_), ::getpid());
    }

  private:
    OwnedFd socket_;
};

}  // namespace daqloom::live
