#include "live/memory/sample_tap.hpp"

#include <algorithm>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

constexpr std::uint32_t kPieces = 64;

}  // namespace

base::expected<const Buffer*> SampleTap::admit(std::size_t seat, pid_t /*peer*/) {
    DAQLOOM_TRY(buffer,
                Buffer::create({.name = "daqloom-sampler", .bytes = bytes_, .pieces = kPieces}));
    const std::lock_guard lock(mutex_);
    seated_ += samplers_[seat] ? 0 : 1;
    return &samplers_[seat].emplace(std::move(buffer)).buffer;
}

void SampleTap::leave(std::size_t seat) {
    const std::lock_guard lock(mutex_);
    seated_ -= samplers_[seat] ? 1 : 0;
    samplers_[seat].reset();
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
    for (std::size_t seat = 0; seat < samplers_.size(); ++seat) {
        auto& sampler = samplers_[seat];
        if (!sampler) {
            continue;
        }
        const base::Time begin = now();
        const auto room = begin < next_copy_
                              ? std::nullopt
                              : sampler->writer.reserve(static_cast<base::Bytes>(bytes.size()));
        if (!room) {
            counters_.skipped[seat].add(1);
            continue;
        }
        std::ranges::copy(bytes, room->begin());
        sampler->writer.commit(tag, static_cast<base::Bytes>(bytes.size()));
        counters_.copied[seat].add(1);
        next_copy_ = now() + (now() - begin) * time_per_copy;
    }
}

}  // namespace daqloom::live
