#include "live/memory/buffer_server.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <string_view>

#include "base/failure_test.hpp"
#include "live/memory/buffer_by_hand_test.hpp"
#include "live/memory/no_descriptors_fixture_test.hpp"

namespace daqloom::live {
namespace {

class ServedBuffer : public testing::Test {
  protected:
    void SetUp() override {
        name_ = "daqloom/test-server-" + std::to_string(::getpid()) + "/0/stream-0";
        buffer_ = std::make_unique<Buffer>(buffer_of(4096, 8));
    }
    void serve(std::vector<BufferSide> sides) {
        std::vector<BufferOffer> offers;
        for (const BufferSide side : sides) {
            offers.push_back({.name = name_, .buffer = buffer_.get(), .side = side});
        }
        server_ = base::value_of(BufferServer::serve(std::move(offers)));
    }
    [[nodiscard]] auto attach(BufferSide side = BufferSide::writer) const {
        return attach_buffer(name_, side, now() + kHung);
    }
    /// Answer to a raw message, such as attach_* never sends; empty: the server hung up.
    std::string answer_to(std::string_view message) {
        const auto unit = Handover::connect(name_);
        EXPECT_TRUE(unit);
        EXPECT_TRUE(unit->send(std::as_bytes(std::span(message.data(), message.size()))));
        const auto answer = unit->receive(now() + kHung);
        return answer ? std::string(reinterpret_cast<const char*>(answer->bytes.data()),
                                    answer->bytes.size())
                      : "";
    }

    std::string name_;
    std::unique_ptr<Buffer> buffer_;
    std::unique_ptr<BufferServer> server_;
};

TEST_F(ServedBuffer, BringsAUsersDataToTheUnit) {
    serve({BufferSide::writer});
    auto user = attach();
    ASSERT_TRUE(user) << user.error().message;
    BufferWriter writer(user->buffer());
    auto room = writer.reserve(3);
    ASSERT_TRUE(room);
    (*room)[2] = std::byte{42};
    writer.commit(17, 3);

    BufferReader reader(*buffer_);
    const auto piece = reader.next();
    ASSERT_TRUE(piece);
    EXPECT_EQ(piece->tag, 17U);
    EXPECT_EQ(piece->bytes[2], std::byte{42});
    EXPECT_FALSE(user->is_abandoned());
    server_.reset();
    EXPECT_TRUE(user->is_abandoned());
}

TEST_F(ServedBuffer, HasOneProcessOnASide) {
    serve({BufferSide::writer, BufferSide::reader});
    auto first = attach();
    ASSERT_TRUE(first);
    EXPECT_TRUE(base::fails_with(
        "process " + std::to_string(::getpid()) + " has this side of the buffer", attach()));
    EXPECT_TRUE(attach(BufferSide::reader));

    first = tl::unexpected(base::Error{});
    EXPECT_TRUE(attach());
}

TEST_F(ServedBuffer, IsFreeAtOnceWhenItsUserIsKilled) {
    struct User {
        pid_t process;
        OwnedFd end;
    };
    // Fork before the server's thread exists, because that thread might hold a lock at the fork.
    std::vector<User> users;
    for (int life = 0; life < 10; ++life) {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        const pid_t process = ::fork();
        if (process == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            char go = 0;
            if (::read(ends[1], &go, 1) == 1) {
                auto user = attach();
                const char did = user ? 'y' : 'n';
                [[maybe_unused]] const auto written = ::write(ends[1], &did, 1);
                ::pause();
            }
            ::_exit(0);
        }
        ::close(ends[1]);
        users.push_back({process, OwnedFd(ends[0])});
    }
    serve({BufferSide::writer});
    for (const auto& [process, end] : users) {
        char did = 'g';
        ASSERT_EQ(::write(end.get(), &did, 1), 1);
        ASSERT_EQ(::read(end.get(), &did, 1), 1);
        EXPECT_EQ(did, 'y');
        ::kill(process, SIGKILL);
        ::waitpid(process, nullptr, 0);
        // A refused process does not retry, so the next one attaches at its first attempt.
        EXPECT_TRUE(attach().has_value());
    }
}

TEST_F(ServedBuffer, RefusesASideThatIsNotOffered) {
    serve({BufferSide::writer});
    EXPECT_TRUE(base::fails_with("not offered", attach(BufferSide::reader)));
}

TEST_F(ServedBuffer, RefusesGarbageAndGoesOn) {
    serve({BufferSide::writer});
    EXPECT_EQ(answer_to("DLBF\2").front(), '\0');
    EXPECT_NE(answer_to(std::string_view("DLBF\2\0", 6)).find("version"), std::string::npos);
    EXPECT_NE(answer_to(std::string(4000, 'x')).find("version"), std::string::npos);
    EXPECT_TRUE(attach());
}

TEST_F(ServedBuffer, IsNotHeldUpBySilentVisitors) {
    serve({BufferSide::writer});
    std::vector<Handover> silent;
    for (std::size_t i = 0; i < 2 * BufferServer::most_visitors; ++i) {
        auto visitor = Handover::connect(name_);
        ASSERT_TRUE(visitor);
        silent.push_back(std::move(*visitor));
    }
    const base::Time limit = now() + kHung;
    EXPECT_TRUE(attach_buffer(name_, BufferSide::writer, limit));
    for (const Handover& visitor : silent) {
        EXPECT_FALSE(visitor.receive(limit));
        EXPECT_TRUE(visitor.is_closed());
    }
}

TEST_F(ServedBuffer, IsServedWhenThereAreDescriptorsAgainAndMeanwhileItsThreadSleeps) {
    const ServingThread thread([&] { serve({BufferSide::writer}); });
    answer_to("hello");  // it runs
    ASSERT_TRUE(thread.is_done(now() + kHung));
    LateVisitor late;
    const Handover visitor = [&] {
        const NoDescriptors full;
        Handover connected = late.connect(name_);
        EXPECT_TRUE(thread.sleeps(5, now() + kHung));
        return connected;
    }();
    ASSERT_TRUE(visitor.send(BufferHello::encode(BufferSide::writer)));
    const auto parcel = visitor.receive(now() + kHung);
    ASSERT_TRUE(parcel) << parcel.error().message;
    EXPECT_FALSE(parcel->fds.empty());
}

TEST_F(ServedBuffer, IsAttachedOnlyWhileItIsServed) {
    EXPECT_FALSE(attach_buffer(name_, BufferSide::writer, now()));
    serve({BufferSide::writer});
    const auto second =
        BufferServer::serve({{.name = name_, .buffer = buffer_.get(), .side = BufferSide::writer}});
    EXPECT_FALSE(second);  // the name is taken
}

TEST(BufferName, ContainsRunUnitAndBuffer) {
    EXPECT_EQ(buffer_name("a1", 3, "stream-0"), "daqloom/a1/3/stream-0");
}

}  // namespace
}  // namespace daqloom::live
