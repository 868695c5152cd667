// The requests of builder units for the MFPs of one stream. MFPs may be requested out of order, and
// before the readout unit has taken them from the source.
//
//      given back            taken              taken + ahead
//          v                   v                      v
//   . . .  | w  a  o  w  a  o  | a  o  o  a  o  o  o  |  refused
//          |  two bits each    |  who, and where to   |
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/ring.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// MFPs are numbered from 0 within their stream. A taken MFP needs two bits, because a simulation
/// has hundreds of readout units with a book of ten thousands of MFPs each.
class RequestBook {
  public:
    struct Request {
        BuilderIndex builder{};
        base::Bytes offset = 0;  ///< place in the builder unit's memory
    };
    enum class Answer {
        now,      ///< the MFP has been taken
        later,    ///< `on_taken` returns the request
        refused,  ///< a second request for the MFP, or one for an MFP too far ahead
    };

    /// `ahead`: MFPs after the last taken one that may be requested; at least 1.
    explicit RequestBook(std::uint32_t ahead) : ahead_(ahead) { resize(1); }

    /// After this call, no call allocates while at most `window` MFPs are taken and not given back.
    void reserve(std::uint32_t window) {
        resize(std::bit_ceil(window / kPerWord + 2));
        coming_.reserve(ahead_);
    }

    Answer request(std::uint64_t mfp, const Request& request) {
        if (mfp < given_back_ || mfp >= taken_ + ahead_) {
            return Answer::refused;
        }
        if (mfp < taken_) {
            if (state_of(mfp) != State::open) {
                return Answer::refused;
            }
            add(mfp, State::requested);
            return Answer::now;
        }
        while (mfp - taken_ >= coming_.size()) {
            coming_.push({});
        }
        Page& page = coming_[place_of(mfp)];
        if (page.state != State::open) {
            return Answer::refused;
        }
        page = {request.offset, request.builder, State::requested};
        ++waiting_;
        return Answer::later;
    }

    /// Takes the next MFP. Returns the request for this MFP if the request came earlier.
    std::optional<Request> on_taken() {
        const std::uint64_t mfp = taken_++;
        if (taken_ / kPerWord - given_back_ / kPerWord >= words_.size()) {
            resize(2 * words_.size());
        }
        if (coming_.empty()) {
            return std::nullopt;
        }
        const Page page = coming_.front();
        coming_.pop();
        add(mfp, page.state);
        if (page.state != State::requested) {
            return std::nullopt;
        }
        --waiting_;
        return Request{page.builder, page.offset};
    }

    /// A requested MFP is no longer needed. Returns how many of the oldest MFPs can now be given
    /// back.
    std::uint32_t on_written(std::uint64_t mfp) {
        if (mfp < given_back_) {
            return 0;
        }
        if (mfp < taken_) {
            add(mfp, State::written);
        } else {
            coming_[place_of(mfp)].state = State::written;
            --waiting_;
        }
        std::uint32_t released = 0;
        for (; given_back_ < taken_ && state_of(given_back_) == State::written; ++released) {
            if (++given_back_ % kPerWord == 0) {
                word_of(given_back_ - 1) = 0;
            }
        }
        return released;
    }

    /// Gives back all MFPs taken, whether requested and written or not. Returns how many.
    std::uint32_t give_back_all() {
        std::ranges::fill(words_, 0);
        return static_cast<std::uint32_t>(taken_ - std::exchange(given_back_, taken_));
    }

    [[nodiscard]] std::uint64_t taken() const { return taken_; }
    /// MFPs taken and not given back.
    [[nodiscard]] std::uint64_t held() const { return taken_ - given_back_; }
    /// Requests for MFPs that have not been taken.
    [[nodiscard]] std::uint32_t waiting() const { return waiting_; }
    /// Calls `see(mfp, request)` for each waiting request, in order.
    template <class See>
    void each_waiting(See see) {
        for (std::uint32_t place = 0; place < coming_.size(); ++place) {
            if (const Page page = coming_[place]; page.state == State::requested) {
                see(taken_ + place, Request{page.builder, page.offset});
            }
        }
    }

  private:
    /// State bits of an MFP: the first is set by the request, the second by the write.
    enum class State : std::uint8_t { open = 0, requested = 1, written = 3 };
    struct Page {
        base::Bytes offset = 0;
        BuilderIndex builder{};
        State state = State::open;
    };
    static constexpr std::uint64_t kPerWord = 32;

    [[nodiscard]] std::uint32_t place_of(std::uint64_t mfp) const {
        return static_cast<std::uint32_t>(mfp - taken_);
    }
    [[nodiscard]] std::uint64_t& word_of(std::uint64_t mfp) {
        return words_[mfp / kPerWord & (words_.size() - 1)];
    }
    [[nodiscard]] State state_of(std::uint64_t mfp) {
        return static_cast<State>(word_of(mfp) >> 2 * (mfp % kPerWord) & 3);
    }
    void add(std::uint64_t mfp, State state) {
        word_of(mfp) |= static_cast<std::uint64_t>(state) << 2 * (mfp % kPerWord);
    }
    /// `words`: a power of two.
    void resize(std::size_t words) {
        std::vector<std::uint64_t> larger(std::max(words, words_.size()));
        for (std::uint64_t old = 0; old < words_.size(); ++old) {
            const std::uint64_t word = given_back_ / kPerWord + old;
            larger[word & (larger.size() - 1)] = words_[word & (words_.size() - 1)];
        }
        words_ = std::move(larger);
    }

    std::vector<std::uint64_t> words_;  ///< states of MFPs that are taken and not given back
    std::uint64_t taken_ = 0;
    std::uint64_t given_back_ = 0;
    std::uint32_t ahead_;
    std::uint32_t waiting_ = 0;
    base::Ring<Page> coming_;  ///< from the next MFP to the furthest one requested
};

}  // namespace daqloom::protocol
