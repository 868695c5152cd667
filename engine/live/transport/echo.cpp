#include "live/transport/echo.hpp"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "live/memory/clock.hpp"

namespace daqloom::live {

using base::Time;

base::expected<std::unique_ptr<Echo>> Echo::make(const EchoConfig& config) {
    if (config.most_bytes < sizeof(Time) || config.most_bytes > Transport::most_message) {
        return base::failure("a message of an echo has 8 to 16384 bytes");
    }
    if (config.units < 2 || config.unit >= config.units) {
        return base::failure("an echo has two units or more, numbered from 0");
    }
    std::unique_ptr<Echo> echo(new Echo(config));
    DAQLOOM_TRY(doorbell, Doorbell::create());
    echo->doorbell_.emplace(std::move(doorbell));
    TransportConfig own;
    own.self = UnitIndex(config.unit);
    own.units = config.units;
    own.token = config.token;
    own.doorbell = &*echo->doorbell_;
    own.waiting = config.waiting;
    DAQLOOM_TRY(transport, make_transport(config.transport, own, config.tcp));
    echo->transport_ = std::move(transport);
    return echo;
}

base::expected<void> Echo::connect(std::vector<std::vector<std::byte>> others, Time until) {
    std::vector<Transport::Peer> peers;
    for (std::size_t i = 0; i < others.size(); ++i) {
        const auto unit = static_cast<std::uint32_t>(asks() ? i + 1 : i);
        peers.push_back({UnitIndex(unit), std::move(others[i])});
    }
    if (peers.size() != (asks() ? config_.units - 1 : 1)) {
        return base::failure("an echo needs the addresses of its peers");
    }
    DAQLOOM_TRY(missing, transport_->connect(peers, until));
    return missing.empty() ? base::expected<void>{}
                           : base::failure("another unit of an echo does not answer");
}

void Echo::on_message(UnitIndex /*from*/, std::span<const std::byte> bytes) {
    ++received_;
    Time posted;
    if (!asks() && bytes.size() >= sizeof posted) {
        std::memcpy(&posted, bytes.data(), sizeof posted);
        latencies_.push_back(now() - posted);
    }
}

base::expected<RoundTrips> Echo::run(std::uint32_t rounds, std::size_t bytes, Time pause,
                                     Time until) {
    if (bytes < sizeof(Time) || bytes > config_.most_bytes) {
        return base::failure("a message of an echo has 8 bytes, to as many as it was made for");
    }
    message_.resize(bytes);  // never more than it had
    RoundTrips found;
    const std::uint32_t others = asks() ? config_.units - 1 : 1;
    (asks() ? found.times : latencies_).reserve(rounds);
    const Time before = processor_time();
    for (std::uint32_t round = 0; round < rounds; ++round) {
        if (asks() && pause > Time::zero()) {
            std::this_thread::sleep_for(std::chrono::nanoseconds(pause.ps / 1000));
        }
        const Time began = now();
        if (asks()) {
            for (std::uint32_t unit = 1; unit <= others; ++unit) {
                DAQLOOM_CHECK(send(UnitIndex(unit), until));
            }
            DAQLOOM_CHECK(receive(others, until));
            found.times.push_back(now() - began);
        } else {
            DAQLOOM_CHECK(receive(1, until));
            DAQLOOM_CHECK(send(UnitIndex(0), until));
        }
        found.messages += 2 * others;
    }
    found.processor = processor_time() - before;
    found.latencies = std::exchange(latencies_, {});
    return found;
}

base::expected<void> Echo::send(UnitIndex to, Time until) {
    const Time posted = now();
    std::memcpy(message_.data(), &posted, sizeof posted);
    while (!transport_->send(to, message_)) {
        DAQLOOM_CHECK(work(until));
    }
    return {};
}

base::expected<void> Echo::receive(std::uint64_t messages, Time until) {
    taken_ += messages;
    while (received_ < taken_) {
        DAQLOOM_CHECK(work(until));
    }
    return {};
}

base::expected<void> Echo::work(Time until) {
    if (is_alone_) {
        return base::failure("another unit of an echo is gone");
    }
    if (now() > until) {
        return base::failure("an echo took longer than it may");
    }
    if (!transport_->poll(*this)) {
        transport_->wait(until);
    }
    return {};
}

}  // namespace daqloom::live
