#include "live/transport/libfabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/memory/polling.hpp"
#include "live/transport/envelope.hpp"
#include "live/transport/libfabric_connections.hpp"
#include "live/transport/libfabric_endpoint.hpp"
#include "live/transport/libfabric_objects.hpp"
#include "live/transport/to_self.hpp"

namespace daqloom::live {

namespace {

constexpr std::size_t kCompletionsPerPoll = 32;
constexpr std::size_t kWritesToSelf = 256;
constexpr std::size_t kMessageRoom = (sizeof(Envelope) + Transport::most_message + 63) / 64 * 64;
/// Polling interval of an idle unit whose provider has no descriptor to wait on.
constexpr base::Time kLook = base::milliseconds(1);
/// A unit that was woken so often in vain polls as well: with `tcp` of 1.17 a stranger that
/// connected and left (a port scan) wakes a unit for ever. Parts of a long write wake it in vain as
/// well.
constexpr int kMostInVain = 1000;
/// Interval of greetings to a unit that has not accepted one.
constexpr base::Time kGreetAgain = base::milliseconds(2);

/// An operation under way at the provider; reused when it has completed.
struct Operation {
    enum class Kind : std::uint8_t { receive, send, write };

    fi_context2 context{};  ///< the provider's; first, so that its address is ours
    Kind kind = Kind::receive;
    bool waits = false;  ///< write: has parts that the provider has not been given
    UnitIndex peer = 0;
    std::byte* room = nullptr;  ///< receive, send: an envelope and its message
    Write write;
    std::size_t given = 0;        ///< write: bytes that the provider has been given
    std::uint32_t under_way = 0;  ///< write: parts that it has not done
};

struct Remote {
    enum class State : std::uint8_t { absent, greeting, connected, lost };

    State state = State::absent;
    bool owes_hello = false;
    bool owes_answer = false;
    bool has_answered = false;    ///< our hello
    bool has_our_answer = false;  ///< to its hello
    std::uint32_t sends = 0;      ///< under way
    std::uint32_t writes = 0;     ///< under way
    ofi::Destination where;
};

/// Events that arrive while a unit still connects, kept for its first poll.
class Earlier final : public TransportEvents {
  public:
    void on_message(UnitIndex from, std::span<const std::byte> bytes) override {
        happened_.push_back({from, 0, {bytes.begin(), bytes.end()}, true});
    }
    void on_written(UnitIndex from, std::uint32_t immediate) override {
        happened_.push_back({from, immediate, {}, false});
    }
    void on_write_done(std::uint64_t) override {}
    void on_unreachable(UnitIndex) override {}

    bool replay(TransportEvents& events) {
        if (happened_.empty()) {
            return false;
        }
        for (const auto& one : std::exchange(happened_, {})) {
            if (one.is_message) {
                events.on_message(one.from, one.bytes);
            } else {
                events.on_written(one.from, one.immediate);
            }
        }
        return true;
    }
    [[nodiscard]] bool empty() const { return happened_.empty(); }

  private:
    struct One {
        UnitIndex from;
        std::uint32_t immediate;
        std::vector<std::byte> bytes;
        bool is_message;
    };
    std::vector<One> happened_;
};

class Libfabric final : public Transport {
  public:
    Libfabric(const TransportConfig& config, const LibfabricConfig& libfabric,
              ofi::Endpoint endpoint)
        : config_(config),
          congestion_control_(libfabric.congestion_control),
          sealer_(config.token, config.self, config.units, config.epoch, endpoint.incarnation()),
          endpoint_(std::move(endpoint)),
          peers_(config.units),
          to_self_(config.self, config.arena, kWritesToSelf),
          polling_(config.polling) {}

    /// Once, before any other call.
    base::expected<void> prepare();

    [[nodiscard]] std::vector<std::byte> address() const override { return address_; }
    [[nodiscard]] base::expected<std::vector<UnitIndex>> connect(
        std::span<const Transport::Peer> peers, base::Time until) override;
    [[nodiscard]] bool send(UnitIndex to, std::span<const std::byte> bytes) override;
    [[nodiscard]] bool write(const Write& write) override;
    bool poll(TransportEvents& events) override;
    void wait(base::Time until) override;
    [[nodiscard]] const TransportCounters& counters() const override { return counters_; }

  private:
    void make_operations();
    [[nodiscard]] bool add(const Transport::Peer& peer);

    void sleep(base::Time until);
    bool work(TransportEvents& events);
    bool catch_up();
    bool read_completions(TransportEvents& events);
    bool read_error();
    void on_received(Operation& operation, std::size_t length, TransportEvents& events);
    void on_sent(Operation& operation);
    void settle(Remote& peer);
    bool end_part(Operation& operation);
    void receive_again(Operation& operation);
    [[nodiscard]] bool can_be_written(const Write& write) const;
    bool post_write(const Write& write);
    bool post_message(UnitIndex to, Envelope::Kind kind, std::span<const std::byte> message);
    void owe(UnitIndex unit, bool Remote::*what);
    void greet(UnitIndex unit);
    void advance(Operation& operation);
    void release(Operation& operation);
    void lose(UnitIndex unit);
    [[nodiscard]] Operation* ours(void* context);

    TransportConfig config_;
    std::string congestion_control_;
    Sealer sealer_;
    TransportCounters counters_;

    std::vector<std::byte> rooms_;  ///< of messages; outlives the endpoint
    ofi::Endpoint endpoint_;
    std::vector<std::byte> address_;

    std::vector<Remote> peers_;
    std::uint32_t send_share_ = 0;  ///< most under way to one unit
    std::uint32_t write_share_ = 0;
    std::vector<Operation> operations_;
    std::vector<Operation*> free_sends_;
    std::vector<Operation*> free_writes_;
    std::vector<Operation*> waiting_writes_;
    std::vector<Operation*> unposted_receives_;
    std::vector<UnitIndex> greetings_;  ///< units that are owed a hello or an answer
    std::vector<UnitIndex> lost_;       ///< not yet reported
    ToSelf to_self_;
    Earlier earlier_;
    base::Time busy_at_;
    Polling polling_;
    int in_vain_ = 0;          ///< wake-ups in a row
    bool is_polling_ = false;  ///< for what the caller waits for
};

Envelope::Kind kind_of(const Operation& operation) {
    Envelope envelope;
    std::memcpy(&envelope, operation.room, sizeof envelope);
    return envelope.kind;
}

// ---- set-up

base::expected<void> Libfabric::prepare() {
    make_operations();
    auto ready = endpoint_.use(rooms_, FI_SEND | FI_RECV);
    for (const auto& source : config_.sources) {
        ready = ready.and_then([&] { return endpoint_.use(source, FI_WRITE); });
    }
    if (config_.arena != nullptr && *config_.arena) {
        ready = ready.and_then([&] { return endpoint_.expose(config_.arena->bytes()); });
    }
    if (!ready) {
        return ready;
    }
    for (Operation& operation : operations_) {
        if (operation.kind == Operation::Kind::receive) {
            receive_again(operation);
        }
    }
    auto address = endpoint_.address();
    if (!address) {
        return tl::unexpected(address.error());
    }
    address_ = std::move(*address);
    return {};
}

/// Makes all operations. Each unit has a share of them, so that a stuck one does not block the
/// others.
void Libfabric::make_operations() {
    const std::size_t at_once = endpoint_.info().tx_attr->size;
    const auto others = std::max<std::size_t>(config_.units, 2) - 1;
    const std::size_t receives =
        std::min(std::clamp<std::size_t>(4 * others, 64, 1024), endpoint_.info().rx_attr->size);
    send_share_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(512 / others, 2, 16));
    const std::size_t sends = std::min(send_share_ * others, at_once);
    const std::size_t writes = std::min<std::size_t>(at_once, 2048);
    write_share_ = static_cast<std::uint32_t>(std::max<std::size_t>(writes / others, 1));

    rooms_.resize((receives + sends) * kMessageRoom);
    operations_.resize(receives + sends + writes);
    free_sends_.reserve(sends);
    free_writes_.reserve(writes);
    waiting_writes_.reserve(writes);
    unposted_receives_.reserve(receives);
    greetings_.reserve(config_.units);
    lost_.reserve(config_.units);
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        Operation& operation = operations_[i];
        if (i < receives + sends) {
            operation.room = rooms_.data() + i * kMessageRoom;
        }
        if (i >= receives + sends) {
            operation.kind = Operation::Kind::write;
            free_writes_.push_back(&operation);
        } else if (i >= receives) {
            operation.kind = Operation::Kind::send;
            free_sends_.push_back(&operation);
        }
    }
}

// ---- connecting

/// False: its address is invalid.
bool Libfabric::add(const Transport::Peer& peer) {
    if (peer.unit >= config_.units) {
        return false;
    }
    const auto where = endpoint_.meet(peer.address);
    if (!where) {
        return false;
    }
    peers_[peer.unit].where = *where;
    peers_[peer.unit].state = Remote::State::greeting;
    owe(peer.unit, &Remote::owes_hello);
    return true;
}

base::expected<std::vector<UnitIndex>> Libfabric::connect(std::span<const Transport::Peer> peers,
                                                          base::Time until) {
    std::vector<UnitIndex> silent;
    for (const auto& peer : peers) {
        if (peer.unit == config_.self) {
            continue;
        }
        if (!add(peer)) {
            silent.push_back(peer.unit);
        }
    }
    const auto greeting = [](const Remote& peer) { return peer.state == Remote::State::greeting; };
    while (std::ranges::any_of(peers_, greeting) && now() < until) {
        if (!work(earlier_)) {
            sleep(std::min(until, now() + kGreetAgain));
        }
    }
    if (!congestion_control_.empty()) {
        ofi::set_congestion_control(endpoint_.queue(), congestion_control_);
    }
    for (UnitIndex unit = 0; unit < peers_.size(); ++unit) {
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

void Libfabric::owe(UnitIndex unit, bool Remote::*what) {
    Remote& peer = peers_[unit];
    if (!peer.owes_hello && !peer.owes_answer) {
        greetings_.push_back(unit);
    }
    peer.*what = true;
}

void Libfabric::greet(UnitIndex unit) {
    Remote& peer = peers_[unit];
    if (peer.owes_hello && post_message(unit, Envelope::Kind::hello, {})) {
        peer.owes_hello = false;
    }
    if (peer.owes_answer && post_message(unit, Envelope::Kind::answer, {})) {
        peer.owes_answer = false;
    }
}

// ---- sending

bool Libfabric::send(UnitIndex to, std::span<const std::byte> bytes) {
    if (to >= peers_.size() || bytes.size() > most_message) {
        return false;
    }
    const bool is_own = to == config_.self;
    if (!is_own && peers_[to].state != Remote::State::connected) {
        lose(to);
        return true;
    }
    if (is_own ? !to_self_.send(bytes) : !post_message(to, Envelope::Kind::message, bytes)) {
        return false;
    }
    ++counters_.messages_sent;
    return true;
}

/// False: no room now.
bool Libfabric::post_message(UnitIndex to, Envelope::Kind kind,
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
        ::fi_send(endpoint_.get(), operation.room, sizeof envelope + message.size(),
                  endpoint_.descriptor_of(operation.room), peer.where.at, &operation.context);
    if (code == -FI_EAGAIN) {
        return false;
    }
    if (code != 0) {
        lose(to);
        return true;
    }
    free_sends_.pop_back();
    operation.peer = to;
    ++peer.sends;
    return true;
}

bool Libfabric::write(const Write& write) {
    if (write.to >= peers_.size()) {
        return false;
    }
    if (!can_be_written(write)) {
        counters_.refused_malformed += peers_[write.to].state != Remote::State::lost ? 1 : 0;
        lose(write.to);
        return true;
    }
    if (write.to == config_.self ? !to_self_.write(write) : !post_write(write)) {
        return false;
    }
    ++counters_.writes;
    counters_.written_bytes += static_cast<base::Bytes>(write.bytes.size());
    return true;
}

bool Libfabric::can_be_written(const Write& write) const {
    if (write.to == config_.self) {
        return to_self_.is_inside(write);
    }
    const Remote& peer = peers_[write.to];
    const std::uint64_t arena = peer.where.bytes;
    return peer.state == Remote::State::connected && write.bytes.size() <= arena &&
           write.offset >= 0 &&
           static_cast<std::uint64_t>(write.offset) <= arena - write.bytes.size();
}

/// False: no room now.
bool Libfabric::post_write(const Write& write) {
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

/// Gives the provider as many parts as it takes now. The last part carries the immediate and is
/// given when the others are done; its own completion only means that the source is free again.
void Libfabric::advance(Operation& operation) {
    const Write& write = operation.write;
    const Remote& peer = peers_[operation.peer];
    while (operation.waits) {
        if (peer.state == Remote::State::lost) {
            operation.waits = false;
            return;
        }
        const std::size_t left = write.bytes.size() - operation.given;
        const bool is_last = left <= endpoint_.part();
        if (is_last && operation.under_way > 0) {
            return;
        }
        const std::byte* from = write.bytes.data() + operation.given;
        iovec local{const_cast<std::byte*>(from), std::min(left, endpoint_.part())};
        void* descriptor = endpoint_.descriptor_of(from);
        fi_rma_iov remote{
            peer.where.base + static_cast<std::uint64_t>(write.offset) + operation.given,
            local.iov_len, peer.where.key};
        fi_msg_rma message{};
        message.msg_iov = &local;
        message.desc = &descriptor;
        message.iov_count = 1;
        message.addr = peer.where.at;
        message.rma_iov = &remote;
        message.rma_iov_count = 1;
        message.context = &operation.context;
        message.data = write.immediate;
        const auto code =
            ::fi_writemsg(endpoint_.get(), &message,
                          FI_COMPLETION | (is_last ? FI_REMOTE_CQ_DATA : endpoint_.part_flags()));
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

void Libfabric::release(Operation& operation) {
    Remote& peer = peers_[operation.peer];
    if (operation.kind == Operation::Kind::send) {
        --peer.sends;
        free_sends_.push_back(&operation);
    } else {
        --peer.writes;
        free_writes_.push_back(&operation);
    }
}

void Libfabric::lose(UnitIndex unit) {
    if (peers_[unit].state != Remote::State::lost) {
        peers_[unit].state = Remote::State::lost;
        peers_[unit].owes_hello = peers_[unit].owes_answer = false;
        lost_.push_back(unit);
    }
}

void Libfabric::receive_again(Operation& operation) {
    const auto code =
        ::fi_recv(endpoint_.get(), operation.room, kMessageRoom,
                  endpoint_.descriptor_of(operation.room), FI_ADDR_UNSPEC, &operation.context);
    if (code != 0) {
        unposted_receives_.push_back(&operation);
    }
}

// ---- completions

bool Libfabric::poll(TransportEvents& events) {
    bool happened = earlier_.replay(events);
    while (!lost_.empty()) {
        const UnitIndex unit = lost_.back();
        lost_.pop_back();
        events.on_unreachable(unit);
        happened = true;
    }
    happened |= to_self_.poll(events, counters_);
    happened |= work(events);
    in_vain_ = happened ? 0 : in_vain_;
    if (happened && config_.waiting == Waiting::adaptive) {
        busy_at_ = now();
        if (std::exchange(is_polling_, false)) {
            polling_.on_found();
        }
    }
    return happened;
}

bool Libfabric::work(TransportEvents& events) {
    const bool moved = catch_up();
    return read_completions(events) || moved;
}

/// Retries what the provider did not take earlier.
bool Libfabric::catch_up() {
    bool moved = false;
    if (!unposted_receives_.empty()) {
        Operation& operation = *unposted_receives_.back();
        unposted_receives_.pop_back();
        receive_again(operation);
    }
    if (!greetings_.empty()) {
        std::erase_if(greetings_, [this](UnitIndex unit) {
            greet(unit);
            return !peers_[unit].owes_hello && !peers_[unit].owes_answer;
        });
    }
    for (std::size_t i = 0; i < waiting_writes_.size();) {
        Operation& operation = *waiting_writes_[i];
        const std::size_t given = operation.given;
        advance(operation);
        moved |= operation.given != given;
        if (operation.waits) {
            ++i;
            continue;
        }
        waiting_writes_[i] = waiting_writes_.back();
        waiting_writes_.pop_back();
        if (operation.under_way == 0) {
            release(operation);
        }
    }
    return moved;
}

bool Libfabric::read_completions(TransportEvents& events) {
    std::array<fi_cq_data_entry, kCompletionsPerPoll> done;
    const auto count = ::fi_cq_read(endpoint_.queue().cq.get(), done.data(), done.size());
    if (count == -FI_EAVAIL) {
        return read_error();
    }
    for (std::int64_t i = 0; i < count; ++i) {
        const fi_cq_data_entry& entry = done[static_cast<std::size_t>(i)];
        const bool is_written =
            (entry.flags & FI_REMOTE_WRITE) ||
            ((entry.flags & FI_REMOTE_CQ_DATA) && !(entry.flags & (FI_SEND | FI_WRITE | FI_RECV)));
        if (is_written) {
            if (entry.flags & FI_REMOTE_CQ_DATA) {
                ++counters_.writes_received;
                events.on_written(unknown_unit, static_cast<std::uint32_t>(entry.data));
            }
            if (endpoint_.info().mode & FI_RX_CQ_DATA) {  // it has used one of our receives
                if (Operation* operation = ours(entry.op_context)) {
                    receive_again(*operation);
                }
            }
            continue;
        }
        Operation& operation = *reinterpret_cast<Operation*>(entry.op_context);
        switch (operation.kind) {
            case Operation::Kind::receive:
                on_received(operation, entry.len, events);
                break;
            case Operation::Kind::send:
                on_sent(operation);
                break;
            case Operation::Kind::write:
                if (end_part(operation)) {
                    events.on_write_done(operation.write.context);
                }
                break;
        }
    }
    return count > 0;
}

void Libfabric::on_received(Operation& operation, std::size_t length, TransportEvents& events) {
    const auto opened = sealer_.open({operation.room, std::min(length, kMessageRoom)});
    switch (opened.verdict) {
        case Sealer::Verdict::stranger:
            ++counters_.refused_strangers;
            break;
        case Sealer::Verdict::other_epoch:
            ++counters_.refused_epoch;
            break;
        case Sealer::Verdict::malformed:
            ++counters_.refused_malformed;
            break;
        case Sealer::Verdict::ours:
            Remote& peer = peers_[opened.from];
            if (peer.state == Remote::State::lost) {
                break;
            }
            // It has a member's number, and another address than we were given.
            if (peer.state == Remote::State::absent ||
                opened.incarnation != peer.where.incarnation) {
                ++counters_.refused_strangers;
                break;
            }
            switch (opened.kind) {
                case Envelope::Kind::hello:
                    owe(opened.from, &Remote::owes_answer);
                    break;
                case Envelope::Kind::answer:
                    peer.has_answered = true;
                    settle(peer);
                    break;
                case Envelope::Kind::message:
                    ++counters_.messages_received;
                    events.on_message(opened.from, opened.message);
                    break;
                default:
                    ++counters_.refused_malformed;
            }
    }
    receive_again(operation);
}

void Libfabric::on_sent(Operation& operation) {
    Remote& peer = peers_[operation.peer];
    if (peer.state == Remote::State::greeting && kind_of(operation) == Envelope::Kind::answer) {
        peer.has_our_answer = true;
        settle(peer);
    }
    release(operation);
}

/// Both directions have been used: a unit that leaves `connect` owes no answer to those still in
/// it.
void Libfabric::settle(Remote& peer) {
    if (peer.state == Remote::State::greeting && peer.has_answered && peer.has_our_answer) {
        peer.state = Remote::State::connected;
    }
}

/// One of a write's parts is not under way any more; true: the write is done.
bool Libfabric::end_part(Operation& operation) {
    --operation.under_way;
    if (operation.waits || operation.under_way > 0) {
        return false;
    }
    release(operation);
    return peers_[operation.peer].state != Remote::State::lost;
}

/// If the provider tells whose operation failed, that unit is lost.
bool Libfabric::read_error() {
    fi_cq_err_entry error{};
    if (::fi_cq_readerr(endpoint_.queue().cq.get(), &error, 0) != 1) {
        return false;
    }
    Operation* operation = ours(error.op_context);
    if (operation == nullptr) {
        ++counters_.refused_malformed;
        return true;
    }
    switch (operation->kind) {
        case Operation::Kind::receive:
            if (error.err == FI_ETRUNC) {
                ++counters_.refused_malformed;
            }
            receive_again(*operation);
            break;
        case Operation::Kind::send: {
            Remote& peer = peers_[operation->peer];
            release(*operation);
            if (peer.state != Remote::State::greeting) {
                lose(operation->peer);
                break;
            }
            // It may not listen yet.
            owe(operation->peer, kind_of(*operation) == Envelope::Kind::hello
                                     ? &Remote::owes_hello
                                     : &Remote::owes_answer);
            return false;
        }
        case Operation::Kind::write:
            lose(operation->peer);
            end_part(*operation);
            break;
    }
    return true;
}

Operation* Libfabric::ours(void* context) {
    const auto at = reinterpret_cast<std::uintptr_t>(context);
    const auto first = reinterpret_cast<std::uintptr_t>(operations_.data());
    if (at < first || at >= first + operations_.size() * sizeof(Operation) ||
        (at - first) % sizeof(Operation) != 0) {
        return nullptr;
    }
    return reinterpret_cast<Operation*>(context);
}

// ---- waiting

void Libfabric::wait(base::Time until) {
    if (config_.waiting == Waiting::spinning || !earlier_.empty() || !lost_.empty() ||
        !to_self_.empty()) {
        return;
    }
    if (config_.waiting == Waiting::adaptive && now() - busy_at_ < polling_.length()) {
        is_polling_ = true;
        return;  // the caller polls for a while, and has other inputs to look at
    }
    is_polling_ = false;
    polling_.on_slept();
    ++counters_.sleeps;
    sleep(until);
}

void Libfabric::sleep(base::Time until) {
    const ofi::Queue& queue = endpoint_.queue();
    if (queue.fd < 0 || in_vain_ >= kMostInVain) {
        config_.doorbell->sleep(std::min(until, now() + kLook), [] { return true; });
        return;
    }
    const bool is_woken = config_.doorbell->sleep_with(queue.fd, until, [&queue] {
        fid* watched = &queue.cq->fid;
        return ::fi_trywait(queue.fabric.get(), &watched, 1) == FI_SUCCESS;
    });
    in_vain_ = is_woken ? in_vain_ + 1 : 0;  // not by the clock: it may have waited for a processor
}

}  // namespace

base::expected<std::unique_ptr<Transport>> make_libfabric(const TransportConfig& transport,
                                                          const LibfabricConfig& libfabric) {
    if (transport.self >= transport.units || transport.doorbell == nullptr) {
        return base::failure(
            fmt::format("cannot make unit {} of {}: it must be one of them and have a doorbell",
                        transport.self, transport.units));
    }
    std::size_t longest = 0;
    for (const auto& source : transport.sources) {
        longest = std::max(longest, source.size());
    }
    if (!libfabric.congestion_control.empty()) {
        if (auto ready = ofi::check_congestion_control(libfabric.congestion_control); !ready) {
            return tl::unexpected(ready.error());
        }
    }
    auto endpoint = ofi::Endpoint::open(libfabric, longest, transport.units);
    if (!endpoint) {
        return tl::unexpected(endpoint.error());
    }
    auto made = std::make_unique<Libfabric>(transport, libfabric, std::move(*endpoint));
    if (auto ready = made->prepare(); !ready) {
        return tl::unexpected(ready.error());
    }
    return made;
}

}  // namespace daqloom::live
