#include "live/memory/fan_out.hpp"

#include <algorithm>
#include <utility>

#include "live/memory/clock.hpp"

namespace daqloom::live {

FanOut::FanOut(Buffer& buffer, const Doorbell& bell, FanOutConfig config, FanOutCounters& counters)
    : buffer_(buffer),
      bell_(bell),
      config_(config),
      counters_(counters),
      reader_(buffer),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

FanOut::~FanOut() {
    finish();
    for (auto& consumer : consumers_) {
        if (consumer) {
            consumer->writer.close();
        }
    }
}

void FanOut::finish() {
    thread_.request_stop();
    bell_.ring();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void FanOut::run(const std::stop_token& stop) {
    while (true) {
        const bool is_last = stop.stop_requested();
        {
            const std::lock_guard lock(mutex_);
            if (turn()) {
                continue;
            }
        }
        if (is_last) {
            break;
        }
        const bool has_limit = config_.patience > base::Time::zero();
        bell_.sleep(has_limit ? now() + config_.patience / 4 : base::Time::never(),
                    [&] { return !reader_.has_next() && !stop.stop_requested(); });
    }
}

base::expected<const Buffer*> FanOut::admit(std::size_t slot, pid_t /*peer*/) {
    DAQLOOM_TRY(buffer, Buffer::create_beside(buffer_, &bell_));
    const std::lock_guard lock(mutex_);
    Consumer& consumer = consumers_[slot].emplace(std::move(buffer));
    counters_.attached.add(1);
    bell_.ring();
    return &consumer.buffer;
}

void FanOut::leave(std::size_t slot) {
    const std::lock_guard lock(mutex_);
    revoke(slot);
    consumers_[slot].reset();
    bell_.ring();
}

bool FanOut::turn() {
    bool did = false;
    for (auto piece = reader_.next(); piece; piece = reader_.next(), did = true) {
        unassigned_.insert(first_ + pieces_.size());
        pieces_.push_back({*piece});
    }
    const base::Time here = now();
    for (std::size_t slot = 0; slot < consumers_.size(); ++slot) {
        did |= collect(slot, here);
    }
    assign();
    for (; !pieces_.empty() && pieces_.front().is_acknowledged && pieces_.front().holders == 0;
         ++first_, did = true) {
        reader_.acknowledge();
        pieces_.pop_front();
    }
    return did;
}

/// Collects the acknowledgements of a consumer. Revokes one that is out of patience, or whose count
/// is impossible. False: nothing has changed.
bool FanOut::collect(std::size_t slot, base::Time now) {
    auto& consumer = consumers_[slot];
    if (!consumer || consumer->is_revoked) {
        return false;
    }
    const std::uint64_t count = consumer->writer.acknowledged();
    const bool is_possible = count - consumer->acknowledged <= consumer->held.size();
    const bool is_stuck = config_.patience > base::Time::zero() && !consumer->held.empty() &&
                          count == consumer->acknowledged &&
                          now - consumer->since > config_.patience;
    if (is_stuck || !is_possible) {
        revoke(slot);
        counters_.revoked.add(1);
        return true;
    }
    const bool did = count != consumer->acknowledged;
    take_back(slot, count, now);
    return did;
}

void FanOut::take_back(std::size_t slot, std::uint64_t acknowledged, base::Time now) {
    Consumer& consumer = *consumers_[slot];
    for (; consumer.acknowledged != acknowledged && !consumer.held.empty();
         ++consumer.acknowledged) {
        Held& piece = held(consumer.held.front());
        consumer.held.pop_front();
        --piece.holders;
        piece.is_acknowledged = true;
        consumer.since = now;
        counters_.acknowledged[slot].add(1);
    }
}

/// Ends a consumer's side. Pieces that it alone has held are assigned again.
void FanOut::revoke(std::size_t slot) {
    auto& consumer = consumers_[slot];
    if (!consumer || std::exchange(consumer->is_revoked, true)) {
        return;
    }
    if (const std::uint64_t count = consumer->writer.revoke();
        count - consumer->acknowledged <= consumer->held.size()) {
        take_back(slot, count, base::Time::zero());
    }
    counters_.returned[slot].add(consumer->held.size());
    for (const std::uint64_t number : consumer->held) {
        Held& piece = held(number);
        if (--piece.holders == 0 && !piece.is_acknowledged) {
            unassigned_.insert(number);
        }
    }
    consumer->held.clear();
}

/// Gives unassigned pieces, oldest first, to the consumer with the fewest, or to all.
void FanOut::assign() {
    while (!unassigned_.empty()) {
        const std::uint64_t number = *unassigned_.begin();
        Consumer* least = nullptr;
        for (auto& consumer : consumers_) {
            if (!consumer || consumer->is_revoked) {
                continue;
            }
            if (config_.is_shared) {
                give(*consumer, number);
            } else if (least == nullptr || consumer->held.size() < least->held.size()) {
                least = &*consumer;
            }
        }
        if (least != nullptr) {
            give(*least, number);
        }
        if (held(number).holders == 0) {
            return;  // no consumer, or rings without space
        }
        unassigned_.erase(unassigned_.begin());
    }
}

void FanOut::give(Consumer& consumer, std::uint64_t number) {
    Held& here = held(number);
    const base::Bytes offset = here.piece.bytes.data() - buffer_.area().bytes().data();
    if (consumer.writer.put(here.piece.tag, offset,
                            static_cast<base::Bytes>(here.piece.bytes.size()))) {
        consumer.since = consumer.held.empty() ? now() : consumer.since;
        consumer.held.push_back(number);
        ++here.holders;
    }
}

}  // namespace daqloom::live
