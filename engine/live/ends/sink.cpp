#include "live/ends/sink.hpp"

#include "protocol/data/mep.hpp"

namespace daqloom::live {

namespace {

class Discard final : public MepConsumer {
  public:
    void consume(std::uint64_t /*mep*/, std::span<const std::uint8_t> /*bytes*/) override {}
};

}  // namespace

void Sink::run(const std::stop_token& stop) {
    BufferReader reader(*buffer_);
    const std::stop_callback wake(stop, [this] { buffer_->reader_bell().ring(); });
    while (true) {
        // Check for the stop first, so that all MEPs committed before it are consumed.
        const bool is_last = stop.stop_requested();
        const auto mep = reader.next();
        if (mep) {
            const std::span bytes(reinterpret_cast<const std::uint8_t*>(mep->bytes.data()),
                                  mep->bytes.size());
            consumer_->consume(mep->tag, bytes);
            counters_->meps_repeated.add(duplicates_->add(mep->tag) ? 0U : 1U);
            counters_->incomplete_meps_processed.add(protocol::lacks_mfps(bytes) ? 1U : 0U);
            counters_->meps_processed.add(1);
            reader.acknowledge();
        } else if (is_last || reader.is_at_end() || reader.is_broken()) {
            break;
        } else {
            buffer_->reader_bell().sleep(base::Time::never(), [&] {
                return !reader.has_next() && !reader.is_at_end() && !stop.stop_requested();
            });
        }
    }
    consumer_->finish();
}

std::unique_ptr<MepConsumer> discard_meps() { return std::make_unique<Discard>(); }

}  // namespace daqloom::live
