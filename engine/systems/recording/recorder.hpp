// Records a run of pull building over Ethernet: frames of single links for Wireshark, a timeline
// for Perfetto.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/expected.hpp"
#include "base/index.hpp"
#include "base/units.hpp"
#include "ethernet/pcapng.hpp"
#include "systems/recording/timeline.hpp"
#include "systems/requested/pull_system.hpp"
#include "transport/tcp_over_ethernet.hpp"

namespace daqloom::systems {

/// Recorder of a run. The files appear on close(); the destructor removes files that are not
/// closed. The system must outlive its recorder, which detaches when it is closed or destroyed.
///
/// A captured frame has the time of its arrival at the far end of the link. A frame that is dropped
/// there is captured; a frame that is dropped at the near end is not. Sequence numbers begin at 1,
/// as after a handshake. Simulated frames carry no TCP timestamps: a captured timestamp is the
/// millisecond of the capture, and its echo the latest timestamp that the sender has received.
class Recorder final : public ethernet::Observer {
  public:
    /// `captures`: file by name of a link; `timeline`: a file, or empty for none. Fails with one
    /// sentence about a link that does not exist or a file that cannot be written.
    static base::expected<std::unique_ptr<Recorder>> make(
        PullSystem& system, const std::map<std::string, std::string>& captures,
        const std::string& timeline);
    ~Recorder() override;
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Completes the files and ends the recording.
    [[nodiscard]] base::expected<void> close();

    void on_delivery(ethernet::LinkIndex link, const ethernet::Frame& frame,
                     base::Time now) override;
    void on_drop(ethernet::LinkIndex link, const ethernet::Frame& frame, base::Time now) override;

  private:
    Recorder(PullSystem& system, transport::TcpOverEthernet& stack);

    void let_go();
    void capture(ethernet::PcapngWriter& writer, const ethernet::Frame& frame,
                 base::Time now) const;
    void capture_datagram(ethernet::PcapngWriter& writer, const ethernet::Frame& frame,
                          base::Time now) const;

    PullSystem& system_;
    transport::TcpOverEthernet& stack_;
    std::uint16_t window_;  ///< window announced by every header
    base::Table<ethernet::LinkIndex, std::optional<ethernet::PcapngWriter>> captures_;
    /// Latest TCP timestamp that each endpoint has received.
    base::Table<ethernet::EndpointIndex, std::uint32_t> ts_recent_;
    std::optional<Timeline> timeline_;
};

}  // namespace daqloom::systems
