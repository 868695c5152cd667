// Files of recorded data: multi-fragment packets (.mfp, of one stream) or multi-event packets
// (.mep) in direct succession. Each packet contains its size, at most 8 GiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/ends/packet_index.hpp"
#include "live/memory/shared_memory.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mfp.hpp"

namespace daqloom::live {

/// Functions that recognise packets of one kind among arbitrary bytes.
struct PacketFormat {
    using Bytes = std::span<const std::uint8_t>;

    Bytes magic;            ///< first bytes of each packet
    base::Bytes front = 0;  ///< bytes of the header
    /// Size of a packet, from its header.
    base::expected<base::Bytes> (*size_of)(Bytes) = nullptr;
    /// Number of first bytes that `size_from` needs, computed from the header.
    base::Bytes (*bytes_for_size)(Bytes) = nullptr;
    /// Size of a packet, from its first bytes; none if header and table disagree.
    std::optional<base::Bytes> (*size_from)(Bytes) = nullptr;
    /// Whether a packet may come after another one in a file, from the headers of both.
    bool (*follows)(Bytes before, Bytes packet) = nullptr;
};

/// Reads the packets of a file one at a time into reused memory. The file is not mapped, so that
/// the reader does not crash if the file is truncated meanwhile. If the file has an index, packets
/// must be at its places and have its checksums.
class PacketReader {
  public:
    static base::expected<PacketReader> open(std::string path, const PacketFormat& format);

    /// The next packet, valid until the next call; empty: the file is at its end. Fails if a packet
    /// is cut off, longer than the file by its header, or has another checksum than in the index.
    /// After a failure every call fails, until `skip`.
    base::expected<std::span<const std::uint8_t>> next();
    /// Skips the last packet, returned or failed, and all bytes up to the next whole packet or the
    /// end of the file. Returns how many bytes were skipped.
    base::expected<base::Bytes> skip();
    /// Returns to the first packet.
    base::expected<void> rewind();
    /// Like `skip`, but from this offset on, for a file without an index.
    base::expected<base::Bytes> skip_from(base::Bytes offset);

    /// Offset of the last packet, returned or failed.
    [[nodiscard]] base::Bytes offset() const { return offset_; }
    /// An error that names file and offset.
    [[nodiscard]] tl::unexpected<base::Error> failure(const std::string& message) const;

  private:
    PacketReader(std::string path, OwnedFd file, const PacketFormat& format)
        : path_(std::move(path)), file_(std::move(file)), format_(&format) {}

    [[nodiscard]] base::expected<base::Bytes> size_of_next() const;
    [[nodiscard]] base::expected<void> check_next(base::Bytes bytes) const;
    [[nodiscard]] std::vector<std::uint8_t> bytes_at(base::Bytes at, base::Bytes bytes) const;
    [[nodiscard]] base::Bytes size_at(base::Bytes at) const;
    [[nodiscard]] bool is_whole_at(base::Bytes at) const;
    base::expected<bool> find_magic();
    base::expected<void> go_to(base::Bytes offset);

    /// Reads until the buffer has this many bytes from the current offset on, or the file ends.
    base::expected<void> fetch(std::size_t bytes);
    base::expected<void> make_room(std::size_t bytes);
    /// Bytes of the file from the current offset on.
    [[nodiscard]] base::Bytes left() const;
    [[nodiscard]] std::size_t available() const { return end_ - begin_; }

    std::string path_;
    OwnedFd file_;
    const PacketFormat* format_;
    std::optional<std::vector<IndexEntry>> index_;
    std::size_t number_ = 0;  ///< number of the packet at `offset_`
    base::Bytes offset_ = 0;
    std::size_t packet_ = 0;                ///< size of the last packet
    std::vector<std::uint8_t> last_front_;  ///< header of the packet before the last
    std::unique_ptr<std::uint8_t[]> buffer_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

/// A PacketReader that decodes and validates each packet.
template <class View>
class PacketFile {
  public:
    static base::expected<PacketFile> open(std::string path);

    /// The next packet, valid until the next call; none: the file is at its end. Fails for an
    /// invalid packet, in one sentence with the file and the offset.
    base::expected<std::optional<View>> next() {
        DAQLOOM_TRY(packet, reader_.next());
        packet_ = packet;
        if (packet_.empty()) {
            return std::nullopt;
        }
        const auto view = View::decode(packet_);
        if (!view) {
            return reader_.failure(view.error().message);
        }
        return *view;
    }
    /// Skips after a failure: see PacketReader.
    base::expected<base::Bytes> skip() { return reader_.skip(); }
    base::expected<base::Bytes> skip_from(base::Bytes offset) { return reader_.skip_from(offset); }
    base::expected<void> rewind() { return reader_.rewind(); }

    /// Bytes and file offset of the last packet.
    [[nodiscard]] std::span<const std::uint8_t> packet() const { return packet_; }
    [[nodiscard]] base::Bytes offset() const { return reader_.offset(); }

  private:
    explicit PacketFile(PacketReader reader) : reader_(std::move(reader)) {}

    PacketReader reader_;
    std::span<const std::uint8_t> packet_;
};

using MfpFile = PacketFile<protocol::MfpView>;
using MepFile = PacketFile<protocol::MepView>;

/// Writes a file of packets that appears under its name only when it is complete and on the disk.
/// Until then the file is `path`.part, locked (flock) while it is written. A killed process leaves
/// whole packets there, and at most one that is cut off. A file of MFPs gets an index, if the disk
/// has space for it.
class PacketFileWriter {
  public:
    static constexpr const char* ending = ".part";

    /// Also fails where `path`.part exists.
    static base::expected<PacketFileWriter> create(std::string path);
    PacketFileWriter(PacketFileWriter&&) noexcept = default;
    PacketFileWriter& operator=(PacketFileWriter&&) = delete;
    /// Removes the file unless it was committed.
    ~PacketFileWriter();

    /// Appends one whole packet. False: the disk has no space for it, the file contains none of its
    /// bytes, and later packets are refused.
    bool append(std::span<const std::uint8_t> packet);
    /// Completes the file. Called once. On failure, the file keeps its name ending in .part.
    [[nodiscard]] base::expected<void> commit();

    /// errno of the first failure; 0: no failure.
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] base::Bytes bytes() const { return bytes_; }

  private:
    PacketFileWriter(std::string path, OwnedFd file)
        : path_(std::move(path)), file_(std::move(file)) {}

    [[nodiscard]] std::string part() const { return path_ + ending; }

    std::string path_;
    OwnedFd file_;  ///< none once committed or moved from
    std::uint64_t packets_ = 0;
    std::vector<IndexEntry> index_;
    base::Bytes bytes_ = 0;
    base::Bytes on_its_way_ = 0;  ///< bytes being written to the disk
    int error_ = 0;
    bool is_cut_ = false;  ///< ends with a part of a packet that could not be removed
};

}  // namespace daqloom::live
