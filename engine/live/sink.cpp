#include "live/sink.hpp"

#include <stop_token>

#include "live/background.hpp"

namespace daqloom::live {

namespace {

void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) {
    counter.fetch_add(count, std::memory_order_relaxed);
}

class Discard final : public MepConsumer {
  public:
    void consume(std::uint64_t /*mep*/, std::span<const std::uint8_t> /*bytes*/) override {}
};

}  // namespace

void Sink::start() {
    stop();
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Sink::stop() {
    thread_.request_stop();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void Sink::run(const std::stop_token& stop) {
    stay_in_background();
    BufferReader reader(*buffer_);
    const std::stop_callback wake(stop, [this] { buffer_->reader_bell().ring(); });
    while (true) {
        // In this order: what was committed before the stop is consumed.
        const bool is_last = stop.stop_requested();
        const auto mep = reader.next();
        if (mep) {
            consumer_->consume(mep->tag, {reinterpret_cast<const std::uint8_t*>(mep->bytes.data()),
                                          mep->bytes.size()});
            add(counters_.meps, 1);
            add(counters_.bytes, mep->bytes.size());
            add(counters_.repeated, seen_->add(mep->tag) ? 0 : 1);
            reader.acknowledge();
        } else if (is_last || reader.is_at_end() || reader.is_broken()) {
            break;
        } else {
            buffer_->reader_bell().sleep(base::Time::never(), [&] {
                return !reader.has_next() && !reader.is_at_end() && !stop.stop_requested();
            });
        }
    }
    counters_.broken = reader.is_broken() ? 1 : 0;
    consumer_->finish();
}

std::unique_ptr<MepConsumer> discard_meps() { return std::make_unique<Discard>(); }

}  // namespace daqloom::live
