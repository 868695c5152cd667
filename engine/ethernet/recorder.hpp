// Records a run of the rack: frames of single links for Wireshark, a timeline for Perfetto.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "ethernet/pcapng.hpp"
#include "ethernet/rack.hpp"
#include "ethernet/timeline.hpp"

namespace daqloom::ethernet {

/// The files appear on close(); without it the destructor removes what was written so far. The rack
/// must outlive its recorder, which lets go of it when it is closed or destroyed.
///
/// A captured frame has the time of its arrival at the far end of the link. A frame that is dropped
/// there is captured; a frame that is dropped at the near end is not. Streams begin at 1, as after
/// a handshake. The simulator keeps no time in its frames: a time stamp is the millisecond of the
/// capture, and echoes the latest that the sender has received.
class Recorder final : public Observer, public TimeoutObserver, public EventObserver {
  public:
    /// `captures`: file by name of a link; `timeline`: a file, or empty for none. Fails with one
    /// sentence about a link that does not exist or a file that cannot be written.
    static base::expected<std::unique_ptr<Recorder>> make(
        Rack& rack, const std::map<std::string, std::string>& captures,
        const std::string& timeline);
    ~Recorder() override;
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Completes the files. Nothing is recorded afterwards.
    [[nodiscard]] base::expected<void> close();

    void on_delivery(LinkIndex link, const Frame& frame, base::Time now) override;
    void on_drop(LinkIndex link, const Frame& frame, base::Time now) override;
    void on_timeout(EndpointIndex endpoint, base::Time now) override;
    void on_built(protocol::EventId event, protocol::BuilderIndex builder, base::Time assigned,
                  base::Time now) override;

  private:
    explicit Recorder(Rack& rack);

    void capture(PcapngWriter& writer, const Frame& frame, base::Time now) const;

    Rack& rack_;
    std::uint16_t window_;                               ///< as every header announces it
    std::vector<std::optional<PcapngWriter>> captures_;  ///< by link
    std::vector<std::uint32_t> heard_;  ///< by endpoint: the latest time stamp received
    std::optional<Timeline> timeline_;
};

}  // namespace daqloom::ethernet
