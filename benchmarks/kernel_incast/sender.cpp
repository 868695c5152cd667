// A readout unit: answers each request on one persistent connection with the bytes asked for, and
// at the end prints one JSON object: when it was asked, when it had handed over its answer, and
// what the kernel says about the connection (TCP_INFO).
//
//   sender CONGESTION      congestion control of the connection, as in TCP_CONGESTION
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <vector>

#include "wire.hpp"

namespace {

using namespace kernel_incast;

constexpr std::uint64_t kMostReplyBytes = 16'000'000;
constexpr std::size_t kMostAnswersKept = 10'000;

// Seconds of the monotonic clock, which all processes of the machine share.
struct Answer {
    double asked;
    double answered;
};

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void set(int socket, int level, int option, int value, const char* name) {
    if (setsockopt(socket, level, option, &value, sizeof value) != 0) give_up(name);
}

int listen_with(const char* congestion) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0) give_up("socket");
    set(listener, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    set(listener, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
    // Set on the listener, so that the connection is born with it.
    if (setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, congestion,
                   static_cast<socklen_t>(std::strlen(congestion))) != 0) {
        give_up("TCP_CONGESTION");
    }
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_port = htons(kPort);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0) give_up("bind");
    if (listen(listener, 1) != 0) give_up("listen");
    return listener;
}

bool receive_whole(int connection, Request& request) {
    const ssize_t got = recv(connection, &request, sizeof request, MSG_WAITALL);
    if (got < 0) give_up("recv");
    return got == static_cast<ssize_t>(sizeof request);
}

void answer(int connection, const std::vector<char>& payload, std::uint64_t bytes) {
    while (bytes > 0) {
        const std::size_t piece = bytes < payload.size() ? bytes : payload.size();
        const ssize_t sent = send(connection, payload.data(), piece, MSG_NOSIGNAL);
        if (sent < 0) give_up("send");
        bytes -= static_cast<std::uint64_t>(sent);
    }
}

void print_answers(const std::vector<Answer>& answers) {
    std::printf("\"asked_s\": [");
    for (std::size_t i = 0; i < answers.size(); ++i) {
        std::printf("%s%.6f", i ? ", " : "", answers[i].asked);
    }
    std::printf("], \"answered_s\": [");
    for (std::size_t i = 0; i < answers.size(); ++i) {
        std::printf("%s%.6f", i ? ", " : "", answers[i].answered);
    }
    std::printf("]");
}

void print_info(int connection) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) give_up("TCP_INFO");
    std::printf(
        "\"info\": {\"cwnd\": %u, \"ssthresh\": %u, \"mss\": %u, \"rto_us\": %u, \"rtt_us\": %u, "
        "\"rttvar_us\": %u, \"min_rtt_us\": %u, \"segments_out\": %u, \"retransmitted\": %u, "
        "\"reordering\": %u, \"rwnd_limited_us\": %llu, \"busy_us\": %llu}",
        info.tcpi_snd_cwnd, info.tcpi_snd_ssthresh, info.tcpi_snd_mss, info.tcpi_rto, info.tcpi_rtt,
        info.tcpi_rttvar, info.tcpi_min_rtt, info.tcpi_segs_out, info.tcpi_total_retrans,
        info.tcpi_reordering, info.tcpi_rwnd_limited, info.tcpi_busy_time);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: sender CONGESTION\n");
        return 2;
    }
    ask_for_realtime();
    const int listener = listen_with(argv[1]);
    std::printf("listening\n");
    std::fflush(stdout);
    const int connection = accept(listener, nullptr, nullptr);
    if (connection < 0) give_up("accept");

    const std::vector<char> payload(kMostReplyBytes / 16, 'd');
    std::vector<Answer> answers;
    answers.reserve(kMostAnswersKept);
    Request request;
    while (receive_whole(connection, request)) {
        if (request.reply_bytes == 0 || request.reply_bytes > kMostReplyBytes) {
            std::fprintf(stderr, "a request for %llu bytes is out of range\n",
                         static_cast<unsigned long long>(request.reply_bytes));
            return 1;
        }
        const double asked = now();
        answer(connection, payload, request.reply_bytes);
        if (answers.size() < kMostAnswersKept) answers.push_back({asked, now()});
    }
    std::printf("{");
    print_answers(answers);
    std::printf(", ");
    print_info(connection);
    std::printf("}\n");
    return 0;
}
