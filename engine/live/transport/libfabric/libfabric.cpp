#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/memory/polling.hpp"
#include "live/transport/envelope.hpp"
#include "live/transport/libfabric/connections.hpp"
#include "live/transport/libfabric/endpoint.hpp"
#include "live/transport/libfabric/libfabric_transport.hpp"
#include "live/transport/libfabric/objects.hpp"
#include "live/transport/loopback.hpp"

namespace daqloom::live {

namespace ofi {

namespace {

/// Interval of repeated greetings to a unit that has not accepted one.
constexpr base::Time kGreetAgain = base::milliseconds(2);

}  // namespace

// ---- set-up

base::expected<void> LibfabricTransport::prepare() {
    make_operations();
    DAQLOOM_CHECK(endpoints_.use(rooms_, FI_SEND | FI_RECV));
    for (const auto& source : config_.sources) {
        DAQLOOM_CHECK(endpoints_.use(source, FI_WRITE));
    }
    if (config_.arena != nullptr && *config_.arena) {
        DAQLOOM_CHECK(endpoints_.expose(config_.arena->bytes()));
    }
    for (Operation& operation : operations_) {
        if (operation.kind == Operation::Kind::receive) {
            receive_again(operation);
        }
    }
    DAQLOOM_TRY(address, endpoints_.address());
    address_ = std::move(address);
    return {};
}

/// Makes all operations. Each unit has a share of them, so that a stuck unit does not block the
/// others.
void LibfabricTransport::make_operations() {
    const std::size_t at_once = endpoints_.info().tx_attr->size;
    const auto others = std::max<std::size_t>(config_.units, 2) - 1;
    const std::size_t receives =
        std::min(std::clamp<std::size_t>(4 * others, 64, 1024), endpoints_.info().rx_attr->size);
    send_share_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(512 / others, 2, 16));
    const std::size_t sends = std::min(send_share_ * others, at_once);
    const std::size_t writes = std::min<std::size_t>(at_once, 2048);
    write_share_ = static_cast<std::uint32_t>(std::max<std::size_t>(writes / others, 1));

    const std::size_t with_room = paths.size() * receives + sends;
    rooms_.resize(with_room * kMessageRoom);
    operations_.resize(with_room + writes);
    free_sends_.reserve(sends);
    free_writes_.reserve(writes);
    waiting_writes_.reserve(writes);
    unposted_receives_.reserve(paths.size() * receives);
    greetings_.reserve(config_.units);
    lost_.reserve(config_.units);
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        Operation& operation = operations_[i];
        if (i < with_room) {
            operation.room = rooms_.data() + i * kMessageRoom;
        }
        if (i >= with_room) {
            operation.kind = Operation::Kind::write;
            free_writes_.push_back(&operation);
        } else if (i < sends) {
            operation.kind = Operation::Kind::send;
            free_sends_.push_back(&operation);
        } else {
            operation.path = paths[(i - sends) / receives];
        }
    }
}

// ---- connecting

/// Adds a peer. False: its address is invalid.
bool LibfabricTransport::add(const Transport::Peer& peer) {
    if (!peers_.contains(peer.unit)) {
        return false;
    }
    const auto where = endpoints_.add_address(peer.address);
    if (!where) {
        return false;
    }
    peers_[peer.unit].where = *where;
    peers_[peer.unit].state = Remote::State::greeting;
    for (const Path path : paths) {
        owe(peer.unit, path, &Greeting::owes_hello);
    }
    return true;
}

base::expected<std::vector<UnitIndex>> LibfabricTransport::connect(
    std::span<const Transport::Peer> peers, base::Time until) {
    std::vector<UnitIndex> silent;
    for (const auto& peer : peers) {
        if (peer.unit == config_.self) {
            continue;
        }
        if (!add(peer)) {
            silent.push_back(peer.unit);
        }
    }
    const bool has_barrier =
        !config_.barrier.empty() && std::ranges::all_of(config_.barrier, [this](UnitIndex unit) {
            return endpoints_.collective()->add(unit == config_.self
                                                    ? endpoints_.name_for_barriers()
                                                    : peers_[unit].where.collective);
        });
    const auto greeting = [](const Remote& peer) { return peer.state == Remote::State::greeting; };
    while (std::ranges::any_of(peers_, greeting) && now() < until) {
        if (!work(earlier_)) {
            sleep(std::min(until, now() + kGreetAgain));
        }
    }
    if (has_barrier) {  // else a unit is silent, and the others will regroup
        DAQLOOM_CHECK(endpoints_.collective()->join());
    }
    if (!congestion_control_.empty()) {
        set_congestion_control(endpoints_.queue(), congestion_control_);
    }
    for (const UnitIndex unit : peers_.indices()) {
        if (peers_[unit].state == Remote::State::greeting) {
            peers_[unit].state = Remote::State::lost;
            silent.push_back(unit);
        }
    }
    std::erase_if(greetings_, [this](UnitIndex unit) {
        return peers_[unit].state != Remote::State::connected;
    });
    std::ranges::sort(silent);
    return silent;
}

void LibfabricTransport::owe(UnitIndex unit, Path path, bool Greeting::*what) {
    auto& greetings = peers_[unit].greetings;
    if (std::ranges::none_of(greetings, &Greeting::owes)) {
        greetings_.push_back(unit);
    }
    greetings[index_of(path)].*what = true;
}

bool LibfabricTransport::greet(UnitIndex unit) {
    auto& greetings = peers_[unit].greetings;
    for (const Path path : paths) {
        Greeting& greeting = greetings[index_of(path)];
        if (greeting.owes_hello && post_message(unit, path, Envelope::Kind::hello, {})) {
            greeting.owes_hello = false;
        }
        if (greeting.owes_answer && post_message(unit, path, Envelope::Kind::answer, {})) {
            greeting.owes_answer = false;
        }
    }
    return std::ranges::none_of(greetings, &Greeting::owes);
}

// ---- sending

bool LibfabricTransport::send(UnitIndex to, std::span<const std::byte> bytes) {
    if (!peers_.contains(to) || bytes.size() > most_message) {
        return false;
    }
    if (to == config_.self) {
        return loopback_.send(bytes, counters_);
    }
    if (peers_[to].state != Remote::State::connected) {
        lose(to);
        return true;
    }
    if (!post_message(to, Path::messages, Envelope::Kind::message, bytes)) {
        return false;
    }
    ++counters_.messages_sent;
    return true;
}

/// Posts a message. False: no operation of this unit is free, or the provider is busy.
bool LibfabricTransport::post_message(UnitIndex to, Path path, Envelope::Kind kind,
                                      std::span<const std::byte> message) {
    Remote& peer = peers_[to];
    if (free_sends_.empty() || peer.sends >= send_share_) {
        return false;
    }
    Operation& operation = *free_sends_.back();
    const Envelope envelope = sealer_.seal(kind, to, message.size());
    std::memcpy(operation.room, &envelope, sizeof envelope);
    if (!message.empty()) {
        std::memcpy(operation.room + sizeof envelope, message.data(), message.size());
    }
    const auto code =
        ::fi_send(endpoints_.get(path), operation.room, sizeof envelope + message.size(),
                  endpoints_.descriptor_of(operation.room), peer.where.at[index_of(path)],
                  &operation.context);
    if (code == -FI_EAGAIN) {
        return false;
    }
    if (code != 0) {
        lose(to);
        return true;
    }
    free_sends_.pop_back();
    operation.peer = to;
    operation.path = path;
    ++peer.sends;
    return true;
}

bool LibfabricTransport::write(const Write& write) {
    if (!peers_.contains(write.to)) {
        return false;
    }
    if (write.to == config_.self) {
        return loopback_.write(write, counters_);
    }
    const Remote& peer = peers_[write.to];
    if (peer.state != Remote::State::connected || !write.is_inside(peer.where.bytes)) {
        counters_.refused_malformed += peer.state != Remote::State::lost ? 1 : 0;
        lose(write.to);
        return true;
    }
    if (!post_write(write)) {
        return false;
    }
    ++counters_.writes;
    counters_.written_bytes += static_cast<base::Bytes>(write.bytes.size());
    return true;
}

/// Posts a write. False: no operation is free for this unit.
bool LibfabricTransport::post_write(const Write& write) {
    Remote& peer = peers_[write.to];
    if (free_writes_.empty() || peer.writes >= write_share_) {
        return false;
    }
    Operation& operation = *free_writes_.back();
    operation.write = write;
    operation.peer = write.to;
    operation.given = 0;
    operation.under_way = 0;
    operation.waits = true;
    advance(operation);
    if (operation.waits && operation.under_way == 0) {
        return false;
    }
    free_writes_.pop_back();
    ++peer.writes;
    if (operation.waits) {
        waiting_writes_.push_back(&operation);
    } else if (operation.under_way == 0) {
        release(operation);
    }
    return true;
}

/// Posts as many parts as the provider takes now. The last part carries the immediate and is posted
/// when all others are complete; its own completion only means that the source is free again.
void LibfabricTransport::advance(Operation& operation) {
    const Write& write = operation.write;
    const Remote& peer = peers_[operation.peer];
    while (operation.waits) {
        if (peer.state == Remote::State::lost) {
            operation.waits = false;
            return;
        }
        const std::size_t left = write.bytes.size() - operation.given;
        const bool is_last = left <= endpoints_.part();
        if (is_last && operation.under_way > 0) {
            return;
        }
        const std::byte* from = write.bytes.data() + operation.given;
        iovec local{const_cast<std::byte*>(from), std::min(left, endpoints_.part())};
        void* descriptor = endpoints_.descriptor_of(from);
        fi_rma_iov remote{
            peer.where.base + static_cast<std::uint64_t>(write.offset) + operation.given,
            local.iov_len, peer.where.key};
        fi_msg_rma message{};
        message.msg_iov = &local;
        message.desc = &descriptor;
        message.iov_count = 1;
        message.addr = peer.where.at[index_of(Path::writes)];
        message.rma_iov = &remote;
        message.rma_iov_count = 1;
        message.context = &operation.context;
        message.data = write.immediate;
        const auto code = ::fi_writemsg(
            endpoints_.get(Path::writes), &message,
            FI_COMPLETION | endpoints_.write_flags() | (is_last ? FI_REMOTE_CQ_DATA : 0));
        if (code == -FI_EAGAIN) {
            return;
        }
        if (code != 0) {
            lose(operation.peer);
            continue;
        }
        ++operation.under_way;
        operation.given += local.iov_len;
        operation.waits = !is_last;
    }
}

void LibfabricTransport::release(Operation& operation) {
    Remote& peer = peers_[operation.peer];
    if (operation.kind == Operation::Kind::send) {
        --peer.sends;
        free_sends_.push_back(&operation);
    } else {
        --peer.writes;
        free_writes_.push_back(&operation);
    }
}

void LibfabricTransport::lose(UnitIndex unit) {
    if (peers_[unit].state != Remote::State::lost) {
        peers_[unit].state = Remote::State::lost;
        peers_[unit].greetings = {};
        lost_.push_back(unit);
    }
}

void LibfabricTransport::receive_again(Operation& operation) {
    const auto code =
        ::fi_recv(endpoints_.get(operation.path), operation.room, kMessageRoom,
                  endpoints_.descriptor_of(operation.room), FI_ADDR_UNSPEC, &operation.context);
    if (code != 0) {
        unposted_receives_.push_back(&operation);
    }
}

}  // namespace ofi

base::expected<std::unique_ptr<Transport>> make_libfabric(const TransportConfig& transport,
                                                          const LibfabricConfig& libfabric) {
    DAQLOOM_REFUSE_IF(transport.self.value() >= transport.units || transport.doorbell == nullptr,
                      "cannot make unit {} of {}: it must be one of them and have a doorbell",
                      transport.self.value(), transport.units);
    std::size_t longest = 0;
    for (const auto& source : transport.sources) {
        longest = std::max(longest, source.size());
    }
    if (!libfabric.congestion_control.empty()) {
        DAQLOOM_CHECK(ofi::check_congestion_control(libfabric.congestion_control));
    }
    DAQLOOM_TRY(endpoints, ofi::Endpoints::open(libfabric, longest, transport.units,
                                                !transport.barrier.empty()));
    auto made =
        std::make_unique<ofi::LibfabricTransport>(transport, libfabric, std::move(endpoints));
    DAQLOOM_CHECK(made->prepare());
    return made;
}

}  // namespace daqloom::live
