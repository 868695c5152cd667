// Files of recorded data: multi-fragment packets (.mfp, of one stream) or multi-event packets
// (.mep), one right after the other and nothing else. Each says itself how long it is, at most 8
// GiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/shared_memory.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mfp.hpp"

namespace daqloom::live {

/// Reads the packets of a file one at a time into memory that is reused. The file is not mapped, so
/// that the reader does not crash if the file is truncated meanwhile.
class PacketReader {
  public:
    using SizeOf = base::expected<base::Bytes> (*)(std::span<const std::uint8_t>);

    /// `size_of` tells a packet's size from its first `front` bytes.
    static base::expected<PacketReader> open(std::string path, base::Bytes front, SizeOf size_of);

    /// Valid until the next call; empty: the file is at its end. Fails for a packet that is cut off
    /// or says that it is longer than the file; then every further call fails.
    base::expected<std::span<const std::uint8_t>> next();
    /// From the first packet on again.
    base::expected<void> rewind();

    /// Of the packet that came last, or did not come.
    [[nodiscard]] base::Bytes offset() const { return offset_; }
    /// An error that names file and offset.
    [[nodiscard]] tl::unexpected<base::Error> failure(const std::string& message) const;

  private:
    PacketReader(std::string path, OwnedFd file, base::Bytes front, SizeOf size_of)
        : path_(std::move(path)), file_(std::move(file)), front_(front), size_of_(size_of) {}

    /// Reads on until there are so many bytes from the current offset, or the file ends.
    base::expected<void> fetch(std::size_t bytes);
    base::expected<void> make_room(std::size_t bytes);
    /// What the file has from the current offset on.
    [[nodiscard]] base::Bytes left() const;
    [[nodiscard]] std::size_t available() const { return end_ - begin_; }

    std::string path_;
    OwnedFd file_;
    base::Bytes front_;
    SizeOf size_of_;
    base::Bytes offset_ = 0;
    std::size_t packet_ = 0;  ///< size of the one that came last
    std::unique_ptr<std::uint8_t[]> buffer_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

/// The same, with each packet decoded and validated.
template <class View>
class PacketFile {
  public:
    static base::expected<PacketFile> open(std::string path);

    /// Valid until the next call; none: the file is at its end. Fails for what is no such packet,
    /// in one sentence with the file and the offset.
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
    base::expected<void> rewind() { return reader_.rewind(); }

    /// Of what came last: its bytes, and where they are in the file.
    [[nodiscard]] std::span<const std::uint8_t> packet() const { return packet_; }
    [[nodiscard]] base::Bytes offset() const { return reader_.offset(); }

  private:
    explicit PacketFile(PacketReader reader) : reader_(std::move(reader)) {}

    PacketReader reader_;
    std::span<const std::uint8_t> packet_;
};

using MfpFile = PacketFile<protocol::MfpView>;
using MepFile = PacketFile<protocol::MepView>;

/// A file of packets that appears under its name when it is complete and on the disk, or not at
/// all; until then it is `path`.part, locked (flock) for as long as somebody writes it. What a
/// process that is killed leaves there are whole packets and at most one that is cut off.
class PacketFileWriter {
  public:
    static constexpr const char* ending = ".part";

    /// Fails, as well, where a `path`.part is there already.
    static base::expected<PacketFileWriter> create(std::string path);
    PacketFileWriter(PacketFileWriter&&) noexcept = default;
    PacketFileWriter& operator=(PacketFileWriter&&) = delete;
    /// Without a commit nothing is left.
    ~PacketFileWriter();

    /// One whole packet. False: there was no room for all of it, nothing of it is in the file, and
    /// nothing more is taken.
    bool append(std::span<const std::uint8_t> packet);
    /// Once. If it fails, what is there stays under the name ending in .part.
    [[nodiscard]] base::expected<void> commit();

    /// errno of what failed first; 0: nothing has.
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
    base::Bytes bytes_ = 0;
    base::Bytes on_its_way_ = 0;  ///< to the disk
    int error_ = 0;
    bool is_cut_ = false;  ///< it ends with a part of a packet that could not be taken away
};

}  // namespace daqloom::live
