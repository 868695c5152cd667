#include "live/transport/shm/shm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/ring.hpp"
#include "live/memory/clock.hpp"
#include "live/memory/copy.hpp"
#include "live/memory/epoll.hpp"
#include "live/transport/envelope.hpp"

namespace daqloom::live {

namespace {

enum Kind : std::uint32_t { kMessage = 1, kWritten = 2 };

/// Limits of one poll, so that messages wait a few microseconds at most for copies. With 256 KiB,
/// the answer of a builder unit that sets the pace took twice as long.
constexpr int kRecordsPerUnit = 64;
constexpr base::Bytes kCopiedPerPoll = 64 << 10;
constexpr base::Bytes kCostOfWrite = 4096;  ///< in bytes of copying, added to its size

/// Number of polls between two checks of the sockets, because each check is a system call.
constexpr std::uint64_t kPollsPerLook = 1024;
constexpr base::Time kTimePerLook = base::milliseconds(20);

constexpr std::uint64_t kConnectorKey = ~std::uint64_t{0};

base::expected<std::string> random_name() {
    DAQLOOM_TRY(high, random_bits());
    DAQLOOM_TRY(low, random_bits());
    return fmt::format("daqloom/{:016x}{:016x}", high, low);
}

}  // namespace

/// A connected unit. This unit is included: it is a peer of itself, with its own ring, doorbell and
/// arena.
struct ShmTransport::Unit {
    UnitIndex index;
    std::optional<ShmPeer> peer;  ///< none: this unit
    MessageRingWriter out;
    MessageRingReader in;
    const Doorbell* doorbell;
    std::span<std::byte> arena;
    base::Ring<Write> writes;
    std::size_t copied = 0;  ///< bytes copied of the first of `writes`
    bool starved = false;    ///< a message or notification did not fit into `out`
    bool bell_due = false;
    bool is_gone = false;  ///< hung up; its earlier messages are still read
    bool is_lost = false;
};

base::expected<std::unique_ptr<ShmTransport>> ShmTransport::create(const TransportConfig& config,
                                                                   const ShmConfig& shm) {
    DAQLOOM_REFUSE_IF(config.doorbell == nullptr || config.self.value() >= config.units,
                      "unit {} of {} for shared memory; expected a unit of the run, with a "
                      "doorbell",
                      config.self.value(), config.units);
    DAQLOOM_REFUSE_IF(shm.ring_bytes < 2 * most_message ||
                          (shm.ring_bytes & (shm.ring_bytes - 1)) != 0 || shm.writes == 0,
                      "a ring of {} bytes for messages and room for {} writes; expected a power "
                      "of two from {} on, and 1 or more",
                      shm.ring_bytes, shm.writes, 2 * most_message);
    DAQLOOM_TRY(name, random_name());
    DAQLOOM_TRY(listener, HandoverListener::listen(name));
    OwnedFd sockets(::epoll_create1(EPOLL_CLOEXEC));
    if (!sockets) {
        return base::system_failure(fmt::format("cannot watch sockets: {}", std::strerror(errno)));
    }
    return std::unique_ptr<ShmTransport>(
        new ShmTransport(config, shm, std::move(name), std::move(listener), std::move(sockets)));
}

ShmTransport::ShmTransport(const TransportConfig& config, const ShmConfig& shm, std::string name,
                           HandoverListener listener, OwnedFd sockets)
    : config_(config),
      shm_(shm),
      name_(std::move(name)),
      listener_(std::move(listener)),
      sockets_(std::move(sockets)),
      by_index_(config.units) {
    lost_.reserve(config.units);
}

ShmTransport::~ShmTransport() { ring_due(); }

std::vector<std::byte> ShmTransport::address() const {
    const auto bytes = std::as_bytes(std::span(name_));
    return {bytes.begin(), bytes.end()};
}

base::expected<std::vector<UnitIndex>> ShmTransport::connect(std::span<const Peer> peers,
                                                             base::Time until) {
    const base::Bytes ring_bytes = message_ring_bytes(shm_.ring_bytes);
    DAQLOOM_TRY(own_ring, SharedMemory::create("daqloom-ring", ring_bytes));
    own_ring_ = std::move(own_ring);
    DAQLOOM_TRY(connected,
                connect_peers({config_, name_, ring_bytes, listener_, counters_}, peers, until));
    for (const UnitIndex index : by_index_.indices()) {
        auto& peer = connected[index];
        if (!peer && index != config_.self) {
            continue;
        }
        const auto own_arena =
            config_.arena != nullptr ? config_.arena->bytes() : std::span<std::byte>{};
        auto unit = std::make_unique<Unit>(Unit{
            .index = index,
            .peer = std::move(peer),
            .out = MessageRingWriter(own_ring_.bytes()),
            .in = MessageRingReader(own_ring_.bytes(), most_message),
            .doorbell = config_.doorbell,
            .arena = own_arena,
            .writes = {},
        });
        unit->writes.reserve(shm_.writes);
        if (unit->peer) {
            unit->out = MessageRingWriter(unit->peer->outgoing.bytes());
            unit->in = MessageRingReader(unit->peer->incoming.bytes(), most_message);
            unit->doorbell = &unit->peer->doorbell;
            unit->arena = unit->peer->arena.bytes();
            if (!watch(sockets_.get(), unit->peer->to.fd(), EPOLLRDHUP, index.value())) {
                return base::system_failure(
                    fmt::format("cannot watch unit {}: {}", index.value(), std::strerror(errno)));
            }
        }
        by_index_[index] = unit.get();
        units_.push_back(std::move(unit));
    }
    if (!watch(sockets_.get(), listener_.fd(), EPOLLIN, kConnectorKey)) {
        return base::system_failure(
            fmt::format("cannot watch {}: {}", name_, std::strerror(errno)));
    }
    std::vector<UnitIndex> missing;
    for (const auto& peer : peers) {
        if (!by_index_.contains(peer.unit) || by_index_[peer.unit] == nullptr) {
            missing.push_back(peer.unit);
        }
    }
    return missing;
}

/// The connection to a unit; none: the unit is unreachable, which is or will be reported.
ShmTransport::Unit* ShmTransport::reachable(UnitIndex unit) {
    Unit* found = by_index_.contains(unit) ? by_index_[unit] : nullptr;
    return found == nullptr || found->is_lost ? nullptr : found;
}

void ShmTransport::lose(Unit& unit) {
    if (!unit.is_lost) {
        unit.is_lost = true;
        lost_.push_back(unit.index);
        writes_under_way_ -= unit.writes.size();
        unit.writes.clear();
    }
}

void ShmTransport::refuse(Unit& unit) {
    ++counters_.refused_malformed;
    lose(unit);
}

void ShmTransport::ring(Unit& unit) {
    unit.bell_due = true;
    bells_due_ = true;
}

/// Rings each due doorbell once, for all messages since the last ring.
void ShmTransport::ring_due() {
    if (std::exchange(bells_due_, false)) {
        for (const auto& unit : units_) {
            if (std::exchange(unit->bell_due, false) && unit->index != config_.self) {
                unit->doorbell->ring();
            }
        }
    }
}

bool ShmTransport::put(Unit& unit, std::uint32_t kind, std::span<const std::byte> bytes) {
    switch (unit.out.put(kind, bytes)) {
        case MessageRingWriter::Put::done:
            ring(unit);
            return true;
        case MessageRingWriter::Put::no_room:
            unit.starved = true;
            return false;
        case MessageRingWriter::Put::broken:
            refuse(unit);
            return false;
    }
    return false;
}

bool ShmTransport::send(UnitIndex to, std::span<const std::byte> bytes) {
    Unit* unit = reachable(to);
    if (unit == nullptr || bytes.size() > most_message) {
        return unit == nullptr;
    }
    if (!put(*unit, kMessage, bytes)) {
        return unit->is_lost;
    }
    ++counters_.messages_sent;
    return true;
}

bool ShmTransport::write(const Write& write) {
    Unit* unit = reachable(write.to);
    if (unit == nullptr) {
        return true;
    }
    if (unit->writes.size() == shm_.writes) {
        return false;
    }
    if (!write.is_inside(unit->arena.size())) {
        refuse(*unit);
        return true;
    }
    unit->writes.push(write);
    ++writes_under_way_;
    return true;
}

bool ShmTransport::poll(TransportEvents& events) {
    if (++polls_ % kPollsPerLook == 0) {
        poll_sockets();
    }
    bool something = false;
    for (const auto& unit : units_) {
        something |= !unit->is_lost && receive(*unit, events);
        if (unit->starved && unit->out.has_room()) {
            unit->starved = false;
            something = true;
        }
    }
    ring_due();
    something |= writes_under_way_ != 0 && copy_some(events);
    something |= report_lost(lost_, events);
    ring_due();
    return something;
}

bool ShmTransport::receive(Unit& unit, TransportEvents& events) {
    using Got = MessageRingReader::Got;
    MessageRingReader::Record record;
    int records = 0;
    Got got = Got::nothing;
    while (records < kRecordsPerUnit && !unit.is_lost &&
           (got = unit.in.next(record)) == Got::record) {
        ++records;
        if (record.kind == kMessage) {
            ++counters_.messages_received;
            events.on_message(unit.index, record.bytes);
        } else if (record.kind == kWritten && record.bytes.size() == sizeof(std::uint32_t)) {
            std::uint32_t immediate = 0;
            std::memcpy(&immediate, record.bytes.data(), sizeof immediate);
            ++counters_.writes_received;
            events.on_written(unit.index, immediate);
        } else {
            refuse(unit);
        }
    }
    if (got == Got::broken) {
        refuse(unit);
    } else if (got == Got::nothing && unit.is_gone) {
        lose(unit);
    }
    if (records != 0 && unit.in.release()) {
        ring(unit);
    }
    return records != 0;
}

/// Copies a bounded part of the writes under way: whole writes in turn, so that each is done soon.
bool ShmTransport::copy_some(TransportEvents& events) {
    base::Bytes budget = kCopiedPerPoll;
    std::size_t idle = 0;
    bool something = false;
    while (budget > 0 && idle < units_.size()) {
        Unit& unit = *units_[turn_];
        const bool copied = !unit.writes.empty() && copy_some(unit, budget, events);
        something |= copied;
        idle = copied ? 0 : idle + 1;
        if (unit.copied == 0 || !copied) {
            turn_ = (turn_ + 1) % units_.size();
        }
    }
    return something;
}

/// Copies from the unit's first write. False: all is copied, but the other unit's ring is full.
bool ShmTransport::copy_some(Unit& unit, base::Bytes& budget, TransportEvents& events) {
    const Write write = unit.writes.front();
    const std::size_t piece =
        std::min(write.bytes.size() - unit.copied, static_cast<std::size_t>(budget));
    copy(unit.arena.data() + write.offset + unit.copied, write.bytes.data() + unit.copied, piece);
    unit.copied += piece;
    budget -= static_cast<base::Bytes>(piece);
    if (unit.copied < write.bytes.size()) {
        return true;
    }
    fence_copies();
    if (!put(unit, kWritten, std::as_bytes(std::span(&write.immediate, 1)))) {
        return piece != 0;
    }
    budget -= kCostOfWrite;
    unit.copied = 0;
    unit.writes.pop();
    --writes_under_way_;
    ++counters_.writes;
    counters_.written_bytes += static_cast<base::Bytes>(write.bytes.size());
    events.on_write_done(write.context);
    return true;
}

/// Detects peers that are gone. Closes and counts new connections, which are late or a stranger's:
/// at most one per call, because no member waits for this.
void ShmTransport::poll_sockets() {
    std::array<epoll_event, 16> ends{};
    const int count = ::epoll_wait(sockets_.get(), ends.data(), ends.size(), 0);
    for (const auto& end : std::span(ends).first(static_cast<std::size_t>(std::max(count, 0)))) {
        if (end.data.u64 == kConnectorKey) {
            const std::uint64_t before = listener_.refused();
            const bool came = listener_.accept(now()).has_value();
            counters_.refused_strangers += listener_.refused() - before + (came ? 1 : 0);
        } else {
            Unit& unit = *by_index_[UnitIndex(static_cast<std::uint32_t>(end.data.u64))];
            unit.is_gone = true;
            ::epoll_ctl(sockets_.get(), EPOLL_CTL_DEL, unit.peer->to.fd(), nullptr);
        }
    }
}

bool ShmTransport::is_quiet() const {
    if (!lost_.empty()) {
        return false;
    }
    for (const auto& unit : units_) {
        const bool can_copy = !unit->writes.empty() && !unit->starved;
        if (!unit->is_lost && (unit->is_gone || !unit->in.is_empty() || can_copy ||
                               (unit->starved && unit->out.has_room()))) {
            return false;
        }
    }
    return true;
}

base::Time ShmTransport::prepare_wait() {
    ring_due();
    if (const base::Time time = now(); time >= next_look_) {
        poll_sockets();
        next_look_ = time + kTimePerLook;
    }
    return next_look_;
}

void ShmTransport::wait(base::Time until) {
    if (config_.waiting == Waiting::spinning) {
        ring_due();
        return;
    }
    prepare_wait();
    if (config_.waiting == Waiting::adaptive && polling_.length() > base::Time::zero()) {
        base::Time time = now();
        const base::Time end = std::min(until, time + polling_.length());
        bool is_there = false;
        while (time < end && !is_there) {
            pause_a_little();
            is_there = config_.doorbell->was_rung() || !is_quiet();
            time = now();
        }
        is_there ? polling_.on_found() : polling_.on_slept();
    } else {
        polling_.on_slept();
    }
    config_.doorbell->sleep(std::min(until, next_look_), [this] {
        const bool quiet = is_quiet();
        counters_.sleeps += quiet ? 1 : 0;
        return quiet;
    });
}

}  // namespace daqloom::live
