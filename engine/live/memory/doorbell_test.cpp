#include "live/memory/doorbell.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <thread>

#include "base/random.hpp"
#include "live/memory/buffer_by_hand_test.hpp"

namespace daqloom::live {
namespace {

Doorbell bell() { return base::value_of(Doorbell::create()); }

Doorbell attached_again(const Doorbell& bell) {
    return base::value_of(
        Doorbell::attach(OwnedFd(::dup(bell.page_fd())), OwnedFd(::dup(bell.event_fd()))));
}

bool has_event(const Doorbell& bell) {
    pollfd watched{bell.event_fd(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
}

enum class Way { futex, poll };

void sleep(const Doorbell& bell, Way way, base::Time until, const std::function<bool()>& quiet) {
    if (way == Way::futex) {
        bell.sleep(until, quiet);
    } else {
        bell.sleep_with(-1, until, quiet);
    }
}

/// Two threads take turns: each waits for the other one's count and then increments it.
struct Rally {
    static constexpr std::uint64_t rounds = 20'000;
    std::atomic<std::uint64_t> count{0};

    /// Plays one side. False: it slept until the deadline, because a wake-up was lost.
    bool play(std::uint64_t parity, const Doorbell& mine, const Doorbell& others, Way way) {
        base::RandomStream random(parity, "rally");
        const base::Time deadline = now() + kHung;
        for (std::uint64_t turn = parity; turn < rounds; turn += 2) {
            while (count.load(std::memory_order_acquire) != turn) {
                sleep(mine, way, deadline,
                      [&] { return count.load(std::memory_order_acquire) != turn; });
                if (now() >= deadline) {
                    return false;
                }
            }
            // Random delay: the ring comes before, during or after the other thread's sleep.
            for (auto spins = static_cast<int>(random.uniform() * 2000); spins > 0; --spins) {
                std::atomic_signal_fence(std::memory_order_seq_cst);
            }
            count.store(turn + 1, std::memory_order_release);
            others.ring();
        }
        return true;
    }
};

class DoorbellBothWays : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, DoorbellBothWays, testing::Values(Way::futex, Way::poll),
                         [](const auto& way) {
                             return way.param == Way::futex ? "Futex" : "Poll";
                         });

TEST_P(DoorbellBothWays, LosesNoWakeUpBetweenTwoThreads) {
    const Doorbell first = bell();
    const Doorbell second = bell();
    Rally rally;
    std::jthread other([&] { EXPECT_TRUE(rally.play(1, second, first, GetParam())); });
    EXPECT_TRUE(rally.play(0, first, second, GetParam()));
}

TEST_P(DoorbellBothWays, LosesNoWakeUpBetweenTwoProcesses) {
    const Doorbell first = bell();
    const Doorbell second = bell();
    auto memory = SharedMemory::create("rally", sizeof(Rally));
    ASSERT_TRUE(memory);
    auto& rally = *new (memory->bytes().data()) Rally;
    const pid_t child = ::fork();
    if (child == 0) {
        const Doorbell mine = attached_again(second);
        const Doorbell others = attached_again(first);
        ::_exit(rally.play(1, mine, others, GetParam()) ? 0 : 1);
    }
    EXPECT_TRUE(rally.play(0, first, second, GetParam()));
    EXPECT_TRUE(has_succeeded(child));
}

TEST_P(DoorbellBothWays, DoesNotSleepWhenThereIsSomethingToDoOrARingCameAfterItLooked) {
    const Doorbell mine = bell();
    sleep(mine, GetParam(), base::Time::never(), [] { return false; });
    sleep(mine, GetParam(), base::Time::never(), [&] {
        mine.ring();
        return true;
    });
}

TEST_P(DoorbellBothWays, SleepsNoLongerThanUntil) {
    const Doorbell mine = bell();
    const base::Time until = now() + base::milliseconds(2);
    sleep(mine, GetParam(), until, [] { return true; });
    EXPECT_GE(now(), until);
    sleep(mine, GetParam(), now() - base::seconds(1), [] { return true; });
    sleep(mine, GetParam(), base::Time::zero() - base::seconds(1), [] { return true; });
}

TEST(Doorbell, MakesNoEventWhileItsOwnerIsAwake) {
    const Doorbell mine = bell();
    mine.ring();
    EXPECT_FALSE(has_event(mine));
    mine.sleep_with(-1, base::Time::never(), [&] {
        mine.ring();
        EXPECT_TRUE(has_event(mine));
        return true;
    });
    EXPECT_FALSE(has_event(mine));  // taken: the next sleep is not cut short by it
    mine.ring();
    EXPECT_FALSE(has_event(mine));
}

TEST(Doorbell, ReportsTheCauseOfAWakeUp) {
    const Doorbell mine = bell();
    const OwnedFd quiet(::eventfd(0, EFD_CLOEXEC));
    const OwnedFd ready(::eventfd(1, EFD_CLOEXEC));
    const base::Time past = now() - base::seconds(1);  // as late as somebody may be woken
    EXPECT_FALSE(mine.sleep_with(quiet.get(), past, [] { return true; }));
    for (const base::Time until : {past, base::Time::never()}) {
        EXPECT_TRUE(mine.sleep_with(ready.get(), until, [] { return true; }));
    }
    mine.ring();
    EXPECT_TRUE(mine.sleep_with(quiet.get(), past, [] { return true; }));
}

TEST(Doorbell, IsNotAttachedToATooSmallOrForeignPage) {
    const Doorbell mine = bell();
    auto small = SharedMemory::create("small", 4);
    ASSERT_TRUE(small);
    EXPECT_FALSE(Doorbell::attach(OwnedFd(::dup(small->fd())), OwnedFd(::dup(mine.event_fd()))));
    EXPECT_FALSE(Doorbell::attach(OwnedFd(::memfd_create("foreign", MFD_CLOEXEC)),
                                  OwnedFd(::dup(mine.event_fd()))));
}

}  // namespace
}  // namespace daqloom::live
