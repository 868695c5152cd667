#include "live/memory/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace daqloom::live {
namespace {

using enum SharedMemory::Access;

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(SharedMemory, IsZeroedAndSeenByWhoeverMapsIt) {
    auto made = SharedMemory::create("test", 5000);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_EQ(made->bytes().size(), 5000U);
    EXPECT_TRUE(std::ranges::all_of(made->bytes(), [](std::byte b) { return b == std::byte{0}; }));

    auto other = SharedMemory::attach(OwnedFd(::dup(made->fd())), read_write, 5000);
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_NE(other->bytes().data(), made->bytes().data());
    made->bytes()[4999] = std::byte{7};
    EXPECT_EQ(other->bytes()[4999], std::byte{7});
    other->bytes()[0] = std::byte{8};
    EXPECT_EQ(made->bytes()[0], std::byte{8});
}

TEST(SharedMemory, OutlivesWhoMadeIt) {
    SharedMemory other;
    EXPECT_FALSE(other);
    {
        auto made = SharedMemory::create("test", 10);
        ASSERT_TRUE(made);
        made->bytes()[3] = std::byte{9};
        auto attached = SharedMemory::attach(OwnedFd(::dup(made->fd())), read, 10);
        ASSERT_TRUE(attached);
        other = std::move(*attached);
    }
    EXPECT_TRUE(other);
    EXPECT_EQ(other.bytes()[3], std::byte{9});
}

TEST(SharedMemory, HasNoSizeThatMakesNoSense) {
    EXPECT_FALSE(SharedMemory::create("test", 0));
    EXPECT_FALSE(SharedMemory::create("test", -1));
    EXPECT_FALSE(SharedMemory::create("test", base::Bytes{1} << 62));
}

TEST(SharedMemory, CannotBeShrunkOrGrownByAnybody) {
    auto made = SharedMemory::create("test", 8192);
    ASSERT_TRUE(made);
    EXPECT_NE(::ftruncate(made->fd(), 1), 0);
    EXPECT_NE(::ftruncate(made->fd(), 100'000), 0);
}

TEST(SharedMemory, IsNotTakenFromAFileThatCouldChangeItsSize) {
    OwnedFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(unsealed.get(), 100), 0);
    EXPECT_FALSE(SharedMemory::attach(OwnedFd(::dup(unsealed.get())), read, 1000));
    EXPECT_FALSE(SharedMemory::attach(OwnedFd(::open("/dev/zero", O_RDWR)), read, 1000));
    EXPECT_FALSE(SharedMemory::attach(OwnedFd(), read, 1000));
}

TEST(SharedMemory, IsNotTakenIfItIsLargerThanExpectedOrEmpty) {
    auto made = SharedMemory::create("test", 1001);
    ASSERT_TRUE(made);
    EXPECT_FALSE(SharedMemory::attach(OwnedFd(::dup(made->fd())), read, 1000));
    EXPECT_TRUE(SharedMemory::attach(OwnedFd(::dup(made->fd())), read, 1001));

    OwnedFd empty(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::fcntl(empty.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    EXPECT_FALSE(SharedMemory::attach(std::move(empty), read, 1000));
}

TEST(SharedMemoryDeathTest, ThatIsReadOnlyCannotBeWritten) {
    auto made = SharedMemory::create("test", 10);
    ASSERT_TRUE(made);
    auto attached = SharedMemory::attach(OwnedFd(::dup(made->fd())), read, 10);
    ASSERT_TRUE(attached);
    EXPECT_DEATH(attached->bytes()[0] = std::byte{1}, "");
}

TEST(OwnedFd, IsClosedOnceNobodyOwnsIt) {
    int fd = -1;
    {
        OwnedFd owner(::dup(0));
        fd = owner.get();
        OwnedFd next(std::move(owner));
        EXPECT_FALSE(owner);  // NOLINT(bugprone-use-after-move)
        OwnedFd last;
        last = std::move(next);
        EXPECT_EQ(last.get(), fd);
        EXPECT_TRUE(is_open(fd));
    }
    EXPECT_FALSE(is_open(fd));
}

}  // namespace
}  // namespace daqloom::live
