// Buffers of running units, for Python. Invalid arguments raise ValueError, and failures of the
// process at the other side of a buffer raise ConnectionError, with one sentence.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bindings/casters.hpp"
#include "bindings/errors.hpp"
#include "bindings/subjects.hpp"
#include "live/memory/buffer_client.hpp"
#include "live/memory/buffer_server.hpp"
#include "live/memory/clock.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using live::AttachedBuffer;

namespace {

/// Length of one slice of a wait. Ctrl-C is handled between two slices.
constexpr base::Time kSlice = base::milliseconds(100);

base::Time until(double timeout_s) {
    return live::now() + base::Time::from_seconds(std::clamp(timeout_s, 0.0, 1e6));
}

[[noreturn]] void fail(const std::string& message) {
    PyErr_SetString(PyExc_ConnectionError, message.c_str());
    throw nb::python_error();
}

AttachedBuffer attached(const std::string& name, live::BufferSide side, double timeout_s) {
    const auto attach = [&] {
        const nb::gil_scoped_release release;
        return live::attach_buffer(name, side, until(timeout_s));
    };
    auto made = attach();
    if (!made) {
        fail(made.error().message);
    }
    return std::move(*made);
}

/// Calls `sleep` in slices until `is_done`. Returns false after `timeout_s`.
template <class Sleep, class Done>
bool wait(double timeout_s, const Sleep& sleep, const Done& is_done) {
    const base::Time deadline = until(timeout_s);
    while (!is_done()) {
        if (live::now() >= deadline) {
            return false;
        }
        {
            const nb::gil_scoped_release release;
            sleep(std::min(deadline, live::now() + kSlice));
        }
        if (PyErr_CheckSignals() != 0) {
            throw nb::python_error();
        }
    }
    return true;
}

class Writer {
  public:
    using Bytes = nb::ndarray<nb::memview, std::uint8_t, nb::ndim<1>, nb::c_contig>;

    Writer(const std::string& name, double timeout_s)
        : unit_(attached(name, live::BufferSide::writer, timeout_s)), writer_(unit_.buffer()) {}

    static std::optional<Bytes> reserve(nb::pointer_and_handle<Writer> self, std::int64_t bytes) {
        if (bytes < 0) {
            throw nb::value_error("a negative number of bytes; give 0 or more");
        }
        self.p->acknowledged_ = self.p->writer_.acknowledged();
        const auto room = self.p->writer_.reserve(bytes);
        return room ? std::optional(Bytes(room->data(), {room->size()}, self.h)) : std::nullopt;
    }
    void commit(std::uint64_t tag, std::int64_t bytes) { writer_.commit(tag, bytes); }
    void close() { writer_.close(); }
    bool wait_for_room(double timeout_s) {
        return wait(
            timeout_s, [this](base::Time deadline) { writer_.wait(acknowledged_, deadline); },
            [this] { return writer_.acknowledged() != acknowledged_ || unit_.is_abandoned(); });
    }
    [[nodiscard]] std::uint64_t committed() const { return writer_.committed(); }
    [[nodiscard]] std::uint64_t acknowledged() const { return writer_.acknowledged(); }
    [[nodiscard]] bool is_abandoned() const { return unit_.is_abandoned(); }

  private:
    AttachedBuffer unit_;
    live::BufferWriter writer_;
    std::uint64_t acknowledged_ = 0;  ///< acknowledged count when there was no room
};

class Reader {
  public:
    using Bytes = nb::ndarray<nb::memview, const std::uint8_t, nb::ndim<1>, nb::c_contig>;

    Reader(const std::string& name, double timeout_s, bool samples)
        : unit_(attached(name, samples ? live::BufferSide::sampler : live::BufferSide::reader,
                         timeout_s)),
          reader_(unit_.buffer()) {}

    static std::optional<std::pair<std::uint64_t, Bytes>> next(
        nb::pointer_and_handle<Reader> self) {
        const auto piece = self.p->reader_.next();
        if (self.p->reader_.is_broken()) {
            fail("the buffer's writer has damaged it; end both sides and start again");
        }
        if (!piece) {
            return std::nullopt;
        }
        return std::pair(piece->tag, Bytes(piece->bytes.data(), {piece->bytes.size()}, self.h));
    }
    bool acknowledge() { return reader_.acknowledge(); }
    bool wait_for_piece(double timeout_s) {
        return wait(
            timeout_s, [this](base::Time deadline) { reader_.wait(deadline); },
            [this] { return reader_.has_next() || reader_.is_at_end() || unit_.is_abandoned(); });
    }
    [[nodiscard]] std::uint64_t outstanding() const { return reader_.outstanding(); }
    [[nodiscard]] bool is_at_end() const { return reader_.is_at_end(); }
    [[nodiscard]] bool is_revoked() const { return reader_.is_revoked(); }
    [[nodiscard]] bool is_abandoned() const { return unit_.is_abandoned(); }

  private:
    AttachedBuffer unit_;
    live::BufferReader reader_;
};

/// A buffer that this process serves.
class ServedBuffer {
  public:
    ServedBuffer(const std::string& name, std::int64_t bytes, std::uint32_t pieces) {
        buffer_ = std::make_unique<live::Buffer>(
            value_of(live::Buffer::create({.name = "daqloom", .bytes = bytes, .pieces = pieces})));
        server_ = value_of(live::BufferServer::serve(
            {{.name = name, .buffer = buffer_.get(), .side = live::BufferSide::writer},
             {.name = name, .buffer = buffer_.get(), .side = live::BufferSide::reader}}));
    }
    void close() { server_.reset(); }

  private:
    std::unique_ptr<live::Buffer> buffer_;
    std::unique_ptr<live::BufferServer> server_;
};

void bind_buffers(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<Writer>(module, "BufferWriter",
                       "The writing side of a unit's buffer. Waits up to `timeout_s` for the unit. "
                       "ConnectionError if the unit does not come, or this side is in use. Not for "
                       "several threads at once.")
        .def(nb::init<const std::string&, double>(), "name"_a, "timeout_s"_a = 10.0)
        .def("reserve", &Writer::reserve, "bytes"_a,
             "Reserves room for a piece of up to this size, valid until the next `reserve` or "
             "`commit`; None: no room until the other side acknowledges.")
        .def("commit", &Writer::commit, "tag"_a, "bytes"_a,
             "Commits the first bytes of the reserved room as a piece; `tag`: number of the MFP.")
        .def("wait", &Writer::wait_for_room, "timeout_s"_a,
             "Sleeps until more is acknowledged than at the last failed `reserve`, or the unit is "
             "gone.")
        .def("close", &Writer::close,
             "Closes the buffer: the reader reaches the end after the last committed piece.")
        .def_prop_ro("committed", &Writer::committed,
                     "Number of pieces committed, by earlier writers as well.")
        .def_prop_ro("acknowledged", &Writer::acknowledged,
                     "Number of pieces acknowledged by the reader.")
        .def_prop_ro("is_abandoned", &Writer::is_abandoned, "The unit is gone.");
    nb::class_<Reader>(
        module, "BufferReader",
        "The reading side of a unit's buffer. A new reader reads the pieces again "
        "that the one before had not acknowledged. With `samples` it reads copies of some "
        "pieces. Otherwise as BufferWriter.")
        .def(nb::init<const std::string&, double, bool>(), "name"_a, "timeout_s"_a = 10.0,
             "samples"_a = false)
        .def("next", &Reader::next,
             "Tag and bytes of the next piece, valid until it is acknowledged; None: there is none "
             "yet. ConnectionError if the writer has damaged the buffer.")
        .def("acknowledge", &Reader::acknowledge,
             "Acknowledges the oldest piece read. False: there is none, or this side was revoked "
             "and "
             "the piece given to another consumer.")
        .def(
            "wait", &Reader::wait_for_piece, "timeout_s"_a,
            "Sleeps until there is a piece, the end, or the unit is gone. False after the timeout.")
        .def_prop_ro("outstanding", &Reader::outstanding,
                     "Number of pieces read and not acknowledged.")
        .def_prop_ro(
            "is_at_end", &Reader::is_at_end,
            "Whether the writer has closed the buffer and all pieces are read, or this side "
            "was revoked.")
        .def_prop_ro("is_revoked", &Reader::is_revoked,
                     "Whether the unit has taken this side from its process.")
        .def_prop_ro("is_abandoned", &Reader::is_abandoned, "The unit is gone.");
    nb::class_<ServedBuffer>(module, "ServedBuffer")
        .def(nb::init<const std::string&, std::int64_t, std::uint32_t>(), "name"_a, "bytes"_a,
             "pieces"_a)
        .def("close", &ServedBuffer::close,
             "Closes the buffer; both sides detect that it is gone.");
}

const Subject buffers(bind_buffers);

}  // namespace

}  // namespace daqloom::bindings
