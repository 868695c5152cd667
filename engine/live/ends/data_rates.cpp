#include "live/ends/data_rates.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "live/memory/clock.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mep_check.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;
using base::Time;

constexpr Bytes kMemory = 128 << 20;  // beyond any cache
constexpr Bytes kLine = 64;
constexpr int kRounds = 3;

/// A MEP of one stream: with what each MFP is built into.
struct OneStream {
    protocol::MfpGenerator stream;
    Bytes mfp_at = protocol::mep_overhead(1);
    Bytes place = (mfp_at + stream.largest() + kLine - 1) / kLine * kLine;
    std::vector<std::uint8_t> memory =
        std::vector<std::uint8_t>(static_cast<std::size_t>(std::max(kMemory, place)));

    [[nodiscard]] std::size_t places() const {
        return memory.size() / static_cast<std::size_t>(place);
    }
    [[nodiscard]] std::uint64_t event(std::size_t number) const {
        return number * stream.packing();
    }
    [[nodiscard]] std::span<std::uint8_t> at(std::size_t number) {
        const auto size = static_cast<std::size_t>(mfp_at + stream.bytes_of(event(number)));
        return std::span(memory).subspan(number * static_cast<std::size_t>(place), size);
    }
    [[nodiscard]] base::expected<void> generate(std::size_t number) {
        DAQLOOM_CHECK(
            stream.generate(event(number), at(number).subspan(static_cast<std::size_t>(mfp_at))));
        return {};
    }
    [[nodiscard]] base::expected<void> encode(std::size_t number) {
        const protocol::MepEntry entry{.offset = mfp_at,
                                       .bytes = stream.bytes_of(event(number)),
                                       .source_id = stream.source_id(),
                                       .state = protocol::MepState::complete};
        DAQLOOM_CHECK(protocol::encode_mep({.mep = protocol::MepId{number},
                                            .event_id = event(number),
                                            .events = stream.packing()},
                                           std::span(&entry, 1), at(number)));
        return {};
    }
    [[nodiscard]] base::expected<void> check(std::size_t number) {
        const auto found = protocol::check_mep(std::span(&stream, 1), at(number));
        return found.fault == protocol::DataFault::none
                   ? base::expected<void>{}
                   : base::failure("what was generated is not what is checked");
    }
};

/// The most bytes per second of some rounds through all MEPs.
template <class Work>
base::expected<double> best(OneStream& meps, Work work) {
    double most = 0;
    for (int round = 0; round < kRounds; ++round) {
        Bytes bytes = 0;
        const Time began = now();
        for (std::size_t number = 0; number < meps.places(); ++number) {
            DAQLOOM_CHECK((meps.*work)(number));
            bytes += static_cast<Bytes>(meps.at(number).size());
        }
        most = std::max(most, static_cast<double>(bytes) / (now() - began).seconds());
    }
    return most;
}

}  // namespace

base::expected<DataRates> measure_data_rates(std::uint32_t packing, std::uint32_t fragment_bytes) {
    const auto sizes = std::make_shared<protocol::PatternSizes>(protocol::FragmentSizes::poisson,
                                                                fragment_bytes, 1);
    DAQLOOM_TRY(stream, protocol::MfpGenerator::make({.packing = packing, .sizes = sizes}));
    OneStream meps{.stream = std::move(stream)};
    DataRates found;
    DAQLOOM_TRY(generated, best(meps, &OneStream::generate));
    found.generated = generated;
    for (std::size_t number = 0; number < meps.places(); ++number) {
        DAQLOOM_CHECK(meps.encode(number));
    }
    DAQLOOM_TRY(checked, best(meps, &OneStream::check));
    found.checked = checked;
    return found;
}

}  // namespace daqloom::live
