#include "protocol/units/request_book.hpp"

#include <gtest/gtest.h>

namespace daqloom::protocol {
namespace {

using Answer = RequestBook::Answer;

TEST(RequestBook, AnswersNowForPresentMfpsAndLaterForOthers) {
    RequestBook book(2);
    EXPECT_FALSE(book.on_taken());
    EXPECT_EQ(book.request(0, {.builder = BuilderIndex(3), .offset = 64}), Answer::now);
    EXPECT_EQ(book.request(2, {.builder = BuilderIndex(1), .offset = 128}), Answer::later);
    EXPECT_EQ(book.waiting(), 1);
    EXPECT_FALSE(book.on_taken()) << "nobody has asked for number 1";
    const auto request = book.on_taken();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->builder, BuilderIndex(1));
    EXPECT_EQ(request->offset, 128);
    EXPECT_EQ(book.waiting(), 0);
}

TEST(RequestBook, RefusesRepeatedFreedOrTooEarlyRequests) {
    RequestBook book(3);
    book.on_taken();
    EXPECT_EQ(book.request(0, {}), Answer::now);
    EXPECT_EQ(book.request(0, {}), Answer::refused);
    EXPECT_EQ(book.on_written(0), 1);
    EXPECT_EQ(book.request(0, {}), Answer::refused) << "its memory may hold another by now";
    EXPECT_EQ(book.request(3, {}), Answer::later) << "1, 2 and 3 are the next three";
    EXPECT_EQ(book.request(3, {}), Answer::refused);
    EXPECT_EQ(book.request(4, {}), Answer::refused);
    EXPECT_EQ(book.request(~std::uint64_t{0}, {}), Answer::refused);
}

TEST(RequestBook, FreesInOrderMfpsWrittenInAnyOrder) {
    RequestBook book(4);
    for (std::uint64_t mfp = 0; mfp < 4; ++mfp) {
        book.on_taken();
        ASSERT_EQ(book.request(mfp, {}), Answer::now);
    }
    EXPECT_EQ(book.on_written(2), 0);
    EXPECT_EQ(book.on_written(1), 0);
    EXPECT_EQ(book.on_written(0), 3);
    EXPECT_EQ(book.on_written(3), 1);
}

TEST(RequestBook, FreesMfpsRequestedInAnyOrderAfterTheirDelivery) {
    RequestBook book(8);
    ASSERT_EQ(book.request(2, {}), Answer::later);
    ASSERT_EQ(book.request(0, {}), Answer::later);
    EXPECT_EQ(book.on_written(0), 0) << "written as nothing: it has not come";
    book.on_taken();
    EXPECT_EQ(book.on_written(2), 1);
    EXPECT_EQ(book.request(1, {}), Answer::later);
    book.on_taken();
    book.on_taken();
    EXPECT_EQ(book.on_written(1), 2);
    EXPECT_EQ(book.request(3, {.builder = BuilderIndex(2), .offset = 9}), Answer::later);
    EXPECT_EQ(book.on_taken()->offset, 9);
}

TEST(RequestBook, GivesBackAllThatIsTakenWhateverIsWrittenLater) {
    RequestBook book(4);
    for (std::uint64_t mfp = 0; mfp < 40; ++mfp) {
        book.on_taken();
    }
    ASSERT_EQ(book.request(38, {}), Answer::now);
    EXPECT_EQ(book.on_written(38), 0);
    EXPECT_EQ(book.give_back_all(), 40);
    EXPECT_EQ(book.held(), 0);
    EXPECT_EQ(book.on_written(37), 0);
    book.on_taken();
    ASSERT_EQ(book.request(40, {}), Answer::now);
    EXPECT_EQ(book.on_written(40), 1);
}

TEST(RequestBook, ListsWaitingRequests) {
    RequestBook book(4);
    book.on_taken();
    ASSERT_EQ(book.request(4, {.builder = BuilderIndex(7)}), Answer::later);
    ASSERT_EQ(book.request(2, {.builder = BuilderIndex(5)}), Answer::later);
    ASSERT_EQ(book.request(0, {.builder = BuilderIndex(6)}), Answer::now);
    std::vector<std::uint64_t> asked;
    book.each_waiting([&](std::uint64_t mfp, const RequestBook::Request& request) {
        EXPECT_EQ(request.builder, BuilderIndex(mfp == 2 ? 5 : 7));
        asked.push_back(mfp);
    });
    EXPECT_EQ(asked, (std::vector<std::uint64_t>{2, 4}));
}

}  // namespace
}  // namespace daqloom::protocol
