#include "live/node/counters_page.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "live/memory/buffer_client.hpp"
#include "live/memory/clock.hpp"
#include "live/memory/counters.hpp"

namespace daqloom::live {

namespace {

/// Hash (FNV-1a) of the names of all counters and histograms in their order.
std::uint64_t layout() {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&](const char* name, auto, const char*) {
        for (; *name != '\0'; ++name) {
            hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3;
        }
        hash *= 0x100000001b3;
    };
    NodeCounters::each(add);
    NodeCounters::each_histogram(add);
    return hash ^ sizeof(NodeCounters);
}

struct Page {
    std::uint64_t layout;
    NodeCounters counters;
};
static_assert(std::is_trivially_destructible_v<Page>);

std::string name_of(const std::string& run, UnitIndex unit) {
    return buffer_name(run, unit.value(), "counters");
}

}  // namespace

CountersPage::CountersPage(SharedMemory memory)
    : memory_(std::move(memory)),
      counters_(&std::launder(reinterpret_cast<Page*>(memory_.bytes().data()))->counters) {}

base::expected<CountersPage> CountersPage::create() {
    DAQLOOM_TRY(memory, SharedMemory::create("daqloom counters", base::Bytes{sizeof(Page)}));
    new (memory.bytes().data()) Page{.layout = layout(), .counters = {}};
    return CountersPage(std::move(memory));
}

base::expected<CountersPage> CountersPage::attach(const std::string& run, UnitIndex unit,
                                                  base::Time until) {
    DAQLOOM_TRY(connection, Handover::connect(name_of(run, unit)));
    DAQLOOM_TRY(parcel, connection.receive(until));
    if (parcel.fds.size() != 1) {
        return base::system_failure(fmt::format("{} serves no counters", name_of(run, unit)));
    }
    DAQLOOM_TRY(memory, SharedMemory::attach(std::move(parcel.fds[0]), SharedMemory::Access::read,
                                             base::Bytes{sizeof(Page)}));
    std::uint64_t found = 0;
    if (memory.bytes().size() == sizeof(Page)) {
        std::memcpy(&found, memory.bytes().data(), sizeof found);
    }
    if (found != layout()) {
        return base::system_failure(
            fmt::format("{} counts other things than this version of daqloom", name_of(run, unit)));
    }
    return CountersPage(std::move(memory));
}

void see_counters(const NodeCounters& counted, const SeeCount& see) {
    NodeCounters::each(
        [&](const char* name, auto counter, const char*) { see(name, (counted.*counter).get()); });
    NodeCounters::each_histogram([&](const char* name, auto histogram, const char*) {
        (counted.*histogram).each([&](std::size_t bucket, std::uint64_t count) {
            see(fmt::format("{}{}{}", name, counter_names::kBucket, bucket), count);
        });
    });
    see(counter_names::kSteps.name, counted.mfps_written + counted.mfps_received +
                                        counted.meps_processed + counted.meps_discarded);
}

base::expected<std::unique_ptr<CountersServer>> CountersServer::serve(const std::string& run,
                                                                      UnitIndex unit,
                                                                      const CountersPage& page) {
    DAQLOOM_TRY(listener, HandoverListener::listen(name_of(run, unit)));
    // Reopened read-only: the receiver of this descriptor cannot write.
    OwnedFd readable(
        ::open(fmt::format("/proc/self/fd/{}", page.fd()).c_str(), O_RDONLY | O_CLOEXEC));
    OwnedFd stop(::eventfd(0, EFD_CLOEXEC));
    if (!readable || !stop) {
        return base::system_failure(fmt::format("cannot serve counters: {}", std::strerror(errno)));
    }
    return std::unique_ptr<CountersServer>(
        new CountersServer(std::move(listener), std::move(readable), std::move(stop)));
}

CountersServer::CountersServer(HandoverListener listener, OwnedFd readable, OwnedFd stop)
    : listener_(std::move(listener)), readable_(std::move(readable)), stop_(std::move(stop)) {
    thread_ = std::thread([this] { run(); });
}

CountersServer::~CountersServer() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
}

void CountersServer::run() {
    constexpr std::array greeting = {std::byte{1}};
    while (true) {
        std::array<pollfd, 2> watched{pollfd{listener_.fd_to_poll(), POLLIN, 0},
                                      pollfd{stop_.get(), POLLIN, 0}};
        ::poll(watched.data(), watched.size(), poll_timeout(listener_.wake()));
        if (watched[1].revents != 0) {
            return;
        }
        if (watched[0].revents == 0) {
            continue;
        }
        if (const auto visitor = listener_.accept(now()); visitor) {
            const int fd = readable_.get();
            [[maybe_unused]] const auto sent = visitor->send(greeting, std::span(&fd, 1));
        }
    }
}

}  // namespace daqloom::live
