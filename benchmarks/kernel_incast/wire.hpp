// What the two programs of this benchmark share: the request on the wire and a way to give up.
#pragma once

#include <sched.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kernel_incast {

constexpr std::uint16_t kPort = 5001;

// A request asks for one fragment; its size on the wire equals `kRequestBytes`.
constexpr std::size_t kRequestBytes = 64;

struct Request {
    std::uint64_t reply_bytes = 0;
    char padding[kRequestBytes - sizeof(std::uint64_t)] = {};
};
static_assert(sizeof(Request) == kRequestBytes);

// Ends the program with one sentence: these programs run as children of real.py, which shows it.
[[noreturn]] inline void give_up(const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
    std::exit(1);
}

// Other programs on the machine shall not decide when a packet is answered; where the user may not
// ask for this, the run is noisier and otherwise the same.
inline void ask_for_realtime() {
    sched_param priority{};
    priority.sched_priority = 1;
    (void)sched_setscheduler(0, SCHED_FIFO, &priority);
}

inline long number(const char* text, long least, long most) {
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
        std::fprintf(stderr, "'%s' is not a whole number from %ld to %ld\n", text, least, most);
        std::exit(2);
    }
    return value;
}

}  // namespace kernel_incast
