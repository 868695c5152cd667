// The congestion window of one connection, which its congestion control grows and shrinks.
//
// The window does not depend on sequence numbers or timers; the sender reports acknowledgements,
// losses, marks and timeouts. Windows are in bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>

#include "base/units.hpp"
#include "transport/tcp/config.hpp"

namespace daqloom::transport {

class Congestion {
  public:
    explicit Congestion(const TcpConfig& config) {
        CongestionControls::visit(config.congestion,
                                  [&]<class Control>(std::type_identity<Control>) {
                                      std::construct_at(&control<Control>());
                                      window_.cwnd = Control::init(config);
                                  });
    }

    [[nodiscard]] base::Bytes window() const { return window_.cwnd; }
    [[nodiscard]] base::Bytes threshold() const { return window_.ssthresh; }
    [[nodiscard]] bool in_slow_start() const { return window_.in_slow_start(); }
    /// Begin of the members that slow start never touches.
    [[nodiscard]] const void* rarely_touched() const { return &control_[sizeof(HyStart)]; }
    /// The congestion control; `Control` must be the configured one.
    template <class Control>
    [[nodiscard]] Control& control() {
        return *std::launder(reinterpret_cast<Control*>(control_.data()));
    }

    /// Reports an acknowledgement to the control, before the sender acts on it.
    void on_delivery(const AckSample& ack, const TcpConfig& config) {
        visit(config, [&](auto& control) { control.in_ack_event(ack, config); });
    }

    /// Reports an acknowledgement that arrives while the window is not being reduced.
    void on_ack(const AckSample& ack, const TcpConfig& config) {
        visit(config, [&](auto& control) {
            control.pkts_acked(ack, window_, config);
            if (ack.may_grow) {
                control.cong_avoid(ack, window_, config);
            }
        });
    }

    /// A loss was found: sets the threshold to which the window is to be reduced.
    void on_loss(const TcpConfig& config) {
        visit_adaptive(config, [&](auto& control) {
            set_threshold(control.ssthresh(window_.cwnd, config), config);
        });
    }
    /// An ECN echo arrived: sets the threshold to which the window is to be reduced.
    void on_mark(const TcpConfig& config) {
        visit(config, [&]<class Control>(Control& control) {
            if constexpr (Control::needs_ecn) {
                set_threshold(control.ssthresh_of_mark(window_.cwnd, config), config);
            }
        });
    }
    /// The retransmission timer expired; `in_flight` bytes are not counted lost. `again`: the
    /// window was reduced before for the same data. Any window, even a static one, then allows one
    /// more segment.
    void on_timeout(bool again, base::Bytes in_flight, const TcpConfig& config) {
        if (!again) {
            const CongestionWindow before = window_;
            on_loss(config);
            before_timeout_ = before;
        }
        window_.cwnd = in_flight + config.mss;
        visit(config, [](auto& control) { control.timeout(); });
    }
    /// The timeout was spurious: its reduction is undone.
    void undo_timeout() {
        window_.cwnd = std::max(window_.cwnd, before_timeout_.cwnd);
        window_.ssthresh = std::max(window_.ssthresh, before_timeout_.ssthresh);
    }
    /// Halves the window once per `rto` of idle time after the first `rto` (RFC 2861, as Linux).
    void on_idle(base::Time idle, base::Time rto, const TcpConfig& config) {
        visit_adaptive(config, [&](auto& control) {
            const base::Bytes restart = std::min(config.mss * config.initial_window, window_.cwnd);
            window_.ssthresh = std::max(window_.ssthresh, window_.cwnd / 4 * 3);
            for (base::Time left = idle - rto; left > base::Time::zero() && window_.cwnd > restart;
                 left = left - rto) {
                window_.cwnd /= 2;
            }
            window_.cwnd = std::max(window_.cwnd, restart);
            control.cwnd_restart();
        });
    }

    /// Reports that sending begins after a pause.
    void on_start(base::Time now, base::Time idle, const TcpConfig& config) {
        visit(config, [&](auto& control) { control.tx_start(now, idle); });
    }

    /// Sets the window during a reduction, at each acknowledgement (RFC 9937).
    void set_window(base::Bytes window, const TcpConfig& config) {
        visit_adaptive(config, [&](auto&) { window_.cwnd = std::max(window, config.mss); });
    }
    void end_reduction(const TcpConfig& config) { set_window(window_.ssthresh, config); }

  private:
    template <class See>
    void visit(const TcpConfig& config, See see) {
        CongestionControls::visit(
            config.congestion,
            [&]<class Control>(std::type_identity<Control>) { see(control<Control>()); });
    }
    /// Visits the control unless its window is fixed.
    template <class See>
    void visit_adaptive(const TcpConfig& config, See see) {
        visit(config, [&]<class Control>(Control& control) {
            if constexpr (!Control::is_fixed) {
                see(control);
            }
        });
    }
    void set_threshold(base::Bytes threshold, const TcpConfig& config) {
        window_.ssthresh = std::max(threshold, 2 * config.mss);
        before_timeout_ = {.cwnd = 0, .ssthresh = 0};  // this congestion is real: not to be undone
    }

    // ---- cache lines touched by acknowledgements in slow start: window, beginning of the control
    CongestionWindow window_{};
    /// The configured control, in raw memory. Its kind is in the common configuration of all
    /// connections: a variant would store the kind here, on an additional cache line.
    alignas(8) std::array<std::byte, CongestionControls::kBytes> control_{};
    CongestionWindow before_timeout_{.cwnd = 0, .ssthresh = 0};
};

}  // namespace daqloom::transport
