#include "live/memory/sample_tap.hpp"

#include <algorithm>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

constexpr std::uint32_t kPieces = 64;

}  // namespace

base::expected<const Buffer*> SampleTap::admit(std::size_t slot, pid_t /*peer*/) {
    DAQLOOM_TRY(buffer,
                Buffer::create({.name = "daqloom-sampler", .bytes = bytes_, .pieces = kPieces}));
    const std::lock_guard lock(mutex_);
    attached_ += samplers_[slot] ? 0 : 1;
    return &samplers_[slot].emplace(std::move(buffer)).buffer;
}

void SampleTap::leave(std::size_t slot) {
    const std::lock_guard lock(mutex_);
    attached_ -= samplers_[slot] ? 1 : 0;
    samplers_[slot].reset();
}

SampleTap::~SampleTap() {
    for (auto& sampler : samplers_) {
        if (sampler) {
            sampler->writer.close();
        }
    }
}

void SampleTap::copy(std::uint64_t tag, std::span<const std::byte> bytes) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) {
        return;
    }
    for (std::size_t slot = 0; slot < samplers_.size(); ++slot) {
        auto& sampler = samplers_[slot];
        if (!sampler) {
            continue;
        }
        const base::Time begin = now();
        const auto room = begin < next_copy_
                              ? std::nullopt
                              : sampler->writer.reserve(static_cast<base::Bytes>(bytes.size()));
        if (!room) {
            counters_.skipped[slot].add(1);
            continue;
        }
        std::ranges::copy(bytes, room->begin());
        sampler->writer.commit(tag, static_cast<base::Bytes>(bytes.size()));
        counters_.copied[slot].add(1);
        next_copy_ = now() + (now() - begin) * time_per_copy;
    }
}

}  // namespace daqloom::live
