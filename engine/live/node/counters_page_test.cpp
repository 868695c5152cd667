#include "live/node/counters_page.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <string>

#include "live/memory/shared_memory.hpp"

namespace daqloom::live {
namespace {

std::map<std::string, std::uint64_t> all(const NodeCounters& counted) {
    std::map<std::string, std::uint64_t> found;
    see_counters(counted, [&](const std::string& name, std::uint64_t value) {
        EXPECT_TRUE(found.emplace(name, value).second) << name;
    });
    return found;
}

std::string own_run(const char* what) { return std::string(what) + std::to_string(::getpid()); }

TEST(CountersPage, IsReadButNotWrittenByOthersWhileItCounts) {
    auto page = CountersPage::create(own_run("counts"), UnitIndex(3));
    ASSERT_TRUE(page);
    const auto other = CountersPage::attach(::getpid(), own_run("counts"), UnitIndex(3));
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_EQ(all(other->counters()).at("meps_built"), 0U);
    page->counters().meps_built.add(7);
    page->counters().building.record(base::Time{5});
    page->counters().building.record(base::Time{5});
    const auto counted = all(other->counters());
    EXPECT_EQ(counted.at("meps_built"), 7U);
    EXPECT_EQ(counted.at("building_bucket.5"), 2U);  // small values have buckets of their own
    EXPECT_EQ(counted.count("in_barrier_bucket.0"), 0U);
    EXPECT_EQ(::fcntl(other->fd(), F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, other->fd(), 0),
              MAP_FAILED);
}

TEST(CountersPage, OutlivesTheUnitThatCounted) {
    const std::string run = own_run("killed");
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t unit = ::fork();
    ASSERT_GE(unit, 0);
    if (unit == 0) {
        // The process is in its own network namespace, if the system permits this.
        [[maybe_unused]] const int apart = ::unshare(CLONE_NEWNET);
        auto page = CountersPage::create(run, UnitIndex(0));
        page->counters().meps_built.add(41);
        const char byte = 'y';
        if (::write(ready[1], &byte, 1) == 1) {
            ::pause();
        }
        ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'y');
    const auto other = CountersPage::attach(unit, run, UnitIndex(0));
    EXPECT_FALSE(CountersPage::attach(unit, run, UnitIndex(1)));
    ::kill(unit, SIGKILL);
    ::waitpid(unit, nullptr, 0);
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_EQ(all(other->counters()).at("meps_built"), 41U);
    EXPECT_FALSE(CountersPage::attach(unit, run, UnitIndex(0)));
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST(CountersPage, OfANodeThatWasShutIsNotTakenForThatOfTheNext) {
    auto before = CountersPage::create(own_run("twice"), UnitIndex(0));
    ASSERT_TRUE(before);
    before->counters().meps_built.add(5);
    before->withdraw();
    EXPECT_FALSE(CountersPage::attach(::getpid(), own_run("twice"), UnitIndex(0)));
    const auto page = CountersPage::create(own_run("twice"), UnitIndex(0));
    const auto other = CountersPage::attach(::getpid(), own_run("twice"), UnitIndex(0));
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_EQ(all(other->counters()).at("meps_built"), 0U);
    EXPECT_EQ(all(before->counters()).at("meps_built"), 5U);
}

TEST(CountersPage, InAFolderItStaysWhenItsProcessHasEndedAndTheNextNodeReplacesIt) {
    const std::string folder =
        std::filesystem::temp_directory_path() / ("pages-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    EXPECT_FALSE(CountersPage::open(folder, UnitIndex(2)));
    const pid_t unit = ::fork();
    ASSERT_GE(unit, 0);
    if (unit == 0) {
        auto page = CountersPage::create("file", UnitIndex(2), folder);
        page->counters().meps_built.add(41);
        ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(unit, nullptr, 0);
    const auto before = CountersPage::open(folder, UnitIndex(2));
    ASSERT_TRUE(before) << before.error().message;
    EXPECT_EQ(all(before->counters()).at("meps_built"), 41U);
    const auto next = CountersPage::create("file", UnitIndex(2), folder);
    ASSERT_TRUE(next) << next.error().message;
    const auto page = CountersPage::open(folder, UnitIndex(2));
    EXPECT_EQ(all(page->counters()).at("meps_built"), 0U);
    EXPECT_EQ(all(before->counters()).at("meps_built"), 41U);
    EXPECT_GT(all(page->counters()).at("made_ps"), all(before->counters()).at("made_ps"));
    std::filesystem::resize_file(folder + "/2.counters", 8);
    EXPECT_FALSE(CountersPage::open(folder, UnitIndex(2)));
    std::filesystem::remove_all(folder);
}

TEST(CountersPage, IsRefusedWhereSomethingElseHasItsName) {
    const auto memory = SharedMemory::create("daqloom/" + own_run("strange") + "/0/counters",
                                             base::Bytes{sizeof(NodeCounters) + 8});
    ASSERT_TRUE(memory);
    const auto other = CountersPage::attach(::getpid(), own_run("strange"), UnitIndex(0));
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().message.find("counts other things"), std::string::npos);
}

}  // namespace
}  // namespace daqloom::live
