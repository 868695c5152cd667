#include "live/transport/mpi/remote_test.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/expected_test.hpp"
#include "live/memory/clock.hpp"
#include "live/transport/conformance_test.hpp"
#include "live/transport/make.hpp"
#include "live/transport/mpi/world.hpp"

namespace daqloom::live {
namespace {

constexpr const char* kSocket = "DAQLOOM_TEST_WORKERS";

enum class What : std::uint32_t {
    make,
    address,
    connect,
    send,
    write,
    poll,
    wait,
    close,
    disturb,
    allocations,
    end,
    message,
    written,
    done,
    unreachable,  ///< event
    resume,
    reply,
    failure,
};

/// A call, event or reply; its content follows.
struct Packet {
    What what{};
    std::uint32_t unit = 0;
    std::uint64_t number = 0;  ///< a time, context, immediate or result
    std::uint64_t offset = 0;
    std::uint64_t at = 0;
    std::uint64_t length = 0;
    std::array<std::uint64_t, 16> counters{};  ///< in replies
};

/// Names, numbers and memory of a transport; descriptors of arena, mirror and doorbell follow.
struct Making {
    char name[32] = {};
    std::uint32_t self = 0;
    std::uint32_t units = 0;
    Token token = {};
    std::uint32_t epoch = 0;
    Waiting waiting{};
    std::uint64_t has_arena = 0;
};

struct Incoming {
    Packet packet;
    std::array<std::byte, 20'000> room;
    std::span<const std::byte> content;
};

void send_packet(int fd, const Packet& packet, std::span<const std::byte> content = {}) {
    iovec parts[] = {{const_cast<Packet*>(&packet), sizeof packet},
                     {const_cast<std::byte*>(content.data()), content.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    if (::sendmsg(fd, &message, MSG_NOSIGNAL) < 0) {
        throw std::runtime_error("a process of the test has ended");
    }
}

void receive_packet(int fd, Incoming& received) {
    iovec parts[] = {{&received.packet, sizeof(Packet)},
                     {received.room.data(), received.room.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t length = ::recvmsg(fd, &message, 0);
    if (length < static_cast<ssize_t>(sizeof(Packet))) {
        throw std::runtime_error("a process of the test has ended");
    }
    received.content =
        std::span(received.room).first(static_cast<std::size_t>(length) - sizeof(Packet));
}

// ---- worker

class Worker final : public TransportEvents {
  public:
    explicit Worker(Handover suite) : suite_(std::move(suite)) {}

    /// Carries out calls until the suite sends `last`.
    void serve(What last) {
        Incoming received;
        while (true) {
            receive_packet(suite_.fd(), received);
            if (received.packet.what == last) {
                return;
            }
            carry_out(received.packet, received.content);
        }
    }

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override {
        report({.what = What::message, .unit = from.value()}, bytes);
    }
    void on_written(UnitIndex from, std::uint32_t immediate) override {
        report({.what = What::written, .unit = from.value(), .number = immediate});
    }
    void on_write_done(std::uint64_t context) override {
        report({.what = What::done, .number = context});
    }
    void on_unreachable(UnitIndex unit) override {
        report({.what = What::unreachable, .unit = unit.value()});
    }

  private:
    void report(const Packet& event, std::span<const std::byte> bytes = {}) {
        send_packet(suite_.fd(), event, bytes);
        serve(What::resume);
    }

    void reply(std::uint64_t number, std::span<const std::byte> content = {}) {
        Packet packet{.what = What::reply, .number = number};
        std::size_t i = 0;
        if (transport_) {
            TransportCounters::each([&](const char*, auto counter, const char*) {
                packet.counters.at(i++) = transport_->counters().*counter;
            });
        }
        send_packet(suite_.fd(), packet, content);
    }

    void make() {
        const Parcel parcel = base::value_of(suite_.receive(base::Time::never()));
        Making making;
        std::memcpy(&making, parcel.bytes.data(), sizeof making);
        const auto fd = [&](std::size_t i) { return OwnedFd(::dup(parcel.fds.at(i).get())); };
        const auto attach = [&](std::size_t i) {
            return base::value_of(
                SharedMemory::attach(fd(i), SharedMemory::Access::read_write, 1 << 30));
        };
        doorbell_.emplace(base::value_of(Doorbell::attach(fd(0), fd(1))));
        mirror_ = attach(2);
        arena_ = making.has_arena != 0 ? attach(3) : SharedMemory();
        auto made = make_transport(making.name, {.self = UnitIndex(making.self),
                                                 .units = making.units,
                                                 .token = making.token,
                                                 .epoch = making.epoch,
                                                 .arena = making.has_arena != 0 ? &arena_ : nullptr,
                                                 .sources = {mirror_.bytes()},
                                                 .doorbell = &*doorbell_,
                                                 .waiting = making.waiting});
        if (!made) {
            send_packet(suite_.fd(), {.what = What::failure},
                        std::as_bytes(std::span(made.error().message)));
            return;
        }
        transport_ = std::move(*made);
        reply(0);
    }

    void carry_out(const Packet& call, std::span<const std::byte> content) {
        switch (call.what) {
            case What::make:
                return make();
            case What::address:
                return reply(0, transport_->address());
            case What::connect:
                return connect(call, content);
            case What::send:
                return reply(transport_->send(UnitIndex(call.unit), content) ? 1 : 0);
            case What::write:
                return reply(
                    transport_->write({.to = UnitIndex(call.unit),
                                       .bytes = mirror_.bytes().subspan(call.at, call.length),
                                       .offset = static_cast<base::Bytes>(call.offset),
                                       .immediate = static_cast<std::uint32_t>(call.number >> 32),
                                       .context = call.number & 0xffffffff})
                        ? 1
                        : 0);
            case What::poll:
                return reply(transport_->poll(*this) ? 1 : 0);
            case What::wait:
                transport_->wait({static_cast<std::int64_t>(call.number)});
                return reply(0);
            case What::close:
                transport_.reset();
                return reply(0);
            case What::disturb:
                return disturb(call, content);
            case What::allocations:
                return reply(allocations_here());
            default:
                throw std::runtime_error("not a call");
        }
    }

    void connect(const Packet& call, std::span<const std::byte> content) {
        std::vector<Transport::Peer> peers;
        while (!content.empty()) {
            std::uint32_t numbers[2];
            std::memcpy(numbers, content.data(), sizeof numbers);
            const auto address = content.subspan(sizeof numbers, numbers[1]);
            peers.push_back({UnitIndex(numbers[0]), {address.begin(), address.end()}});
            content = content.subspan(sizeof numbers + numbers[1]);
        }
        const auto missing =
            transport_->connect(peers, {static_cast<std::int64_t>(call.number)}).value();
        reply(0, std::as_bytes(std::span(missing)));
    }

    void disturb(const Packet& call, std::span<const std::byte> content) {
        static std::vector<std::vector<std::byte>> sent;  // until they are received
        const auto& bytes = sent.emplace_back(content.begin(), content.end());
        auto* const world = base::value_of(mpi::World::join());
        std::uint64_t request = 0;
        reply(static_cast<std::uint64_t>(
            world->library().send(mpi::records, bytes.data(), static_cast<int>(bytes.size()),
                                  static_cast<int>(call.number), 0, 0, &request)));
    }

    Handover suite_;
    std::optional<Doorbell> doorbell_;
    SharedMemory mirror_;
    SharedMemory arena_;
    std::unique_ptr<Transport> transport_;
};

/// The program of a worker; nothing in other runs of this program.
TEST(MpiWorker, ServesTheSuiteThatHasStartedIt) {
    if (const char* const socket = std::getenv(kSocket)) {
        static_cast<void>(base::value_of(mpi::World::join()));  // as all ranks do
        Worker(base::value_of(Handover::connect(socket))).serve(What::end);
    }
}

}  // namespace

// ---- suite

struct Workers::Worker {
    explicit Worker(Handover made) : end(std::move(made)) {}

    void call(const Packet& packet, std::span<const std::byte> content, Incoming& received,
              TransportEvents* events = nullptr) {
        send_packet(end.fd(), packet, content);
        await(received, events);
    }

    void await(Incoming& received, TransportEvents* events) {
        for (receive_packet(end.fd(), received);
             received.packet.what != What::reply && received.packet.what != What::failure;
             receive_packet(end.fd(), received)) {
            const UnitIndex unit(received.packet.unit);
            if (events == nullptr) {
                throw std::runtime_error("an event outside of a poll");
            }
            switch (received.packet.what) {
                case What::message:
                    events->on_message(unit, received.content);
                    break;
                case What::written:
                    events->on_written(unit, static_cast<std::uint32_t>(received.packet.number));
                    break;
                case What::done:
                    events->on_write_done(received.packet.number);
                    break;
                default:
                    events->on_unreachable(unit);
            }
            send_packet(end.fd(), {.what = What::resume});
        }
    }

    Handover end;
    bool is_free = true;
};

/// The suite's side of a transport in a worker.
class Workers::Remote final : public Transport {
  public:
    Remote(Worker& worker, SharedMemory mirror, std::span<const std::byte> source)
        : worker_(worker), mirror_(std::move(mirror)), source_(source) {
        Incoming received;
        worker_.call({.what = What::address}, {}, received);
        address_.assign(received.content.begin(), received.content.end());
    }
    ~Remote() override {
        call({.what = What::close});
        worker_.is_free = true;
    }

    /// Callable from any thread, as another unit's may connect at the same time.
    [[nodiscard]] std::vector<std::byte> address() const override { return address_; }
    [[nodiscard]] base::expected<std::vector<UnitIndex>> connect(std::span<const Peer> peers,
                                                                 base::Time until) override {
        std::vector<std::byte> content;
        for (const Peer& peer : peers) {
            const std::uint32_t numbers[] = {peer.unit.value(),
                                             static_cast<std::uint32_t>(peer.address.size())};
            const auto head = std::as_bytes(std::span(numbers));
            content.insert(content.end(), head.begin(), head.end());
            content.insert(content.end(), peer.address.begin(), peer.address.end());
        }
        Incoming received;
        worker_.call({.what = What::connect, .number = static_cast<std::uint64_t>(until.ps)},
                     content, received);
        std::vector<UnitIndex> missing(received.content.size() / sizeof(UnitIndex));
        std::ranges::copy(received.content, std::as_writable_bytes(std::span(missing)).begin());
        return missing;
    }
    [[nodiscard]] bool send(UnitIndex to, std::span<const std::byte> bytes) override {
        return bytes.size() <= most_message + 1 &&
               call({.what = What::send, .unit = to.value()}, bytes) != 0;
    }
    [[nodiscard]] bool write(const Write& write) override {
        const auto at = static_cast<std::size_t>(write.bytes.data() - source_.data());
        const std::size_t length = write.bytes.size();
        std::ranges::copy(write.bytes, mirror_.bytes().data() + (length > 0 ? at : 0));
        return call({.what = What::write,
                     .unit = write.to.value(),
                     .number = std::uint64_t{write.immediate} << 32 | write.context,
                     .offset = static_cast<std::uint64_t>(write.offset),
                     .at = length > 0 ? at : 0,
                     .length = length}) != 0;
    }
    bool poll(TransportEvents& events) override {
        return call({.what = What::poll}, {}, &events) != 0;
    }
    void wait(base::Time until) override {
        call({.what = What::wait, .number = static_cast<std::uint64_t>(until.ps)});
    }
    [[nodiscard]] const TransportCounters& counters() const override { return counters_; }

  private:
    std::uint64_t call(const Packet& packet, std::span<const std::byte> content = {},
                       TransportEvents* events = nullptr) {
        Incoming received;
        worker_.call(packet, content, received, events);
        std::size_t i = 0;
        TransportCounters::each([&](const char*, auto counter, const char*) {
            (counters_.*counter).set(received.packet.counters.at(i++));
        });
        return received.packet.number;
    }

    Worker& worker_;
    SharedMemory mirror_;  ///< of the source
    std::span<const std::byte> source_;
    std::vector<std::byte> address_;
    TransportCounters counters_;
};

Workers::Workers(std::vector<std::string> launcher, std::size_t count) {
    const std::string name = "daqloom-test-workers-" + launcher[0] + std::to_string(::getpid());
    auto listener = base::value_of(HandoverListener::listen(name));
    launcher.emplace_back("/proc/self/exe");
    launcher.back().resize(4096);
    const auto length = ::readlink("/proc/self/exe", launcher.back().data(), 4096);
    launcher.back().resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    launcher.emplace_back("--gtest_filter=MpiWorker.*");
    std::vector<char*> arguments;
    for (auto& argument : launcher) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    launcher_ = ::fork();
    if (launcher_ == 0) {
        ::setenv(kSocket, name.c_str(), 1);
        const int nothing = ::open("/dev/null", O_RDWR);
        ::dup2(nothing, STDIN_FILENO);
        ::dup2(nothing, STDOUT_FILENO);
        ::execvp(arguments[0], arguments.data());
        ::_exit(127);
    }
    for (std::size_t i = 0; i < count; ++i) {
        workers_.push_back(
            std::make_unique<Worker>(base::value_of(listener.accept(test_deadline()))));
    }
}

Workers::~Workers() {
    if (launcher_ > 0) {
        end();
    }
}

int Workers::end() {
    for (const auto& worker : workers_) {
        send_packet(worker->end.fd(), {.what = What::end});
    }
    const auto left_ms = (test_deadline() - now()).ps / base::milliseconds(1).ps;
    pollfd ended{.fd = static_cast<int>(::syscall(SYS_pidfd_open, launcher_, 0)),
                 .events = POLLIN,
                 .revents = 0};
    if (::poll(&ended, 1, static_cast<int>(left_ms)) <= 0) {
        ::kill(launcher_, SIGTERM);
    }
    ::close(ended.fd);
    int status = -1;
    ::waitpid(launcher_, &status, 0);
    launcher_ = 0;
    return status;
}

Workers::Worker& Workers::take() {
    for (const auto& worker : workers_) {
        if (std::exchange(worker->is_free, false)) {
            return *worker;
        }
    }
    throw std::runtime_error("too few workers");
}

base::expected<std::unique_ptr<Transport>> Workers::make(const std::string& name,
                                                         const TransportConfig& config) {
    const auto source = config.sources.empty() ? std::span<const std::byte>() : config.sources[0];
    auto mirror = base::value_of(SharedMemory::create(
        "test-mirror", static_cast<base::Bytes>(std::max<std::size_t>(source.size(), 1))));
    Making making{.self = config.self.value(),
                  .units = config.units,
                  .token = config.token,
                  .epoch = config.epoch,
                  .waiting = config.waiting,
                  .has_arena = config.arena != nullptr ? 1U : 0U};
    name.copy(making.name, sizeof making.name - 1);
    std::vector<int> fds{config.doorbell->page_fd(), config.doorbell->event_fd(), mirror.fd()};
    if (config.arena != nullptr) {
        fds.push_back(config.arena->fd());
    }
    Worker& worker = take();
    send_packet(worker.end.fd(), {.what = What::make});
    DAQLOOM_CHECK(worker.end.send(std::as_bytes(std::span(&making, 1)), fds));
    Incoming received;
    worker.await(received, nullptr);
    if (received.packet.what == What::failure) {
        worker.is_free = true;
        return base::failure(
            {reinterpret_cast<const char*>(received.content.data()), received.content.size()});
    }
    return std::make_unique<Remote>(worker, std::move(mirror), source);
}

void Workers::disturb(std::span<const std::byte> address, std::span<const std::byte> bytes) {
    std::uint64_t rank = 0;
    std::memcpy(&rank, address.data() + address.size() - sizeof rank, sizeof rank);
    Worker& worker = take();
    Incoming received;
    worker.call({.what = What::disturb, .number = rank}, bytes, received);
    worker.is_free = true;
}

std::uint64_t Workers::allocations() const {
    std::uint64_t all = 0;
    for (const auto& worker : workers_) {
        if (!worker->is_free) {
            Incoming received;
            worker->call({.what = What::allocations}, {}, received);
            all += received.packet.number;
        }
    }
    return all;
}

}  // namespace daqloom::live
