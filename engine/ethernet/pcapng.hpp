// Captures a simulated link for Wireshark and tshark.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/atomic_file.hpp"
#include "base/expected.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "network/graph.hpp"

namespace daqloom::ethernet {

/// Bits of the TCP header, RFC 9293, section 3.1.
enum TcpFlag : std::uint8_t {
    kTcpFin = 0x01,
    kTcpSyn = 0x02,
    kTcpPsh = 0x08,
    kTcpAck = 0x10,
    kTcpEce = 0x40,
    kTcpCwr = 0x80,
};

/// The two ECN bits of the IP header, RFC 3168, section 5.
enum class Ecn : std::uint8_t { kNotCapable = 0, kCapable1 = 1, kCapable0 = 2, kCongested = 3 };

/// A TCP segment or UDP datagram, as written to a capture. The payload is all zeros.
struct CapturedFrame {
    struct SackBlock {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
    };

    base::Time at = {};
    network::NodeIndex source_host = {};
    network::NodeIndex destination_host = {};
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
    bool is_datagram = false;  ///< without the fields of TCP
    std::uint32_t seq = 0;
    std::uint32_t ack = 0;
    std::uint8_t flags = kTcpAck;
    TrafficClass traffic_class = {};  ///< as a class selector (RFC 2474, section 4.2.2)
    Ecn ecn = Ecn::kNotCapable;
    std::uint16_t window = 0;  ///< as in the header: scaled
    bool timestamps = false;   ///< the option of RFC 7323 with the two values that follow
    std::uint32_t ts_value = 0;
    std::uint32_t ts_echo = 0;
    /// At most 4 blocks, or 3 with timestamps, as the TCP header has no space for more.
    std::span<const SackBlock> sack = {};
    std::uint32_t payload_bytes = 0;  ///< at most 65 455: an IP packet ends at 65 535
};

/// Writes the frames of one link, with headers from CapturedFrame, to a file that appears on
/// close(): pcapng (draft-ietf-opsawg-pcapng) with times in nanoseconds.
///
/// Host i has the address 10.x.y.z with x.y.z = i + 1 and the hardware address 02:00:00 x:y:z.
/// Checksums are valid. As on a host, frames have no check sequence and are padded to 60 bytes.
class PcapngWriter {
  public:
    struct Options {
        /// Bytes kept of each frame; at least 96, the longest header.
        std::uint32_t snap_length = 96;
        /// Limit of frames in the file; the file also has the number of frames beyond the limit.
        std::uint64_t max_frames = 10'000'000;  ///< about 1.3 GB
    };

    static base::expected<PcapngWriter> open(std::string path, std::string_view interface_name,
                                             Options options);
    static base::expected<PcapngWriter> open(std::string path, std::string_view interface_name) {
        return open(std::move(path), interface_name, Options{});
    }

    void frame(const CapturedFrame& frame);

    [[nodiscard]] std::uint64_t frames() const { return frames_; }
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

    /// Completes the file and ends the writing.
    [[nodiscard]] base::expected<void> close();

  private:
    PcapngWriter(base::AtomicFile file, Options options);

    base::AtomicFile file_;
    Options options_;
    base::Time last_;
    std::uint64_t frames_ = 0;
    std::uint64_t left_out_ = 0;
};

}  // namespace daqloom::ethernet
