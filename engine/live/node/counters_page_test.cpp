#include "live/node/counters_page.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "live/memory/clock.hpp"
#include "live/memory/no_descriptors_fixture_test.hpp"

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

base::Time soon() { return now() + base::seconds(10); }

TEST(CountersPage, IsReadByOthersWhileItCounts) {
    auto page = CountersPage::create();
    ASSERT_TRUE(page);
    const auto server = CountersServer::serve(own_run("counts"), UnitIndex(3), *page);
    ASSERT_TRUE(server);
    const auto seen = CountersPage::attach(own_run("counts"), UnitIndex(3), soon());
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(all(seen->counters()).at("meps_built"), 0U);
    page->counters().meps_built.add(7);
    page->counters().builds.record(base::Time{5});
    page->counters().builds.record(base::Time{5});
    const auto counted = all(seen->counters());
    EXPECT_EQ(counted.at("meps_built"), 7U);
    EXPECT_EQ(counted.at("building_bucket.5"), 2U);  // small values have buckets of their own
    EXPECT_EQ(counted.count("in_barrier_bucket.0"), 0U);
}

TEST(CountersPage, OutlivesTheUnitThatCounted) {
    const std::string run = own_run("killed");
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t unit = ::fork();
    ASSERT_GE(unit, 0);
    if (unit == 0) {
        auto page = CountersPage::create();
        const auto server = CountersServer::serve(run, UnitIndex(0), *page);
        page->counters().meps_built.add(41);
        const char byte = server ? 'y' : 'n';
        if (::write(ready[1], &byte, 1) == 1) {
            ::pause();
        }
        ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'y');
    const auto seen = CountersPage::attach(run, UnitIndex(0), soon());
    ::kill(unit, SIGKILL);
    ::waitpid(unit, nullptr, 0);
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(all(seen->counters()).at("meps_built"), 41U);
    EXPECT_FALSE(CountersPage::attach(run, UnitIndex(0), soon()));
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST(CountersPage, CannotBeWrittenByThoseWhoAttach) {
    const auto page = CountersPage::create();
    ASSERT_TRUE(page);
    const auto server = CountersServer::serve(own_run("reads"), UnitIndex(0), *page);
    ASSERT_TRUE(server);
    const auto seen = CountersPage::attach(own_run("reads"), UnitIndex(0), soon());
    ASSERT_TRUE(seen);
    EXPECT_EQ(::fcntl(seen->fd(), F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, seen->fd(), 0), MAP_FAILED);
}

TEST(CountersPage, IsServedWhenThereAreDescriptorsAgainAndMeanwhileItsThreadSleeps) {
    const std::string run = own_run("full");
    const auto page = CountersPage::create();
    ASSERT_TRUE(page);
    std::unique_ptr<CountersServer> server;
    const ServingThread thread([&] { server = *CountersServer::serve(run, UnitIndex(0), *page); });
    ASSERT_TRUE(CountersPage::attach(run, UnitIndex(0), soon()));  // it runs
    ASSERT_TRUE(thread.is_done(soon()));
    LateVisitor late;
    const Handover visitor = [&] {
        const NoDescriptors full;
        Handover connected = late.connect("daqloom/" + run + "/0/counters");
        EXPECT_TRUE(thread.sleeps(5, soon()));
        return connected;
    }();
    const auto parcel = visitor.receive(soon());
    ASSERT_TRUE(parcel) << parcel.error().message;
    EXPECT_EQ(parcel->fds.size(), 1U);
}

TEST(CountersPage, IsRefusedWhereSomethingElseIsHandedOver) {
    auto listener = HandoverListener::listen("daqloom/" + own_run("strange") + "/0/counters");
    ASSERT_TRUE(listener);
    auto memory = SharedMemory::create("strange", base::Bytes{sizeof(NodeCounters) + 8});
    ASSERT_TRUE(memory);
    std::thread stranger([&] {
        const auto visitor = listener->accept(soon());
        const std::byte hello{1};
        const int fd = memory->fd();
        EXPECT_TRUE(visitor && visitor->send(std::span(&hello, 1), std::span(&fd, 1)));
    });
    const auto seen = CountersPage::attach(own_run("strange"), UnitIndex(0), soon());
    stranger.join();
    ASSERT_FALSE(seen);
    EXPECT_NE(seen.error().message.find("counts other things"), std::string::npos);
}

}  // namespace
}  // namespace daqloom::live
