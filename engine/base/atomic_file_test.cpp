#include "base/atomic_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/failure_test.hpp"

namespace daqloom::base {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
  protected:
    void SetUp() override {
        fs::create_directories(folder_);
        ASSERT_TRUE(fs::is_empty(folder_));
    }
    void TearDown() override { fs::remove_all(folder_); }

    [[nodiscard]] std::string file(const std::string& name) const { return folder_ / name; }
    [[nodiscard]] std::ptrdiff_t files() const {
        return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
    }
    static std::string content(const std::string& path) {
        std::ifstream stream(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

  private:
    fs::path folder_ = fs::path(testing::TempDir()) /
                       ("atomic_file_" + std::to_string(::getpid()) + "_" +
                        testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(AtomicFileTest, AppearsWithItsContentOnCommitOrReplacesAnOlderFile) {
    auto out = AtomicFile::create(file("a"));
    ASSERT_TRUE(out);
    out->write("one ");
    out->write("two");
    EXPECT_FALSE(fs::exists(file("a")));
    ASSERT_TRUE(out->commit());
    EXPECT_EQ(content(file("a")), "one two");
    out = AtomicFile::create(file("a"));
    out->write("new");
    ASSERT_TRUE(out->commit());
    EXPECT_EQ(content(file("a")), "new");
    EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, LeavesNothingAndReplacesNothingWithoutACommit) {
    std::ofstream(file("a")) << "old";
    {
        auto out = AtomicFile::create(file("a"));
        ASSERT_TRUE(out);
        out->write("new");
    }
    EXPECT_EQ(content(file("a")), "old");
    EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AWriterOfTheSameNameAndALinkAtAnOldOneAreLeftAlone) {
    std::ofstream(file("victim")) << "untouched";
    fs::create_symlink(file("victim"), file("a." + std::to_string(::getpid()) + ".part"));
    auto first = AtomicFile::create(file("a"));
    auto second = AtomicFile::create(file("a"));
    ASSERT_TRUE(first && second);
    first->write("first");
    second->write("second");
    ASSERT_TRUE(first->commit());
    EXPECT_EQ(content(file("a")), "first");
    ASSERT_TRUE(second->commit());
    EXPECT_EQ(content(file("a")), "second");
    EXPECT_EQ(content(file("victim")), "untouched");
}

TEST_F(AtomicFileTest, HasThePermissionsThatTheUserGivesToFiles) {
    const mode_t before = ::umask(0027);
    auto out = AtomicFile::create(file("a"));
    ::umask(before);
    ASSERT_TRUE(out && out->commit());
    EXPECT_EQ(static_cast<unsigned>(fs::status(file("a")).permissions()), 0640U);
}

TEST_F(AtomicFileTest, MovesWithItsFile) {
    auto first = AtomicFile::create(file("a"));
    auto second = AtomicFile::create(file("b"));
    ASSERT_TRUE(first && second);
    *second = std::move(*first);
    AtomicFile moved(std::move(*second));
    moved.write("a");
    ASSERT_TRUE(moved.commit());
    EXPECT_EQ(content(file("a")), "a");
    EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AFullDiskIsReportedAndLeavesNothing) {
    // A limit on the file size replaces a full disk: write(2) fails in the same way.
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, SIG_IGN);
    auto out = AtomicFile::create(file("a"));
    ASSERT_TRUE(out);
    const rlimit small{100'000, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 300; ++i) {
        out->write(std::string(1000, 'x'));
    }
    const auto result = out->commit();
    setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find(file("a") + ": File too large"), std::string::npos)
        << result.error().message;
    EXPECT_EQ(files(), 0);
}

TEST_F(AtomicFileTest, FoldersAndDevicesAreNeverReplacedNorMade) {
    EXPECT_TRUE(fails_with("No such file or directory", AtomicFile::create(file("missing/a"))));
    EXPECT_FALSE(AtomicFile::create(file("")));
    EXPECT_FALSE(AtomicFile::create("/dev/null"));
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace daqloom::base
