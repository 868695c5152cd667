#include "live/ends/data_rates.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "live/memory/clock.hpp"
#include "live/memory/copy.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mep_check.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;
using base::Time;

constexpr std::uint32_t kMostThreads = 1024;
constexpr Bytes kMemory = 64 << 20;  ///< beyond any cache
constexpr Bytes kPlaceLine = 64;
constexpr std::size_t kRounds = 3;

std::size_t size(Bytes bytes) { return static_cast<std::size_t>(bytes); }

/// MEPs of one stream, and memory for a copy of their MFPs.
class OneStream {
  public:
    explicit OneStream(const protocol::MfpGenerator& stream)
        : stream_(stream),
          place_(size((kMfpAt + stream.largest() + kPlaceLine - 1) / kPlaceLine * kPlaceLine)),
          memory_(std::max(size(kMemory), place_)),
          copies_(memory_.size()) {
        for (std::size_t number = 0; number < memory_.size() / place_; ++number) {
            const Bytes bytes = kMfpAt + stream.bytes_of(event(number));
            meps_.push_back(std::span(memory_).subspan(number * place_, size(bytes)));
        }
    }

    OneStream(const OneStream&) = delete;
    OneStream& operator=(const OneStream&) = delete;

    [[nodiscard]] std::size_t meps() const { return meps_.size(); }
    [[nodiscard]] std::span<std::uint8_t> mfp(std::size_t number) const {
        return meps_[number].subspan(size(kMfpAt));
    }

    [[nodiscard]] bool generate(std::size_t number) {
        return stream_.generate(event(number), mfp(number)).has_value();
    }
    [[nodiscard]] bool copy(std::size_t number) {
        const auto from = std::as_bytes(mfp(number));
        live::copy(copies_.data() + number * place_, from.data(), from.size());
        return true;
    }
    [[nodiscard]] bool encode(std::size_t number) {
        const protocol::MepEntry entry{.offset = kMfpAt,
                                       .bytes = static_cast<Bytes>(mfp(number).size()),
                                       .source_id = stream_.source_id(),
                                       .state = protocol::MepState::complete};
        return protocol::encode_mep({.mep = protocol::MepId{number},
                                     .event_id = event(number),
                                     .events = stream_.packing()},
                                    std::span(&entry, 1), meps_[number])
            .has_value();
    }
    [[nodiscard]] bool check(std::size_t number) {
        return protocol::check_mep(std::span(&stream_, 1), meps_[number]).fault ==
               protocol::DataFault::none;
    }

  private:
    static constexpr Bytes kMfpAt = protocol::mep_overhead(1);

    [[nodiscard]] std::uint64_t event(std::size_t number) const {
        return number * stream_.packing();
    }

    protocol::MfpGenerator stream_;
    std::size_t place_;
    std::vector<std::uint8_t> memory_;
    std::vector<std::byte> copies_;
    std::vector<std::span<std::uint8_t>> meps_;
};

/// Bytes per second of `work`, in several rounds through all MEPs; 0: an operation failed.
double rate_of(OneStream& meps, bool (OneStream::*work)(std::size_t)) {
    std::size_t bytes = 0;
    for (std::size_t number = 0; number < meps.meps(); ++number) {
        bytes += kRounds * meps.mfp(number).size();
    }
    const Time began = now();
    for (std::size_t step = 0; step < kRounds * meps.meps(); ++step) {
        if (!(meps.*work)(step % meps.meps())) {
            return 0;
        }
    }
    fence_copies();
    return static_cast<double>(bytes) / (now() - began).seconds();
}

}  // namespace

base::expected<DataRates> measure_data_rates(std::uint32_t threads, std::uint32_t packing,
                                             std::uint32_t fragment_bytes) {
    if (threads < 1 || threads > kMostThreads) {
        return base::failure("data rates are measured by 1 to 1024 threads");
    }
    const auto sizes = std::make_shared<protocol::PatternSizes>(protocol::FragmentSizes::poisson,
                                                                fragment_bytes, 1);
    DAQLOOM_TRY(stream, protocol::MfpGenerator::make({.packing = packing, .sizes = sizes}));
    std::vector<DataRates> found(threads);
    std::atomic<bool> is_right{true};
    {
        std::barrier together(threads);
        std::vector<std::jthread> all;
        for (DataRates& own : found) {
            all.emplace_back([&] {
                OneStream meps(stream);
                const auto rate = [&](bool (OneStream::*work)(std::size_t)) {
                    together.arrive_and_wait();
                    return rate_of(meps, work);
                };
                own.generated_bytes_per_s = rate(&OneStream::generate);
                own.copied_bytes_per_s = rate(&OneStream::copy);
                const double encoded = rate(&OneStream::encode);
                own.checked_bytes_per_s = rate(&OneStream::check);
                if (own.generated_bytes_per_s == 0 || encoded == 0 ||
                    own.checked_bytes_per_s == 0) {
                    is_right = false;
                }
            });
        }
    }
    if (!is_right) {
        return base::failure(
            "generated fragments fail their own check; report this as a defect of daqloom");
    }
    DataRates mean;
    for (const DataRates& own : found) {
        mean.generated_bytes_per_s += own.generated_bytes_per_s / threads;
        mean.copied_bytes_per_s += own.copied_bytes_per_s / threads;
        mean.checked_bytes_per_s += own.checked_bytes_per_s / threads;
    }
    return mean;
}

}  // namespace daqloom::live
