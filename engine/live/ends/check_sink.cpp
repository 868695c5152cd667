#include "live/ends/check_sink.hpp"

#include <functional>
#include <span>
#include <utility>

#include "protocol/data/mep.hpp"

namespace daqloom::live {

namespace {

using CheckMep = std::function<protocol::DataCheck(std::span<const std::uint8_t>)>;

class Check final : public MepConsumer {
  public:
    Check(CheckMep check_mep, CheckCounters& counters)
        : check_mep_(std::move(check_mep)), counters_(&counters) {}

    void consume(std::uint64_t mep, std::span<const std::uint8_t> bytes) override {
        const protocol::DataCheck check = check_mep_(bytes);
        counters_->fragments.add(check.fragments);
        counters_->fragment_bytes.add(static_cast<std::uint64_t>(check.fragment_bytes));
        if (check.fault != protocol::DataFault::none) {
            counters_->wrong[static_cast<std::size_t>(check.fault)].add(1);
        } else if (!is_mep(mep, bytes)) {
            counters_->wrong_number.add(1);
        } else if (check.unknown > 0) {
            counters_->unchecked.add(1);
        } else {
            counters_->right.add(1);
        }
    }

  private:
    /// Whether MEP number and first event in `bytes` match `mep`, the number from the builder unit.
    [[nodiscard]] bool is_mep(std::uint64_t mep, std::span<const std::uint8_t> bytes) const {
        const auto view = protocol::MepView::decode(bytes);
        return view && view->header().mep == protocol::MepId{mep} &&
               view->header().event_id == mep * view->header().events;
    }

    CheckMep check_mep_;
    CheckCounters* counters_;
};

}  // namespace

std::unique_ptr<MepConsumer> check_meps(std::vector<protocol::MfpGenerator> streams,
                                        CheckCounters& counters) {
    return std::make_unique<Check>(
        [streams = std::move(streams)](std::span<const std::uint8_t> bytes) {
            return protocol::check_mep(streams, bytes);
        },
        counters);
}

std::unique_ptr<MepConsumer> check_replayed_meps(std::shared_ptr<const RecordedChecksums> recorded,
                                                 std::uint32_t streams, CheckCounters& counters) {
    return std::make_unique<Check>(
        [recorded = std::move(recorded), streams](std::span<const std::uint8_t> bytes) {
            return recorded->check_mep(streams, bytes);
        },
        counters);
}

}  // namespace daqloom::live
