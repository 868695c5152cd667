#include "sim/trace.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/expected_test.hpp"

namespace daqloom::sim {
namespace {

using base::Time;

class TraceTest : public testing::Test {
  protected:
    void TearDown() override { std::filesystem::remove(path_); }

    [[nodiscard]] std::string written() const {
        std::ifstream stream(path_);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    std::string path_ = testing::TempDir() + "trace_" + std::to_string(::getpid()) + "_" +
                        testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

TEST_F(TraceTest, WritesOneEntryPerLine) {
    auto trace = base::value_of(TraceWriter::open(path_));
    const auto builder = trace.track("builders", "builder 0");
    const auto tor = trace.track("switches", "tor");
    trace.slice(builder, "event 7", Time{1'000'000}, Time{3'500'001}, {{"bytes", 5}, {"rank", -1}});
    trace.instant(builder, "timeout", base::seconds(100));
    trace.counter(tor, "buffered bytes", Time{1}, 1500);
    ASSERT_TRUE(trace.close());
    EXPECT_EQ(written(), R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"builders"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"builder 0"}},
{"ph":"M","pid":2,"tid":2,"name":"process_name","args":{"name":"switches"}},
{"ph":"M","pid":2,"tid":2,"name":"thread_name","args":{"name":"tor"}},
{"ph":"X","pid":1,"tid":1,"name":"event 7","ts":1.000000,"dur":2.500001,"args":{"bytes":5,"rank":-1}},
{"ph":"i","s":"t","pid":1,"tid":1,"name":"timeout","ts":100000000.000000},
{"ph":"C","pid":2,"tid":2,"name":"buffered bytes","ts":0.000001,"args":{"value":1500}}
],"otherData":{"left_out":0}}
)");
}

TEST_F(TraceTest, TheSameNamesGiveTheSameTrack) {
    auto trace = base::value_of(TraceWriter::open(path_));
    const auto first = trace.track("a", "x");
    const auto other_row = trace.track("a", "y");
    const auto other_group = trace.track("b", "x");
    const auto again = trace.track("a", "x");
    EXPECT_EQ(first.group, again.group);
    EXPECT_EQ(first.row, again.row);
    EXPECT_EQ(first.group, other_row.group);
    EXPECT_NE(first.row, other_row.row);
    EXPECT_NE(first.group, other_group.group);
    EXPECT_NE(first.row, other_group.row);
}

TEST_F(TraceTest, EscapesNames) {
    auto trace = base::value_of(TraceWriter::open(path_));
    trace.track("a\"b\\c\n\x01µ", "row");
    ASSERT_TRUE(trace.close());
    EXPECT_NE(written().find(R"({"name":"a\"b\\c\u000a\u0001µ"})"), std::string::npos) << written();
}

TEST_F(TraceTest, CountsEntriesBeyondItsBound) {
    auto trace = base::value_of(TraceWriter::open(path_, 2));
    const auto track = trace.track("a", "x");
    for (int i = 0; i < 5; ++i) {
        trace.instant(track, "now", Time{i});
    }
    EXPECT_EQ(trace.entries(), 2U);
    EXPECT_EQ(trace.left_out(), 3U);
    ASSERT_TRUE(trace.close());
    EXPECT_NE(written().find("\"left_out\":3"), std::string::npos);
    EXPECT_EQ(written().find("\"ts\":0.000002"), std::string::npos);
}

TEST_F(TraceTest, AnEmptyTraceIsValidAndOneThatIsNotClosedLeavesNoFile) {
    base::value_of(TraceWriter::open(path_)).track("a", "x");
    EXPECT_FALSE(std::filesystem::exists(path_));
    auto trace = base::value_of(TraceWriter::open(path_));
    ASSERT_TRUE(trace.close());
    EXPECT_EQ(written(),
              "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n],\"otherData\":{\"left_out\":0}}\n");
}

}  // namespace
}  // namespace daqloom::sim
