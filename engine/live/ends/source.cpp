#include "live/ends/source.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

/// Time to wait for free space of a quarter of the buffer; afterwards, any space is enough.
constexpr base::Time kBatchWait = base::milliseconds(10);

}  // namespace

void Source::start(std::uint64_t first_mfp) {
    stop();
    // The writer is made here, so that the buffer is open again when `start` returns.
    thread_.start([this, first_mfp, writer = BufferWriter(*buffer_)](
                      const std::stop_token& stop) mutable { run(stop, first_mfp, writer); });
}

void Source::sleep(base::Time until, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const std::chrono::nanoseconds since_boot(until.ps / 1'000);
    wake_.wait_until(lock, stop, std::chrono::steady_clock::time_point(since_boot),
                     [] { return false; });
}

void Source::run(const std::stop_token& stop, std::uint64_t first_mfp, BufferWriter& writer) {
    const std::stop_callback wake(stop, [this] { buffer_->writer_bell().ring(); });
    const double interval = config_.mfps_per_second > 0 ? 1 / config_.mfps_per_second : 0;
    base::Time begin = now();
    for (std::uint64_t mfp = first_mfp; !stop.stop_requested(); ++mfp) {
        const auto elapsed = static_cast<double>(mfp - first_mfp) * interval;
        const base::Time due = begin + base::Time::from_seconds(elapsed);
        if (interval > 0 && now() < due) {
            sleep(due, stop);
        }
        const std::uint64_t blocked_before = counters_.blocked;
        const MfpFeed::Fed fed = feed(mfp, writer, stop);
        next_mfp_ = fed == MfpFeed::Fed::no_room ? mfp : mfp + 1;
        const base::Time behind = now() - due;
        if (counters_.blocked != blocked_before) {
            begin += behind;
        } else if (interval > 0 && behind > base::Time::from_seconds(interval)) {
            ++counters_.late;
        }
    }
}

MfpFeed::Fed Source::feed(std::uint64_t mfp, BufferWriter& writer, const std::stop_token& stop) {
    bool is_blocked = false;
    while (!stop.stop_requested()) {
        const std::uint64_t acknowledged = writer.acknowledged();
        const MfpFeed::Fed fed = feed_->feed(mfp, writer);
        if (fed == MfpFeed::Fed::done) {
            ++counters_.mfps;
        }
        if (fed != MfpFeed::Fed::no_room) {
            counters_.skipped.set(feed_->skipped());
            return fed;
        }
        counters_.blocked += is_blocked ? 0 : 1;
        is_blocked = true;
        wait_for_room(writer, acknowledged, stop);
    }
    return MfpFeed::Fed::no_room;
}

/// Waits until a quarter of the used space is free, to wake less often; after a while, until any
/// space is free, because the reader may be waiting for more data.
void Source::wait_for_room(const BufferWriter& writer, std::uint64_t acknowledged,
                           const std::stop_token& stop) const {
    const std::uint64_t some = std::max<std::uint64_t>((writer.committed() - acknowledged) / 4, 1);
    for (const auto& [count, until] : {std::pair(acknowledged + some, now() + kBatchWait),
                                       std::pair(acknowledged + 1, base::Time::never())}) {
        writer.ring_at(count);
        buffer_->writer_bell().sleep(until, [&, next = count] {
            return writer.acknowledged() < next && !stop.stop_requested();
        });
        if (writer.acknowledged() != acknowledged) {
            return;
        }
    }
}

}  // namespace daqloom::live
