#include "live/transport/mpi/mpi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

enum Tag : int { kMessageTag, kStepTag };

constexpr std::uint64_t kMpiMagic = 0x3169706d'71616431;
constexpr std::size_t kStepRoom = sizeof(Envelope) + sizeof(mpi::Step);
constexpr std::size_t kSteps = 256;     ///< being sent
constexpr std::size_t kArrivals = 32;   ///< writes of others whose bytes come at the same time
constexpr std::size_t kPart = 4 << 20;  ///< limit on a request; a count of MPI has 31 bits
constexpr int kRecordsPerPoll = 64;
constexpr std::size_t kMostEarlier = 4096;

constexpr std::uint32_t kYields = 8;  ///< idle waits before naps
constexpr base::Time kShortestNap = base::microseconds(20);
constexpr base::Time kNapInTransfers = base::microseconds(50);
constexpr base::Time kLongestNap = base::milliseconds(1);
/// Limit on the time in which granted transfers end.
constexpr base::Time kMpiPatience = base::seconds(5);

struct MpiAddress {
    std::uint64_t magic = kMpiMagic;
    std::uint64_t incarnation = 0;
    std::uint64_t arena = 0;
    std::int64_t rank = 0;
};

}  // namespace

base::expected<std::unique_ptr<MpiTransport>> MpiTransport::create(const TransportConfig& config) {
    DAQLOOM_REFUSE_IF(config.doorbell == nullptr || config.self.value() >= config.units,
                      "unit {} of {} for MPI; expected a unit of the run, with a doorbell",
                      config.self.value(), config.units);
    DAQLOOM_TRY(world, mpi::World::join());
    DAQLOOM_TRY(incarnation, random_bits());
    return std::unique_ptr<MpiTransport>(new MpiTransport(config, *world, incarnation));
}

MpiTransport::MpiTransport(const TransportConfig& config, mpi::World& world,
                           std::uint64_t incarnation)
    : config_(config),
      world_(world),
      incarnation_(incarnation),
      sealer_(config.token, config.self, config.units, config.epoch, incarnation),
      arena_(config.arena != nullptr ? config.arena->bytes() : std::span<std::byte>()),
      peers_(config.units),
      loopback_(config.self, config.arena) {
    // Each unit has a share, so that a stuck unit does not block the others.
    const std::size_t others = std::max<std::size_t>(config.units, 2) - 1;
    message_share_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(512 / others, 2, 16));
    write_share_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(1024 / others, 1, 64));
    const std::size_t messages = message_share_ * others;
    const std::size_t writes = write_share_ * others;
    rooms_.resize(messages * mpi::World::most_record + kSteps * kStepRoom);
    operations_.resize(messages + kSteps + writes + kArrivals);
    requests_.reserve(operations_.size());
    writes_ = std::span(operations_).last(writes + kArrivals).first(writes);
    std::byte* room = rooms_.data();
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        Operation& operation = operations_[i];
        if (i < messages + kSteps) {
            const bool is_message = i < messages;
            operation.kind = is_message ? Operation::Kind::message : Operation::Kind::step;
            operation.room = room;
            room += is_message ? mpi::World::most_record : kStepRoom;
            (is_message ? free_messages_ : free_steps_).push_back(&operation);
        } else if (i < messages + kSteps + writes) {
            operation.kind = Operation::Kind::write;
            operation.slot = static_cast<std::uint32_t>(i - messages - kSteps);
            free_writes_.push_back(&operation);
        } else {
            operation.kind = Operation::Kind::arrival;
            free_arrivals_.push_back(&operation);
        }
    }
    // Steps of a write follow each other: one step a write, in each direction, and greetings.
    steps_.reserve(static_cast<std::uint32_t>(2 * writes + 2 * others));
    offers_.reserve(static_cast<std::uint32_t>(writes));
    lost_.reserve(config.units);
}

/// Completes the transfers that have been granted, because their memory may end with the transport.
MpiTransport::~MpiTransport() {
    const auto deadline = now() + kMpiPatience;
    const auto is_transfer = [](const Operation* operation) {
        return operation->kind == Operation::Kind::write ||
               operation->kind == Operation::Kind::arrival;
    };
    offers_.clear();
    post_steps();
    while (std::ranges::any_of(requests_.owners(), is_transfer)) {
        complete(earlier_);
        post_steps();
        if (now() > deadline) {
            fmt::print(stderr,
                       "unit {}: a transfer of MPI does not end, as its other rank has ended the "
                       "epoch; all ranks end\n",
                       config_.self.value());
            world_.library().abort();
        }
        std::this_thread::yield();
    }
    world_.keep(std::move(rooms_), std::move(requests_));
}

std::vector<std::byte> MpiTransport::address() const {
    const MpiAddress own{
        .incarnation = incarnation_, .arena = arena_.size(), .rank = world_.rank()};
    const auto bytes = std::as_bytes(std::span(&own, 1));
    return {bytes.begin(), bytes.end()};
}

base::expected<std::vector<UnitIndex>> MpiTransport::connect(std::span<const Transport::Peer> peers,
                                                             base::Time until) {
    std::vector<UnitIndex> silent;
    for (const auto& peer : peers) {
        MpiAddress address;
        if (peer.unit == config_.self) {
            continue;
        }
        if (!peers_.contains(peer.unit) || peer.address.size() != sizeof address) {
            silent.push_back(peer.unit);
            continue;
        }
        std::memcpy(&address, peer.address.data(), sizeof address);
        if (address.magic != kMpiMagic || address.rank < 0 || address.rank >= world_.ranks() ||
            address.rank == world_.rank()) {
            silent.push_back(peer.unit);
            continue;
        }
        mpi::Peer& made = peers_[peer.unit];
        made.state = mpi::Peer::State::greeting;
        made.rank = static_cast<int>(address.rank);
        made.incarnation = address.incarnation;
        made.arena = address.arena;
        queue(peer.unit, Envelope::Kind::hello, {});
    }
    const auto is_greeting = [](const mpi::Peer& peer) {
        return peer.state == mpi::Peer::State::greeting;
    };
    while (std::ranges::any_of(peers_, is_greeting) && now() < until) {
        const bool has_received = receive(earlier_);
        post_steps();
        complete(earlier_);
        if (!has_received) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }
    post_steps();
    for (const UnitIndex unit : peers_.indices()) {
        if (is_greeting(peers_[unit])) {
            peers_[unit].state = mpi::Peer::State::lost;
            silent.push_back(unit);
        }
    }
    std::ranges::sort(silent);
    return silent;
}

/// A unit to which records are sent; none: it is unreachable, which is or will be reported.
mpi::Peer* MpiTransport::reachable(UnitIndex unit) {
    mpi::Peer* const found = peers_.contains(unit) ? &peers_[unit] : nullptr;
    return found != nullptr && found->state == mpi::Peer::State::connected ? found : nullptr;
}

void MpiTransport::lose(UnitIndex unit) {
    if (std::exchange(peers_[unit].state, mpi::Peer::State::lost) != mpi::Peer::State::lost) {
        lost_.push_back(unit);
    }
}

void MpiTransport::refuse(UnitIndex unit) {
    ++counters_.refused_malformed;
    lose(unit);
}

// ---- sending

bool MpiTransport::send(UnitIndex to, std::span<const std::byte> bytes) {
    if (bytes.size() > most_message) {
        return false;
    }
    if (to == config_.self) {
        return loopback_.send(bytes, counters_);
    }
    mpi::Peer* const peer = reachable(to);
    if (peer == nullptr) {
        return true;
    }
    if (peer->messages == message_share_ || free_messages_.empty()) {
        return false;
    }
    Operation& operation = *free_messages_.back();
    free_messages_.pop_back();
    ++peer->messages;
    operation.peer = to;
    post_record(operation, Envelope::Kind::message, bytes);
    ++counters_.messages_sent;
    return true;
}

/// Messages are complete when their receiver takes them, which holds a fast sender back.
void MpiTransport::post_record(Operation& operation, Envelope::Kind kind,
                               std::span<const std::byte> content) {
    const bool is_message = operation.kind == Operation::Kind::message;
    const Envelope envelope = sealer_.seal(kind, operation.peer, content.size());
    std::memcpy(operation.room, &envelope, sizeof envelope);
    if (!content.empty()) {
        std::memcpy(operation.room + sizeof envelope, content.data(), content.size());
    }
    std::uint64_t request = 0;
    world_.library().send(mpi::records, operation.room,
                          static_cast<int>(sizeof envelope + content.size()),
                          peers_[operation.peer].rank, is_message ? kMessageTag : kStepTag,
                          is_message ? 1 : 0, &request);
    requests_.add(request, &operation);
}

void MpiTransport::post_steps() {
    while (!steps_.empty() && !free_steps_.empty()) {
        const QueuedStep queued = steps_.front();
        steps_.pop();
        Operation& operation = *free_steps_.back();
        free_steps_.pop_back();
        operation.peer = queued.to;
        post_record(operation, queued.kind, std::as_bytes(std::span(&queued.step, 1)));
    }
}

bool MpiTransport::write(const Write& write) {
    if (write.to == config_.self) {
        return loopback_.write(write, counters_);
    }
    mpi::Peer* const peer = reachable(write.to);
    if (peer == nullptr) {
        return true;
    }
    if (!write.is_inside(peer->arena)) {
        refuse(write.to);
        return true;
    }
    if (peer->writes == write_share_ || free_writes_.empty()) {
        return false;
    }
    Operation& operation = *free_writes_.back();
    free_writes_.pop_back();
    ++peer->writes;
    operation.peer = write.to;
    operation.is_granted = false;
    operation.is_done = false;
    operation.next = const_cast<std::byte*>(write.bytes.data());
    operation.left = write.bytes.size();
    operation.context = write.context;
    ++counters_.writes;
    counters_.written_bytes += write.bytes.size();
    queue(write.to, Envelope::Kind::message,
          {.kind = Step::Kind::offer,
           .slot = operation.slot,
           .offset = static_cast<std::uint64_t>(write.offset),
           .length = write.bytes.size(),
           .immediate = write.immediate});
    post_steps();
    return true;
}

/// Sends or receives the next part of a write.
void MpiTransport::post_part(Operation& operation) {
    const int count = static_cast<int>(std::min(operation.left, kPart));
    const int rank = peers_[operation.peer].rank;
    const int tag = static_cast<int>(operation.slot);
    std::uint64_t request = 0;
    if (operation.kind == Operation::Kind::write) {
        world_.library().send(mpi::payload, operation.next, count, rank, tag, 0, &request);
    } else {
        world_.library().receive(mpi::payload, operation.next, count, rank, tag, &request);
    }
    requests_.add(request, &operation);
    operation.next += count;
    operation.left -= static_cast<std::size_t>(count);
    operation.requests = 1;
}

// ---- receiving

bool MpiTransport::poll(TransportEvents& events) {
    bool something = loopback_.poll(events, counters_);
    something |= earlier_.replay(events);
    something |= receive(events);
    something |= complete(events);
    grant_offers(events);
    post_steps();
    something |= report_lost(lost_, events);
    idle_ = something ? 0 : idle_;
    return something;
}

bool MpiTransport::receive(TransportEvents& events) {
    int count = 0;
    for (; count < kRecordsPerPoll && earlier_.size() < kMostEarlier && world_.look(); ++count) {
        take(world_.oldest(), events);
        world_.drop_oldest();
    }
    return count != 0;
}

void MpiTransport::take(const mpi::Record& record, TransportEvents& events) {
    const Sealer::Contents opened = sealer_.open(record.bytes);
    if (opened.verdict != Sealer::Verdict::ours) {
        ++Sealer::counter_of(opened.verdict, counters_);
        return;
    }
    mpi::Peer& peer = peers_[opened.from];
    if (peer.incarnation != opened.incarnation || peer.rank != record.from) {
        ++counters_.refused_strangers;  // of another transport, such as that of an epoch before
        return;
    }
    if (peer.state == mpi::Peer::State::lost) {
        return;
    }
    Step step;
    if (opened.kind == Envelope::Kind::hello) {
        queue(opened.from, Envelope::Kind::answer, {});
    } else if (opened.kind == Envelope::Kind::answer) {
        peer.state = mpi::Peer::State::connected;
    } else if (record.tag == kMessageTag) {
        ++counters_.messages_received;
        events.on_message(opened.from, opened.message);
    } else if (opened.message.size() == sizeof step) {
        std::memcpy(&step, opened.message.data(), sizeof step);
        take(opened.from, step, events);
    } else {
        refuse(opened.from);
    }
}

void MpiTransport::take(UnitIndex from, const Step& step, TransportEvents& events) {
    mpi::Peer& peer = peers_[from];
    if (step.kind == Step::Kind::offer) {
        if (step.offset > arena_.size() || step.length > arena_.size() - step.offset ||
            step.slot >= writes_.size() || peer.offers == write_share_) {
            return refuse(from);
        }
        ++peer.offers;
        offers_.push({from, step});
        return;
    }
    Operation* const write = step.slot < writes_.size() ? &writes_[step.slot] : nullptr;
    if (write == nullptr || write->peer != from) {
        return refuse(from);
    }
    if (step.kind == Step::Kind::grant && !write->is_granted && write->left > 0) {
        write->is_granted = true;
        post_part(*write);
    } else if (step.kind == Step::Kind::done && write->left == 0 && !write->is_done) {
        write->is_done = true;
        if (write->requests == 0) {
            finish(*write, events);
        }
    } else {
        refuse(from);
    }
}

/// Posts receives for the writes offered first.
void MpiTransport::grant_offers(TransportEvents& events) {
    while (!offers_.empty() && !free_arrivals_.empty()) {
        const Offer offer = offers_.front();
        offers_.pop();
        --peers_[offer.from].offers;
        if (offer.step.length == 0) {
            ++counters_.writes_received;
            queue(offer.from, Envelope::Kind::message,
                  {.kind = Step::Kind::done, .slot = offer.step.slot});
            events.on_written(offer.from, offer.step.immediate);
            continue;
        }
        Operation& arrival = *free_arrivals_.back();
        free_arrivals_.pop_back();
        arrival.peer = offer.from;
        arrival.slot = offer.step.slot;
        arrival.immediate = offer.step.immediate;
        arrival.next = arena_.data() + offer.step.offset;
        arrival.left = offer.step.length;
        post_part(arrival);
        queue(offer.from, Envelope::Kind::message,
              {.kind = Step::Kind::grant, .slot = arrival.slot});
    }
}

bool MpiTransport::complete(TransportEvents& events) {
    bool something = false;
    for (Operation* const operation : requests_.complete(world_.library())) {
        something = true;
        operation->requests = 0;
        if (operation->kind == Operation::Kind::message) {
            --peers_[operation->peer].messages;
            free_messages_.push_back(operation);
        } else if (operation->kind == Operation::Kind::step) {
            free_steps_.push_back(operation);
        } else if (operation->left > 0) {
            post_part(*operation);
        } else if (operation->kind == Operation::Kind::arrival) {
            free_arrivals_.push_back(operation);
            ++counters_.writes_received;
            queue(operation->peer, Envelope::Kind::message,
                  {.kind = Step::Kind::done, .slot = operation->slot});
            events.on_written(operation->peer, operation->immediate);
        } else if (operation->is_done) {
            finish(*operation, events);
        }
    }
    return something;
}

void MpiTransport::finish(Operation& write, TransportEvents& events) {
    --peers_[write.peer].writes;
    write.peer = UnitIndex::none();
    free_writes_.push_back(&write);
    events.on_write_done(write.context);
}

// ---- waiting

void MpiTransport::wait(base::Time until) {
    if (config_.waiting == Waiting::spinning) {
        return;
    }
    const std::uint32_t yields = config_.waiting == Waiting::adaptive ? kYields : 0;
    if (++idle_ <= yields) {
        std::this_thread::yield();
        return;
    }
    const base::Time longest = requests_.empty() ? kLongestNap : kNapInTransfers;
    const std::uint32_t doublings = std::min<std::uint32_t>(idle_ - yields - 1, 6);
    const base::Time nap = std::min(longest, kShortestNap * (std::int64_t{1} << doublings));
    config_.doorbell->sleep(std::min(until, now() + nap), [this] {
        const bool quiet = loopback_.empty() && !world_.look();
        counters_.sleeps += quiet ? 1 : 0;
        return quiet;
    });
}

}  // namespace daqloom::live
