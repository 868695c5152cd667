// Programs that measure a rate: processes that work for as long as they live, and a parent that
// looks at what they have done before and after a window of time, and ends them.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace daqloom::bench {

/// Options as --name=value; a name that is not known ends the program.
class Options {
  public:
    Options(int argc, char** argv, std::map<std::string, double> defaults)
        : values_(std::move(defaults)) {
        for (int i = 1; i < argc; ++i) {
            const std::string option(argv[i]);
            const auto equals = option.find('=');
            const auto found = option.starts_with("--") && equals != std::string::npos
                                   ? values_.find(option.substr(2, equals - 2))
                                   : values_.end();
            if (found == values_.end()) {
                std::fprintf(stderr, "%s: '%s' is no option\n", argv[0], argv[i]);
                std::exit(2);
            }
            found->second = std::strtod(option.c_str() + equals + 1, nullptr);
        }
    }
    [[nodiscard]] double number(const std::string& name) const { return values_.at(name); }
    [[nodiscard]] std::size_t whole(const std::string& name) const {
        return static_cast<std::size_t>(values_.at(name));
    }

  private:
    std::map<std::string, double> values_;
};

[[noreturn]] inline void give_up(const char* what) {
    std::perror(what);
    std::exit(1);
}

/// Shared by all processes.
struct Shared {
    std::atomic<std::uint32_t> ready;
    std::atomic<bool> go;
    struct alignas(64) Count {
        std::atomic<std::uint64_t> done;
    };
    Count counts[256];

    /// Called by each process once it is set up.
    void wait_for_go() {
        ready.fetch_add(1);
        while (!go.load()) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
    }
    void add(std::size_t process, std::uint64_t done) {
        counts[process].done.fetch_add(done, std::memory_order_relaxed);
    }
};

struct Rate {
    double per_s = 0;
    double per_cpu_s = 0;  ///< of all processes' time on a processor
};

/// On processors, all of its threads.
inline double cpu_seconds(pid_t process) {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
        return 0;
    }
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// `work(process, shared)` in each of `processes`, up to 256: what they do in the window, together.
inline Rate rate(std::size_t processes, double warmup_s, double window_s,
                 const std::function<void(std::size_t, Shared&)>& work) {
    using Clock = std::chrono::steady_clock;
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || processes > 256) {
        give_up("shared memory");
    }
    auto* shared = new (memory) Shared{};
    const auto sum = [&] {
        std::uint64_t done = 0;
        for (std::size_t i = 0; i < processes; ++i) {
            done += shared->counts[i].done.load(std::memory_order_relaxed);
        }
        return done;
    };
    std::vector<pid_t> children;
    const auto cpu = [&] {
        double used = 0;
        for (const pid_t child : children) {
            used += cpu_seconds(child);
        }
        return used;
    };
    for (std::size_t i = 0; i < processes; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            // Own session, as of a unit: Linux shares out busy processors by session first.
            ::setsid();
            work(i, *shared);
            std::_Exit(1);  // it works for as long as it lives
        }
        children.push_back(child);
    }
    const auto has_ended = [&] { return ::waitpid(-1, nullptr, WNOHANG) > 0; };
    bool failed = false;
    while (shared->ready.load() < processes && !failed) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        failed = has_ended();
    }
    shared->go.store(true);
    std::this_thread::sleep_for(std::chrono::duration<double>(warmup_s));
    const std::uint64_t before = sum();
    const double cpu_before = cpu();
    const auto begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(window_s));
    const std::uint64_t after = sum();
    const double used = cpu() - cpu_before;
    const std::chrono::duration<double> passed = Clock::now() - begin;
    failed |= has_ended();
    for (const pid_t child : children) {
        ::kill(child, SIGKILL);
    }
    while (::wait(nullptr) > 0) {
    }
    if (failed) {
        std::fprintf(stderr, "a process ended by itself\n");
        std::exit(1);
    }
    const auto done = static_cast<double>(after - before);
    return {.per_s = done / passed.count(), .per_cpu_s = done / std::max(used, 1e-9)};
}

}  // namespace daqloom::bench
