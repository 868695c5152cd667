// For tests: a user's consumer of a node's output.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "live/memory/buffer_client.hpp"
#include "live/node/node_fixture_test.hpp"
#include "protocol/data/mep_check.hpp"

namespace daqloom::live {

inline protocol::MfpGenerator generator_of(const NodeConfig& config, std::uint32_t stream) {
    return base::value_of(protocol::MfpGenerator::make(
        {.source_id = static_cast<std::uint16_t>(stream),
         .packing = config.packing,
         .sizes = std::make_shared<protocol::PatternSizes>(
             config.fragment_sizes, config.fragment_bytes[stream], config.seed)}));
}

/// A user's consumer of a unit's events, which checks them and their alignment, and records their
/// missing MFPs.
class Consumer {
  public:
    explicit Consumer(const NodeConfig& config, UnitIndex unit,
                      BufferSide side = BufferSide::reader)
        : side_(side),
          alignment_(side == BufferSide::reader ? config.output_alignment : 1),
          name_(buffer_name(config.run, unit.value(), "output")) {
        for (std::uint32_t stream = 0; stream < config.fragment_bytes.size(); ++stream) {
            expected_.push_back(generator_of(config, stream));
        }
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    ~Consumer() { is_held = false; }

    std::atomic<bool> is_attached = false;  ///< has been attached once
    std::atomic<bool> is_held = false;      ///< consumes nothing
    std::atomic<std::uint64_t> meps = 0;
    std::atomic<std::uint64_t> wrong = 0;
    std::atomic<std::uint64_t> unaligned = 0;
    std::atomic<std::uint64_t> repeated = 0;

    /// Per MEP number: the streams whose MFPs are missing, and those whose MFPs are empty.
    struct Lacks {
        std::set<std::uint32_t> missing;
        std::set<std::uint32_t> empty;
    };
    std::map<std::uint64_t, Lacks> lacks() {
        const std::lock_guard lock(mutex_);
        return lacks_;
    }

  private:
    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            auto attached = attach_buffer(name_, side_, now() + base::milliseconds(20));
            if (!attached) {
                continue;
            }
            is_attached = true;
            area_ = attached->buffer().area().bytes().data();
            BufferReader reader(attached->buffer());
            while (!reader.is_at_end() && !stop.stop_requested()) {
                if (is_held) {
                    std::this_thread::yield();
                } else if (const auto piece = reader.next()) {
                    const auto [is_right, lacks] = read(*piece);
                    if (reader.acknowledge()) {
                        record(piece->tag, is_right, lacks);
                    }
                } else {
                    reader.wait(now() + base::milliseconds(20));
                }
            }
        }
    }
    std::pair<bool, Lacks> read(const Piece& piece) {
        const std::span memory(reinterpret_cast<const std::uint8_t*>(piece.bytes.data()),
                               piece.bytes.size());
        const auto check = protocol::check_mep(expected_, memory);
        const auto mep = protocol::MepView::decode(memory);
        const auto place = piece.bytes.data() - area_;
        unaligned += place % alignment_ == 0 ? 0 : 1;
        const bool is_right = check.fault == protocol::DataFault::none && mep &&
                              mep->header().mep == protocol::MepId{piece.tag};
        Lacks found;
        for (std::uint32_t stream = 0; is_right && stream < mep->streams(); ++stream) {
            const auto state = mep->entry(stream).state;
            if (state != protocol::MepState::complete) {
                (state == protocol::MepState::missing ? found.missing : found.empty).insert(stream);
            }
        }
        return {is_right, found};
    }
    void record(std::uint64_t mep, bool is_right, const Lacks& found) {
        wrong += is_right ? 0 : 1;
        const std::lock_guard lock(mutex_);
        repeated += lacks_.emplace(mep, found).second ? 0 : 1;
        ++meps;
    }

    BufferSide side_;
    base::Bytes alignment_;
    const std::byte* area_ = nullptr;
    std::string name_;
    std::vector<protocol::MfpGenerator> expected_;
    std::mutex mutex_;
    std::map<std::uint64_t, Lacks> lacks_;
    std::jthread thread_;
};

}  // namespace daqloom::live
