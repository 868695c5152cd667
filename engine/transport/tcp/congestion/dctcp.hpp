// DCTCP (RFC 8257): a mark reduces the window by half the fraction of bytes marked; growth and
// reductions after a loss are those of NewReno.
#pragma once

#include "transport/tcp/congestion/newreno.hpp"

namespace daqloom::transport {

class Dctcp : public NewReno {
  public:
    static constexpr bool needs_ecn = true;

    /// The estimate of the fraction of bytes marked.
    [[nodiscard]] double marked_fraction() const { return alpha_; }

    void in_ack_event(const AckSample& ack, const CongestionConfig& config) {
        window_acked_ += ack.delivered;
        window_marked_ += ack.echo ? ack.delivered : 0;
        if (ack.una < window_end_) {
            return;
        }
        if (window_acked_ > 0) {
            const double fraction =
                static_cast<double>(window_marked_) / static_cast<double>(window_acked_);
            alpha_ += config.dctcp_g * (fraction - alpha_);
        }
        window_acked_ = 0;
        window_marked_ = 0;
        window_end_ = ack.nxt;
    }
    base::Bytes ssthresh_of_mark(base::Bytes cwnd, const CongestionConfig&) {
        acked_towards_next_ = 0;
        return static_cast<base::Bytes>((1.0 - alpha_ / 2.0) * static_cast<double>(cwnd));
    }

  private:
    double alpha_ = 1.0;
    base::Bytes window_acked_ = 0;
    base::Bytes window_marked_ = 0;
    std::uint64_t window_end_ = 0;
};

}  // namespace daqloom::transport
