// The requests of builder units for the MFPs of a stream: MFPs may be requested out of order, and
// before they arrive.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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

    /// `window`: MFPs taken and not given back at most; `ahead`: so many behind those taken may be
    /// asked for. Both at least 1.
    RequestBook(std::uint32_t window, std::uint32_t ahead)
        : ahead_(ahead), pages_(std::size_t{window} + ahead) {}

    Answer ask(std::uint64_t mfp, const Request& request) {
        if (mfp < given_back_ || mfp >= taken_ + ahead_ || at(mfp).state != State::open) {
            return Answer::refused;
        }
        at(mfp) = {State::asked, request};
        if (mfp < taken_) {
            return Answer::now;
        }
        ++waiting_;
        return Answer::later;
    }

    /// The next MFP is there. Returns who has asked for it. Precondition: fewer than `window` are
    /// taken and not given back.
    std::optional<Request> on_taken() {
        const Page& page = at(taken_++);
        if (page.state != State::asked) {
            return std::nullopt;
        }
        --waiting_;
        return page.request;
    }

    /// Of an MFP that was asked for.
    [[nodiscard]] const Request& request_of(std::uint64_t mfp) { return at(mfp).request; }

    /// The MFP is not needed any more. Returns how many of the oldest can be given back now.
    /// Precondition: it was asked for, and has been taken.
    std::uint32_t on_written(std::uint64_t mfp) {
        at(mfp).state = State::written;
        std::uint32_t released = 0;
        for (; given_back_ < taken_ && at(given_back_).state == State::written; ++given_back_) {
            at(given_back_).state = State::open;
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
        for (std::uint64_t mfp = taken_; mfp < taken_ + ahead_; ++mfp) {
            if (at(mfp).state == State::asked) {
                see(mfp, at(mfp).request);
            }
        }
    }

  private:
    enum class State : std::uint8_t { open, asked, written };
    struct Page {
        State state = State::open;
        Request request;
    };

    [[nodiscard]] Page& at(std::uint64_t mfp) { return pages_[mfp % pages_.size()]; }

    std::uint32_t ahead_;
    std::vector<Page> pages_;  ///< of the MFPs from given_back_ on
    std::uint64_t taken_ = 0;
    std::uint64_t given_back_ = 0;
    std::uint32_t waiting_ = 0;
};

}  // namespace daqloom::protocol
