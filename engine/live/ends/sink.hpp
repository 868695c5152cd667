// Sinks of a unit: threads that take built events (MEPs) from its output buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "live/ends/duplicates.hpp"
#include "live/memory/background.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/counters.hpp"

namespace daqloom::live {

/// A consumer of MEPs, one after the other.
class MepConsumer {
  public:
    virtual ~MepConsumer() = default;
    /// Consumes a MEP, valid during the call only. `mep`: its number, from the builder unit.
    virtual void consume(std::uint64_t mep, std::span<const std::uint8_t> bytes) = 0;
    /// Called when no more MEPs come for now.
    virtual void finish() {}
};

/// A thread that passes MEPs to the consumer, and sleeps while there is none. Each MEP is counted
/// and acknowledged when it has been consumed.
class Sink {
  public:
    /// The sink must be the only reader of the buffer. The buffer, `duplicates` and `counters` must
    /// outlive it; the next sink continues with `duplicates` and `counters`.
    Sink(Buffer& buffer, std::unique_ptr<MepConsumer> consumer, DuplicateFilter& duplicates,
         NodeCounters& counters)
        : buffer_(&buffer),
          consumer_(std::move(consumer)),
          duplicates_(&duplicates),
          counters_(&counters) {}
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;

    void start() {
        thread_.start([this](const std::stop_token& stop) { run(stop); });
    }
    /// Ends the thread when all MEPs committed before have been consumed.
    void stop() { thread_.stop(); }

  private:
    void run(const std::stop_token& stop);

    Buffer* buffer_;
    std::unique_ptr<MepConsumer> consumer_;
    DuplicateFilter* duplicates_;
    NodeCounters* counters_;
    Background thread_;
};

/// A consumer that discards MEPs.
std::unique_ptr<MepConsumer> discard_meps();

}  // namespace daqloom::live
