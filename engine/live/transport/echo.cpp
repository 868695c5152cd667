#include "live/transport/echo.hpp"

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "live/memory/clock.hpp"

namespace daqloom::live {

using base::Time;

base::expected<std::unique_ptr<Echo>> Echo::make(const EchoConfig& config) {
    if (config.bytes < 1 || config.bytes > Transport::most_message) {
        return base::failure("a message of an echo has 1 to 16384 bytes");
    }
    std::unique_ptr<Echo> echo(new Echo(config));
    DAQLOOM_TRY(doorbell, Doorbell::create());
    echo->doorbell_.emplace(std::move(doorbell));
    TransportConfig own;
    own.self = UnitIndex(config.begins ? 0U : 1U);
    own.units = 2;
    own.token = config.token;
    own.doorbell = &*echo->doorbell_;
    own.waiting = config.waiting;
    DAQLOOM_TRY(transport, make_transport(config.transport, own, config.tcp));
    echo->transport_ = std::move(transport);
    return echo;
}

base::expected<void> Echo::connect(std::vector<std::byte> other, Time until) {
    const std::array peers{Transport::Peer{this->other(), std::move(other)}};
    DAQLOOM_TRY(missing, transport_->connect(peers, until));
    return missing.empty() ? base::expected<void>{}
                           : base::failure("the other end of an echo does not answer");
}

base::expected<RoundTrips> Echo::run(std::uint32_t rounds, Time pause, Time until) {
    RoundTrips found;
    found.times.reserve(config_.begins ? rounds : 0);
    const Time before = processor_time();
    for (std::uint32_t round = 0; round < rounds; ++round) {
        if (config_.begins && pause > Time::zero()) {
            std::this_thread::sleep_for(std::chrono::nanoseconds(pause.ps / 1000));
        }
        const Time began = now();
        if (config_.begins) {
            DAQLOOM_CHECK(send(until));
            DAQLOOM_CHECK(receive(until));
            found.times.push_back(now() - began);
        } else {
            DAQLOOM_CHECK(receive(until));
            DAQLOOM_CHECK(send(until));
        }
        found.messages += 2;
    }
    found.processor = processor_time() - before;
    return found;
}

base::expected<void> Echo::send(Time until) {
    while (!transport_->send(other(), message_)) {
        DAQLOOM_CHECK(work(until));
    }
    return {};
}

base::expected<void> Echo::receive(Time until) {
    while (received_ == taken_) {
        DAQLOOM_CHECK(work(until));
    }
    ++taken_;
    return {};
}

base::expected<void> Echo::work(Time until) {
    if (is_alone_) {
        return base::failure("the other end of an echo is gone");
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
