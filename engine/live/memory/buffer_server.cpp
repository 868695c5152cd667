#include "live/memory/buffer_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

std::vector<std::byte> refusal(std::string_view why) {
    std::vector<std::byte> message{std::byte{0}};
    std::ranges::transform(why, std::back_inserter(message),
                           [](char c) { return static_cast<std::byte>(c); });
    return message;
}

}  // namespace

base::expected<std::unique_ptr<BufferServer>> BufferServer::serve(std::vector<BufferOffer> offers) {
    std::unique_ptr<BufferServer> server(new BufferServer);
    server->stop_ = OwnedFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!server->stop_) {
        return base::system_failure(
            fmt::format("cannot make an event descriptor: {}", std::strerror(errno)));
    }
    for (const BufferOffer& offer : offers) {
        if (std::ranges::find(server->doors_, offer.name, &Door::name) == server->doors_.end()) {
            DAQLOOM_TRY(listener, HandoverListener::listen(offer.name));
            server->doors_.push_back({offer.name, std::move(listener)});
        }
        for (std::size_t slot = 0; slot < offer.slots; ++slot) {
            server->places_.push_back({offer, slot});
        }
    }
    server->thread_ = std::thread([&self = *server] { self.run(); });
    return server;
}

BufferServer::~BufferServer() {
    if (thread_.joinable()) {
        is_stopping_ = true;
        ::eventfd_write(stop_.get(), 1);
        thread_.join();
    }
}

void BufferServer::run() {
    while (!is_stopping_) {
        wait();
        free_abandoned();
        receive_requests();
        let_in();
    }
}

void BufferServer::wait() const {
    std::vector<pollfd> watched{{stop_.get(), POLLIN, 0}};
    for (const Place& place : places_) {
        if (place.connection) {
            watched.push_back({place.connection->fd(), POLLRDHUP, 0});
        }
    }
    base::Time until = base::Time::never();
    for (const Visitor& visitor : visitors_) {
        watched.push_back({visitor.connection.fd(), POLLIN | POLLRDHUP, 0});
        until = std::min(until, visitor.until);
    }
    if (visitors_.size() < most_visitors) {
        for (const Door& door : doors_) {
            watched.push_back({door.listener.fd_to_poll(), POLLIN, 0});
            until = std::min(until, door.listener.wake());
        }
    }
    ::poll(watched.data(), watched.size(), poll_timeout(until));
}

void BufferServer::free_abandoned() {
    for (Place& place : places_) {
        if (place.connection && place.connection->is_closed()) {
            free(place);
        }
    }
}

void BufferServer::free(Place& place) {
    place.connection.reset();
    if (place.offer.attendant != nullptr) {
        place.offer.attendant->leave(place.slot);
    }
}

void BufferServer::let_in() {
    for (Door& door : doors_) {
        while (visitors_.size() < most_visitors && door.listener.fd_to_poll() >= 0) {
            auto connection = door.listener.accept(base::Time::zero());
            if (!connection) {
                break;
            }
            visitors_.push_back({door.name, std::move(*connection), now() + patience});
        }
    }
}

void BufferServer::receive_requests() {
    std::erase_if(visitors_, [this](Visitor& visitor) {
        pollfd watched{visitor.connection.fd(), POLLIN | POLLRDHUP, 0};
        if (::poll(&watched, 1, 0) > 0) {
            if (const auto hello = visitor.connection.receive(base::Time::zero())) {
                answer(visitor, *hello);
            }
            return true;
        }
        return now() >= visitor.until;
    });
}

void BufferServer::answer(Visitor& visitor, const Parcel& hello) {
    const auto expected = BufferHello::encode(BufferSide::writer);
    const bool is_hello = hello.bytes.size() == expected.size() && hello.fds.empty() &&
                          std::equal(expected.begin(), expected.begin() + 5, hello.bytes.begin());
    free_abandoned();
    Place* place = is_hello ? find(visitor.name, hello.bytes.back()) : nullptr;
    const auto send = [&visitor](std::span<const std::byte> bytes, std::span<const int> fds = {}) {
        return visitor.connection.send(bytes, fds).has_value();
    };
    if (place == nullptr) {
        send(refusal(is_hello ? "this buffer's other side is not offered; attach to the other one"
                              : "another version of daqloom; use the same for both"));
        return;
    }
    if (place->connection) {
        const std::size_t slots = place->offer.slots;
        send(refusal(
            slots == 1
                ? fmt::format("process {} has this side of the buffer; end it first",
                              place->connection->peer())
                : fmt::format("{} processes have this side of the buffer; end one first", slots)));
        return;
    }
    const Buffer* buffer = place->offer.buffer;
    if (place->offer.attendant != nullptr) {
        const auto admitted = place->offer.attendant->admit(place->slot, visitor.connection.peer());
        if (!admitted) {
            send(refusal(admitted.error().message));
            return;
        }
        buffer = *admitted;
    }
    // Set before the answer, so that a process that has received the answer finds this state.
    const std::byte granted{1};
    const auto descriptors = buffer->descriptors();
    place->connection.emplace(std::move(visitor.connection));
    if (!place->connection->send({&granted, 1}, descriptors)) {
        free(*place);
    }
}

BufferServer::Place* BufferServer::find(const std::string& name, std::byte side) {
    Place* found = nullptr;
    for (Place& place : places_) {
        const bool is_side =
            place.offer.name == name && static_cast<std::byte>(place.offer.side) == side;
        found = is_side && (found == nullptr || found->connection) ? &place : found;
    }
    return found;
}

}  // namespace daqloom::live
