#include "live/transport/checksums.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.hpp"

namespace daqloom::live {

namespace {

constexpr std::size_t kWritesToConfirm = 1024;  ///< limit on writes without confirmation
constexpr std::uint32_t kMostDamagedWrites = 16;

template <class Content>
std::optional<Content> content_of(std::span<const std::byte> bytes) {
    Content content;
    if (bytes.size() != sizeof content) {
        return std::nullopt;
    }
    std::memcpy(&content, bytes.data(), sizeof content);
    return content;
}

template <class Value>
std::span<const std::byte> bytes_of(const Value& value) {
    return std::as_bytes(std::span(&value, 1));
}

}  // namespace

CheckedTransport::CheckedTransport(const TransportConfig& config, std::unique_ptr<Transport> inner)
    : self_(config.self),
      arena_(config.arena != nullptr ? config.arena->bytes() : std::span<std::byte>()),
      inner_(std::move(inner)),
      slots_(kWritesToConfirm),
      is_lost_(config.units),
      damaged_in_a_row_(config.units) {
    for (std::uint64_t slot = kWritesToConfirm; slot > 0; --slot) {
        free_.push_back(slot - 1);
    }
}

// ---- out ----------------------------------------------------------------------------------------

std::span<const std::byte> CheckedTransport::sealed(Kind kind, std::span<const std::byte> bytes) {
    const Tail tail{.kind = kind, .checksum = base::crc32c(bytes, base::crc32c(bytes_of(kind)))};
    sealed_.assign(bytes.begin(), bytes.end());
    const auto end = bytes_of(tail);
    sealed_.insert(sealed_.end(), end.begin(), end.end());
    return sealed_;
}

/// Sends waiting messages first, because messages to a unit must arrive in order.
bool CheckedTransport::send(UnitIndex to, std::span<const std::byte> bytes) {
    if (is_lost_[to.value()]) {
        return true;
    }
    return bytes.size() + sizeof(Tail) <= most_message && post_all() &&
           inner_->send(to, sealed(Kind::message, bytes));
}

template <class Content>
void CheckedTransport::post(UnitIndex to, Kind kind, const Content& content) {
    const bool is_first = post_all();
    const auto message = sealed(kind, bytes_of(content));
    if (!is_first || !inner_->send(to, message)) {
        queued_.push_back({to, {message.begin(), message.end()}});
    }
}

bool CheckedTransport::post_all() {
    while (!queued_.empty() && inner_->send(queued_.front().to, queued_.front().bytes)) {
        queued_.pop_front();
    }
    return queued_.empty();
}

bool CheckedTransport::write(const Write& write) {
    if (is_lost_[write.to.value()]) {
        return true;
    }
    if (free_.empty()) {
        return false;
    }
    const std::uint64_t slot = free_.back();
    slots_[slot] = {.write = write, .is_taken = true, .is_confirmed = write.to == self_};
    if (!give(slot)) {
        slots_[slot].is_taken = false;
        return false;
    }
    free_.pop_back();
    return true;
}

/// Passes a write and its check to the transport. False: the transport has no space now.
bool CheckedTransport::give(std::uint64_t slot) {
    Slot& given = slots_[slot];
    Write write = given.write;
    write.context = slot;
    if (!inner_->write(write)) {
        return false;
    }
    ++given.under_way;
    if (write.to != self_) {
        post(write.to, Kind::check,
             Check{.offset = static_cast<std::uint64_t>(write.offset),
                   .length = write.bytes.size(),
                   .immediate = write.immediate,
                   .checksum = base::crc32c(write.bytes),
                   .slot = slot});
    }
    return true;
}

void CheckedTransport::on_write_done(std::uint64_t context) {
    if (context < slots_.size() && slots_[context].under_way > 0) {
        --slots_[context].under_way;
        finish(context);
    }
}

void CheckedTransport::on_verdict(UnitIndex from, const Verdict& verdict) {
    if (verdict.slot >= slots_.size() || !slots_[verdict.slot].is_taken ||
        slots_[verdict.slot].write.to != from) {
        return;
    }
    Slot& slot = slots_[verdict.slot];
    if (verdict.is_right != 0) {
        slot.is_confirmed = true;
        std::erase(to_repeat_, verdict.slot);
        finish(verdict.slot);
        return;
    }
    ++writes_repeated_;
    if (!give(verdict.slot)) {
        to_repeat_.push_back(verdict.slot);
    }
}

void CheckedTransport::finish(std::uint64_t slot) {
    Slot& done = slots_[slot];
    if (done.is_confirmed && done.under_way == 0 && std::exchange(done.is_taken, false)) {
        free_.push_back(slot);
        events_->on_write_done(done.write.context);
    }
}

// ---- in -----------------------------------------------------------------------------------------

void CheckedTransport::on_message(UnitIndex from, std::span<const std::byte> bytes) {
    if (is_lost_[from.value()]) {
        return;
    }
    Tail tail;
    const std::size_t length = std::max(bytes.size(), sizeof tail) - sizeof tail;
    const auto content = bytes.first(length);
    if (bytes.size() >= sizeof tail) {
        std::memcpy(&tail, bytes.data() + length, sizeof tail);
    }
    if (bytes.size() < sizeof tail ||
        tail.checksum != base::crc32c(content, base::crc32c(bytes_of(tail.kind)))) {
        ++damaged_records_;
        lose(from);
        return;
    }
    if (tail.kind == Kind::message) {
        events_->on_message(from, content);
    } else if (const auto verdict = content_of<Verdict>(content);
               verdict && tail.kind == Kind::verdict) {
        on_verdict(from, *verdict);
    } else if (const auto check = content_of<Check>(content); check && tail.kind == Kind::check) {
        const auto written = std::ranges::find(arrived_, check->immediate);
        if (written == arrived_.end()) {
            announced_.push_back({from, *check});
        } else {
            arrived_.erase(written);
            judge(from, *check);
        }
    }
}

void CheckedTransport::on_written(UnitIndex from, std::uint32_t immediate) {
    if (from == self_) {
        events_->on_written(from, immediate);
        return;
    }
    const auto known = std::ranges::find_if(
        announced_, [&](const Announcement& each) { return each.check.immediate == immediate; });
    if (known == announced_.end()) {
        arrived_.push_back(immediate);
        return;
    }
    const Announcement announced = *known;
    announced_.erase(known);
    judge(announced.from, announced.check);
}

void CheckedTransport::judge(UnitIndex from, const Check& check) {
    const bool is_inside =
        check.length <= arena_.size() && check.offset <= arena_.size() - check.length;
    const bool is_right =
        is_inside && base::crc32c(arena_.subspan(check.offset, check.length)) == check.checksum;
    std::uint32_t& damaged = damaged_in_a_row_[from.value()];
    damaged = is_right ? 0 : damaged + 1;
    damaged_writes_ += is_right ? 0 : 1;
    if (damaged == kMostDamagedWrites) {
        lose(from);
        return;
    }
    post(from, Kind::verdict, Verdict{.slot = check.slot, .is_right = is_right ? 1U : 0U});
    if (is_right) {
        events_->on_written(from, check.immediate);
    }
}

void CheckedTransport::lose(UnitIndex unit) {
    if (!is_lost_[unit.value()]) {
        is_lost_[unit.value()] = true;
        std::erase_if(queued_, [&](const QueuedMessage& queued) { return queued.to == unit; });
        events_->on_unreachable(unit);
    }
}

void CheckedTransport::on_unreachable(UnitIndex unit) { lose(unit); }

bool CheckedTransport::poll(TransportEvents& events) {
    events_ = &events;
    bool did = inner_->poll(*this);
    const std::size_t waiting = queued_.size();
    post_all();
    did |= queued_.size() != waiting;
    did |= std::erase_if(to_repeat_, [&](std::uint64_t slot) {
               return is_lost_[slots_[slot].write.to.value()] || give(slot);
           }) > 0;
    const TransportCounters& inner = inner_->counters();
    TransportCounters::each(
        [&](const char*, auto member, const char*) { (counters_.*member).set(inner.*member); });
    counters_.damaged_records.set(damaged_records_ + inner.damaged_records);
    counters_.damaged_writes.set(damaged_writes_ + inner.damaged_writes);
    counters_.writes_repeated.set(writes_repeated_ + inner.writes_repeated);
    return did;
}

}  // namespace daqloom::live
