#include "live/memory/handover.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstring>
#include <string_view>

#include "base/expected_test.hpp"
#include "live/memory/hung_test.hpp"
#include "live/memory/no_descriptors_fixture_test.hpp"

namespace daqloom::live {
namespace {

std::string name_of(const std::string& what) {
    return "daqloom/test-handover/" + std::to_string(::getpid()) + "/" + what;
}

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
}

struct Pair {
    Handover ours;
    Handover theirs;
};

Pair connected(const std::string& what) {
    auto listener = base::value_of(HandoverListener::listen(name_of(what)));
    auto theirs = base::value_of(Handover::connect(name_of(what)));
    return {base::value_of(listener.accept(now() + kHung)), std::move(theirs)};
}

/// Sends one packet without the checks of `Handover::send`.
void send_raw(int socket, std::size_t bytes, std::size_t fds) {
    std::vector<std::byte> data(bytes);
    iovec part{.iov_base = data.data(), .iov_len = data.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * 64)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fds > 0) {
        const std::vector<int> numbers(fds, 0);
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fds);
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fds);
        std::memcpy(CMSG_DATA(header), numbers.data(), sizeof(int) * fds);
    }
    ASSERT_EQ(::sendmsg(socket, &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
}

TEST(Handover, BringsBytesAndDescriptorsOfEachMessage) {
    const Pair pair = connected("brings");
    EXPECT_EQ(pair.ours.peer(), ::getpid());
    const OwnedFd event(::eventfd(5, EFD_CLOEXEC));
    const int fds[] = {event.get(), 0};
    ASSERT_TRUE(pair.theirs.send(bytes_of("hello"), fds));
    auto parcel = pair.ours.receive(now() + kHung);
    ASSERT_TRUE(parcel) << parcel.error().message;
    EXPECT_EQ(
        std::string_view(reinterpret_cast<const char*>(parcel->bytes.data()), parcel->bytes.size()),
        "hello");
    ASSERT_EQ(parcel->fds.size(), 2U);
    std::uint64_t value = 0;
    ASSERT_EQ(::read(parcel->fds[0].get(), &value, sizeof value), 8);
    EXPECT_EQ(value, 5U);
    EXPECT_NE(::fcntl(parcel->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_TRUE(pair.ours.send(bytes_of("one")));
    ASSERT_TRUE(pair.ours.send(bytes_of("three")));
    EXPECT_EQ(pair.theirs.receive(now() + kHung)->bytes.size(), 3U);
    EXPECT_EQ(pair.theirs.receive(now() + kHung)->bytes.size(), 5U);
}

TEST(Handover, SendsNoMoreThanTheOtherSideTakes) {
    const Pair pair = connected("limits");
    const std::vector<std::byte> most(Handover::most_bytes);
    const std::vector<std::byte> more(Handover::most_bytes + 1);
    const std::vector<int> most_fds(Handover::most_fds, 0);
    const std::vector<int> more_fds(Handover::most_fds + 1, 0);
    EXPECT_FALSE(pair.ours.send({}));
    EXPECT_FALSE(pair.ours.send(more));
    EXPECT_FALSE(pair.ours.send(most, more_fds));
    ASSERT_TRUE(pair.ours.send(most, most_fds));
    const auto parcel = pair.theirs.receive(now() + kHung);
    ASSERT_TRUE(parcel);
    EXPECT_EQ(parcel->bytes.size(), Handover::most_bytes);
    EXPECT_EQ(parcel->fds.size(), Handover::most_fds);
}

TEST(Handover, RefusesAMessageThatIsTooLongAndTakesTheNext) {
    const Pair pair = connected("oversized");
    send_raw(pair.theirs.fd(), Handover::most_bytes + 1, 0);
    EXPECT_FALSE(pair.ours.receive(now() + kHung));
    ASSERT_TRUE(pair.theirs.send(bytes_of("small")));
    EXPECT_TRUE(pair.ours.receive(now() + kHung));
}

TEST(Handover, RefusesTooManyDescriptorsAndKeepsNoneOfThem) {
    const Pair pair = connected("descriptors");
    const auto before = open_descriptors();
    send_raw(pair.theirs.fd(), 1, 40);
    EXPECT_FALSE(pair.ours.receive(now() + kHung));
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Handover, WaitsNoLongerThanUntil) {
    const Pair pair = connected("until");
    EXPECT_FALSE(pair.ours.receive(now()));
    EXPECT_FALSE(pair.ours.is_closed());
}

TEST(Handover, SeesAtOnceThatTheOtherProcessWasKilled) {
    const std::string name = name_of("killed");
    auto listener = HandoverListener::listen(name);
    ASSERT_TRUE(listener);
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        auto handover = Handover::connect(name);
        [[maybe_unused]] const auto sent = handover->send(bytes_of("here"));
        ::pause();
        ::_exit(0);
    }
    auto ours = listener->accept(now() + kHung);
    ASSERT_TRUE(ours);
    EXPECT_EQ(ours->peer(), child);
    ASSERT_TRUE(ours->receive(now() + kHung));
    EXPECT_FALSE(ours->is_closed());
    ::kill(child, SIGKILL);
    const base::Time deadline = now() + kHung;
    EXPECT_FALSE(ours->receive(deadline));
    EXPECT_LT(now(), deadline);
    EXPECT_TRUE(ours->is_closed());
    EXPECT_FALSE(ours->send(bytes_of("anybody?")));
    ::waitpid(child, nullptr, 0);
}

TEST(Handover, CannotReachAnAbsentPeer) {
    EXPECT_FALSE(Handover::connect(name_of("nobody")));
    EXPECT_FALSE(Handover::connect(""));
    EXPECT_FALSE(Handover::connect(std::string(101, 'a')));
}

TEST(HandoverListener, HasItsNameAloneAndGivesItUpInTheEnd) {
    {
        const auto first = HandoverListener::listen(name_of("taken"));
        ASSERT_TRUE(first);
        EXPECT_FALSE(HandoverListener::listen(name_of("taken")));
    }
    EXPECT_TRUE(HandoverListener::listen(name_of("taken")));
    EXPECT_FALSE(HandoverListener::listen(""));
    EXPECT_FALSE(HandoverListener::listen(std::string(101, 'a')));
    EXPECT_TRUE(HandoverListener::listen(name_of(std::string(50, 'a'))));
}

TEST(HandoverListener, PausesWhenThereIsNoDescriptorForAVisitor) {
    auto listener = HandoverListener::listen(name_of("full"));
    ASSERT_TRUE(listener);
    EXPECT_EQ(listener->wake(), base::Time::never());
    LateVisitor late;
    const Handover visitor = [&] {
        const NoDescriptors full;
        Handover connected = late.connect(name_of("full"));
        const base::Time before = now();
        EXPECT_FALSE(listener->accept(before));
        EXPECT_TRUE(listener->fd_to_poll() == -1 || now() > before + base::milliseconds(10));
        return connected;
    }();
    pollfd watched{};
    while (watched.revents == 0) {
        watched = {listener->fd_to_poll(), POLLIN, 0};
        ::poll(&watched, 1, poll_timeout(listener->wake()));
    }
    EXPECT_TRUE(listener->accept(now() + kHung));
}

TEST(HandoverListener, WaitsNoLongerThanUntil) {
    auto listener = HandoverListener::listen(name_of("alone"));
    ASSERT_TRUE(listener);
    EXPECT_FALSE(listener->accept(now()));
    EXPECT_EQ(listener->refused(), 0U);
}

}  // namespace
}  // namespace daqloom::live
