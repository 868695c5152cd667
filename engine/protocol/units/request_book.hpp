// The requests of builder units for the MFPs of a stream: MFPs may be requested out of order, and
// before they arrive.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ring.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// MFPs are numbered from 0, as their stream has them.
class RequestBook {
  public:
    struct Request {
        BuilderIndex builder{};
        base::Bytes offset = 0;  ///< in its memory
    };
    enum class Answer {
        now,      ///< the MFP has been taken
        later,    ///< `on_taken` will tell
        refused,  ///< asked for twice, or none that anybody may ask for yet
    };

    /// `ahead`: so many behind those taken may be asked for; at least 1.
    explicit RequestBook(std::uint32_t ahead) : ahead_(ahead) {}

    /// No call allocates from now on while at most `window` MFPs are taken and not given back.
    void reserve(std::uint32_t window) { pages_.reserve(window + ahead_); }

    Answer ask(std::uint64_t mfp, const Request& request) {
        if (mfp < given_back_ || mfp >= taken_ + ahead_) {
            return Answer::refused;
        }
        while (place_of(mfp) >= pages_.size()) {
            pages_.push({});
        }
        Page& page = pages_[place_of(mfp)];
        if (page.state != State::open) {
            return Answer::refused;
        }
        page = {request.offset, request.builder, State::asked};
        if (mfp < taken_) {
            return Answer::now;
        }
        ++waiting_;
        return Answer::later;
    }

    /// The next MFP is there. Returns who has asked for it.
    std::optional<Request> on_taken() {
        const std::uint64_t mfp = taken_++;
        if (place_of(mfp) >= pages_.size() || pages_[place_of(mfp)].state != State::asked) {
            return std::nullopt;
        }
        --waiting_;
        return request_of(mfp);
    }

    /// Of an MFP that was asked for and not written.
    [[nodiscard]] Request request_of(std::uint64_t mfp) const {
        const Page& page = pages_[place_of(mfp)];
        return {page.builder, page.offset};
    }

    /// The MFP, which was asked for, is not needed any more. Returns how many of the oldest can be
    /// given back now.
    std::uint32_t on_written(std::uint64_t mfp) {
        pages_[place_of(mfp)].state = State::written;
        std::uint32_t released = 0;
        for (; given_back_ < taken_ && !pages_.empty() && pages_.front().state == State::written;
             ++given_back_) {
            pages_.pop();
            ++released;
        }
        return released;
    }

    [[nodiscard]] std::uint64_t taken() const { return taken_; }
    /// Requests for MFPs that are not there.
    [[nodiscard]] std::uint32_t waiting() const { return waiting_; }
    /// Calls `see(mfp, request)` for each of them, in order.
    template <class See>
    void each_waiting(See see) {
        for (std::uint64_t mfp = taken_; place_of(mfp) < pages_.size(); ++mfp) {
            if (pages_[place_of(mfp)].state == State::asked) {
                see(mfp, request_of(mfp));
            }
        }
    }

  private:
    enum class State : std::uint8_t { open, asked, written };
    struct Page {
        base::Bytes offset = 0;
        BuilderIndex builder{};
        State state = State::open;
    };

    [[nodiscard]] std::uint32_t place_of(std::uint64_t mfp) const {
        return static_cast<std::uint32_t>(mfp - given_back_);
    }

    std::uint32_t ahead_;
    std::uint32_t waiting_ = 0;
    std::uint64_t taken_ = 0;
    std::uint64_t given_back_ = 0;
    base::Ring<Page> pages_;  ///< from the oldest that is not given back to the furthest asked for
};

}  // namespace daqloom::protocol
