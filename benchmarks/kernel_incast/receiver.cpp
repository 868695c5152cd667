// A builder unit: in each round asks every sender for one fragment, all requests at once, and
// waits until all fragments are complete before the next round starts.
//
//   receiver ROUNDS SECONDS REPLY_BYTES ADDRESS...
//
// Ends after ROUNDS rounds, or with the first round that is complete after SECONDS. Prints one JSON
// object with the start and the latency of each round.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <vector>

#include "wire.hpp"

namespace {

using namespace kernel_incast;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Plan {
    long rounds;
    std::chrono::seconds most;
    std::uint64_t reply_bytes;
};

struct Round {
    Clock::time_point start;
    Clock::time_point end;
};

int connect_to(const char* address) {
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connection < 0) give_up("socket");
    const int on = 1;
    if (setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
        give_up("TCP_NODELAY");
    }
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(kPort);
    if (inet_pton(AF_INET, address, &there.sin_addr) != 1) give_up(address);
    if (connect(connection, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
        give_up("connect");
    }
    return connection;
}

// Asks all senders and returns when every one has answered in full.
void run_round(int poller, const std::vector<int>& connections, std::uint64_t reply_bytes) {
    static std::vector<char> sink(1 << 18);
    Request request;
    request.reply_bytes = reply_bytes;
    std::vector<std::uint64_t> missing(connections.size(), reply_bytes);
    for (const int connection : connections) {
        if (send(connection, &request, sizeof request, MSG_NOSIGNAL) !=
            static_cast<ssize_t>(sizeof request)) {
            give_up("send");
        }
    }
    std::size_t incomplete = connections.size();
    while (incomplete > 0) {
        epoll_event events[64];
        const int count = epoll_wait(poller, events, 64, -1);
        if (count < 0) give_up("epoll_wait");
        for (int i = 0; i < count; ++i) {
            const std::size_t index = events[i].data.u64;
            const ssize_t got = recv(connections[index], sink.data(), sink.size(), MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN) continue;
            if (got <= 0 || static_cast<std::uint64_t>(got) > missing[index]) give_up("recv");
            missing[index] -= static_cast<std::uint64_t>(got);
            if (missing[index] == 0) --incomplete;
        }
    }
}

std::vector<Round> run(const Plan& plan, int poller, const std::vector<int>& connections) {
    std::vector<Round> rounds;
    rounds.reserve(static_cast<std::size_t>(plan.rounds));
    const auto begin = Clock::now();
    while (static_cast<long>(rounds.size()) < plan.rounds && Clock::now() - begin < plan.most) {
        const auto start = Clock::now();
        run_round(poller, connections, plan.reply_bytes);
        rounds.push_back({start, Clock::now()});
    }
    return rounds;
}

void print(const std::vector<Round>& rounds) {
    const auto begin = rounds.front().start;
    std::printf("{\"start_s\": [");
    for (std::size_t i = 0; i < rounds.size(); ++i) {
        std::printf("%s%.6f", i ? ", " : "", Seconds(rounds[i].start - begin).count());
    }
    std::printf("], \"latency_s\": [");
    for (std::size_t i = 0; i < rounds.size(); ++i) {
        std::printf("%s%.6f", i ? ", " : "", Seconds(rounds[i].end - rounds[i].start).count());
    }
    std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        std::fprintf(stderr, "usage: receiver ROUNDS SECONDS REPLY_BYTES ADDRESS...\n");
        return 2;
    }
    const Plan plan{.rounds = number(argv[1], 1, 1'000'000),
                    .most = std::chrono::seconds(number(argv[2], 1, 600)),
                    .reply_bytes = static_cast<std::uint64_t>(number(argv[3], 1, 16'000'000))};
    ask_for_realtime();
    const int poller = epoll_create1(0);
    if (poller < 0) give_up("epoll_create1");
    std::vector<int> connections;
    for (int i = 4; i < argc; ++i) {
        connections.push_back(connect_to(argv[i]));
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = connections.size() - 1;
        if (epoll_ctl(poller, EPOLL_CTL_ADD, connections.back(), &event) != 0) give_up("epoll_ctl");
    }
    print(run(plan, poller, connections));
    return 0;
}
