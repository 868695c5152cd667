#include "live/memory/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/expected_test.hpp"

namespace daqloom::live {
namespace {

using enum SharedMemory::Access;

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

SharedMemory memory_of(base::Bytes bytes) {
    return base::value_of(SharedMemory::create("test", bytes));
}

base::expected<SharedMemory> attached(int fd, SharedMemory::Access access, base::Bytes most) {
    return SharedMemory::attach(OwnedFd(::dup(fd)), access, most);
}

TEST(SharedMemory, IsZeroedAndTheSameInEveryMapping) {
    const SharedMemory made = memory_of(5000);
    ASSERT_EQ(made.bytes().size(), 5000U);
    EXPECT_TRUE(std::ranges::all_of(made.bytes(), [](std::byte b) { return b == std::byte{0}; }));

    const SharedMemory other = base::value_of(attached(made.fd(), read_write, 5000));
    EXPECT_NE(other.bytes().data(), made.bytes().data());
    made.bytes()[4999] = std::byte{7};
    EXPECT_EQ(other.bytes()[4999], std::byte{7});
    other.bytes()[0] = std::byte{8};
    EXPECT_EQ(made.bytes()[0], std::byte{8});
}

TEST(SharedMemory, OutlivesItsCreator) {
    SharedMemory other;
    EXPECT_FALSE(other);
    {
        const SharedMemory made = memory_of(10);
        made.bytes()[3] = std::byte{9};
        other = base::value_of(attached(made.fd(), read, 10));
    }
    EXPECT_TRUE(other);
    EXPECT_EQ(other.bytes()[3], std::byte{9});
}

TEST(SharedMemory, HasNoSizeThatMakesNoSense) {
    EXPECT_FALSE(SharedMemory::create("test", 0));
    EXPECT_FALSE(SharedMemory::create("test", -1));
    EXPECT_FALSE(SharedMemory::create("test", base::Bytes{1} << 62));
}

TEST(SharedMemory, CannotBeShrunkOrGrown) {
    const SharedMemory made = memory_of(8192);
    EXPECT_NE(::ftruncate(made.fd(), 1), 0);
    EXPECT_NE(::ftruncate(made.fd(), 100'000), 0);
}

TEST(SharedMemory, IsNotTakenFromAFileThatCouldChangeItsSize) {
    OwnedFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(unsealed.get(), 100), 0);
    EXPECT_FALSE(attached(unsealed.get(), read, 1000));
    EXPECT_FALSE(SharedMemory::attach(OwnedFd(::open("/dev/zero", O_RDWR)), read, 1000));
    EXPECT_FALSE(SharedMemory::attach(OwnedFd(), read, 1000));
}

TEST(SharedMemory, IsNotTakenIfItIsLargerThanExpectedOrEmpty) {
    const SharedMemory made = memory_of(1001);
    EXPECT_FALSE(attached(made.fd(), read, 1000));
    EXPECT_TRUE(attached(made.fd(), read, 1001));

    OwnedFd empty(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::fcntl(empty.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    EXPECT_FALSE(SharedMemory::attach(std::move(empty), read, 1000));
}

TEST(SharedMemoryDeathTest, ThatIsReadOnlyCannotBeWritten) {
    const SharedMemory made = memory_of(10);
    const SharedMemory other = base::value_of(attached(made.fd(), read, 10));
    EXPECT_DEATH(other.bytes()[0] = std::byte{1}, "");
}

TEST(OwnedFd, IsClosedWithItsLastOwner) {
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
