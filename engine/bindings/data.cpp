// Packets, generated data and their files, for Python. Errors are ValueError with one sentence.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/errors.hpp"
#include "bindings/report.hpp"
#include "bindings/subjects.hpp"
#include "live/ends/packet_file.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mep_check.hpp"
#include "protocol/data/mep_layout.hpp"
#include "protocol/data/mfp.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace protocol;
using base::Bytes;

namespace {

/// An object with the buffer protocol.
class Buffer : public nb::object {
  public:
    NB_OBJECT(Buffer, nb::object, "typing_extensions.Buffer", PyObject_CheckBuffer)
};

/// The bytes of a Python buffer, which stays locked while this object lives.
class BytesOf {
  public:
    explicit BytesOf(const Buffer& object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
            throw nb::python_error();
        }
    }
    BytesOf(BytesOf&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
    BytesOf& operator=(BytesOf&&) = delete;
    ~BytesOf() {
        if (view_.obj != nullptr) {
            PyBuffer_Release(&view_);
        }
    }
    [[nodiscard]] std::span<const std::uint8_t> operator()() const {
        return {static_cast<const std::uint8_t*>(view_.buf), static_cast<std::size_t>(view_.len)};
    }

  private:
    Py_buffer view_{};
};

/// Makes a bytes object of `size` bytes, which `write` fills.
template <class Write>
nb::bytes new_bytes(Bytes size, const Write& write) {
    auto object = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, size));
    if (!object.is_valid()) {
        throw nb::python_error();
    }
    auto* data = reinterpret_cast<std::uint8_t*>(PyBytes_AsString(object.ptr()));
    write(std::span<std::uint8_t>(data, static_cast<std::size_t>(size)));
    return object;
}

nb::bytes new_bytes(std::span<const std::uint8_t> bytes) {
    return nb::bytes(bytes.data(), bytes.size());
}

// ---- packets ---------------------------------------------------------------------------------

/// Header of an MFP, and the size of the MFP.
struct MfpFront : MfpHeader {
    std::uint32_t count = 0;
    Bytes bytes = 0;
};

MfpFront decode_mfp_of(const Buffer& data) {
    const BytesOf bytes(data);
    const MfpView view = value_of(MfpView::decode(bytes()));
    return {view.header(), view.count(), view.bytes()};
}

nb::bytes encode_mfp_of(std::uint64_t event_id, std::uint16_t source_id, std::uint8_t align,
                        std::uint8_t version,
                        const std::vector<std::pair<std::uint8_t, Buffer>>& given) {
    std::vector<BytesOf> payloads;
    std::vector<MfpFragment> fragments;
    payloads.reserve(given.size());
    fragments.reserve(given.size());
    const std::uint8_t shift = std::min(align, largest_mfp_align);
    Bytes size = 20 + 4 * static_cast<Bytes>(given.size()) + 8;
    for (const auto& [type, payload] : given) {
        payloads.emplace_back(payload);
        fragments.push_back({type, payloads.back()()});
        size += aligned(static_cast<Bytes>(fragments.back().payload.size()), Bytes{1} << shift);
    }
    auto memory = std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(size));
    const std::span<std::uint8_t> out(memory.get(), static_cast<std::size_t>(size));
    const Bytes written = value_of(encode_mfp(
        {.event_id = event_id, .source_id = source_id, .align = align, .version = version},
        fragments, out));
    return new_bytes(out.first(static_cast<std::size_t>(written)));
}

/// Front of a MEP: header and table.
struct MepFront : MepHeader {
    std::vector<MepEntry> entries;
};

MepFront decode_mep_of(const Buffer& data) {
    const BytesOf bytes(data);
    const MepView view = value_of(MepView::decode(bytes()));
    MepFront front{view.header(), {}};
    front.entries.reserve(view.streams());
    for (std::uint32_t stream = 0; stream < view.streams(); ++stream) {
        front.entries.push_back(view.entry(stream));
    }
    return front;
}

/// Encodes a MEP. `given`: a tuple of source id, state and MFP for each stream.
nb::bytes encode_mep_of(std::uint64_t mep, std::uint64_t event_id, std::uint32_t events,
                        const std::vector<std::tuple<std::uint16_t, MepState, Buffer>>& given) {
    std::vector<BytesOf> mfps;
    std::vector<Bytes> sizes;
    mfps.reserve(given.size());
    for (const auto& each : given) {
        mfps.emplace_back(std::get<Buffer>(each));
        sizes.push_back(static_cast<Bytes>(mfps.back()().size()));
    }
    std::vector<Bytes> offsets(sizes.size());
    const Bytes front = mep_overhead(static_cast<std::uint32_t>(sizes.size()));
    const Bytes size = lay_out({.header = front, .alignment = 8}, sizes, offsets);
    std::vector<MepEntry> entries;
    for (std::size_t i = 0; i < given.size(); ++i) {
        entries.push_back({.offset = offsets[i],
                           .bytes = sizes[i],
                           .source_id = std::get<0>(given[i]),
                           .state = std::get<1>(given[i])});
    }
    return new_bytes(size, [&](std::span<std::uint8_t> memory) {
        std::ranges::fill(memory, std::uint8_t{0});
        for (std::size_t i = 0; i < mfps.size(); ++i) {
            std::ranges::copy(mfps[i](), memory.begin() + offsets[i]);
        }
        value_of(encode_mep({.mep = MepId{mep}, .event_id = event_id, .events = events}, entries,
                            memory));
    });
}

void bind_mfp(nb::module_& module) {
    nb::class_<MfpFront>(module, "MfpHeader", "Header of an MFP.")
        .def_ro("event_id", &MfpFront::event_id, "Number of the event of the first fragment.")
        .def_ro("source_id", &MfpFront::source_id,
                "Source id: number of the stream of all fragments.")
        .def_ro("align", &MfpFront::align, "Base-2 logarithm of the alignment of fragments (B).")
        .def_ro("version", &MfpFront::version)
        .def_ro("count", &MfpFront::count, "Number of fragments.")
        .def_ro("nbytes", &MfpFront::bytes, "Size of the packet (B).");
    module.def("decode_mfp", &decode_mfp_of, nb::arg("data"),
               "The header of the MFP at the front of `data`. Raises ValueError unless the MFP is "
               "complete and well-formed.");
    module.def("encode_mfp", &encode_mfp_of, nb::arg("event_id"), nb::arg("source_id"),
               nb::arg("align"), nb::arg("version"), nb::arg("fragments"),
               "An MFP of these fragments: (type, payload) each. Raises ValueError for what an MFP "
               "cannot say.");
}

void bind_mep(nb::module_& module) {
    nb::enum_<MepState>(module, "MepState", nb::is_arithmetic(), "State of a stream in a MEP.")
        .value("COMPLETE", MepState::complete, "The MFP.")
        .value("MISSING", MepState::missing,
               "No MFP: the readout unit was lost before it had written one.")
        .value("EMPTY", MepState::empty, "No MFP: the stream had none for these events.");
    nb::class_<MepEntry>(module, "MepEntry", "Entry of a stream in the table of a MEP.")
        .def_ro("offset", &MepEntry::offset, "Offset of the MFP in the MEP (B).")
        .def_ro("nbytes", &MepEntry::bytes, "Size of the MFP (B).")
        .def_ro("source_id", &MepEntry::source_id, "Source id: number of the stream.")
        .def_ro("state", &MepEntry::state, "Whether the MFP is there.");
    nb::class_<MepFront>(module, "MepHeader", "Header of a MEP.")
        .def_prop_ro(
            "number", [](const MepFront& self) { return static_cast<std::uint64_t>(self.mep); },
            "Number of the MEP in its run.")
        .def_ro("event_id", &MepFront::event_id, "Number of its first event.")
        .def_ro("events", &MepFront::events, "Number of events.")
        .def_ro("entries", &MepFront::entries, "Table of the MEP: an entry for each stream.");
    module.def("decode_mep", &decode_mep_of, nb::arg("data"),
               "Header and table of the MEP `data`. Raises ValueError unless every MFP lies within "
               "the MEP and overlaps no other.");
    module.def("encode_mep", &encode_mep_of, nb::arg("mep"), nb::arg("event_id"), nb::arg("events"),
               nb::arg("mfps"),
               "A MEP of these MFPs: (source id, state, MFP) each, with no bytes where there is "
               "none. Raises ValueError for values out of the range of a MEP.");
}

// ---- generated data --------------------------------------------------------------------------

/// A table of sizes that several generators share.
using Sizes = std::shared_ptr<const PatternSizes>;
struct SharedSizes {
    Sizes sizes;
};

Sizes make_sizes(FragmentSizes kind, Bytes mean, std::uint64_t seed) {
    if (mean < 0 || mean > PatternSizes::largest_mean) {
        throw nb::value_error(("mean fragment size of " + std::to_string(mean) +
                               " bytes; give 0 to " + std::to_string(PatternSizes::largest_mean))
                                  .c_str());
    }
    return std::make_shared<PatternSizes>(kind, mean, seed);
}

nb::bytes generate(const MfpGenerator& self, std::uint64_t event) {
    return new_bytes(self.bytes_of(event), [&](std::span<std::uint8_t> memory) {
        value_of(self.generate(event, memory));
    });
}

void bind_generator(nb::module_& module) {
    nb::class_<SharedSizes>(module, "PatternSizes")
        .def(
            "__init__",
            [](SharedSizes* self, FragmentSizes kind, Bytes mean, std::uint64_t seed) {
                new (self) SharedSizes{make_sizes(kind, mean, seed)};
            },
            nb::arg("kind"), nb::arg("mean"), nb::arg("seed"))
        .def_prop_ro("largest", [](const SharedSizes& self) { return self.sizes->largest(); });
    nb::class_<MfpGenerator>(module, "MfpGenerator")
        .def(
            "__init__",
            [](MfpGenerator* self, std::uint16_t source_id, std::uint32_t packing,
               std::uint8_t align, const SharedSizes& sizes) {
                new (self) MfpGenerator(value_of(MfpGenerator::make({.source_id = source_id,
                                                                     .packing = packing,
                                                                     .align = align,
                                                                     .sizes = sizes.sizes})));
            },
            nb::arg("source_id"), nb::arg("packing"), nb::arg("align"), nb::arg("sizes"))
        .def_prop_ro("source_id", &MfpGenerator::source_id)
        .def_prop_ro("packing", &MfpGenerator::packing)
        .def_prop_ro("largest", &MfpGenerator::largest)
        .def("bytes_of", &MfpGenerator::bytes_of, nb::arg("event"))
        .def("generate", &generate, nb::arg("event"));
}

std::optional<std::string_view> in_words(DataFault fault) {
    return fault == DataFault::none ? std::nullopt : std::optional(name_of(fault));
}

void bind_check(nb::module_& module) {
    bind_report<DataCheck>(module, "DataCheck", "Comparison of data with the generated pattern.")
        .def_prop_ro(
            "fault", [](const DataCheck& self) { return in_words(self.fault); },
            "The first fault, in words; later data are not checked.");
    module.def(
        "check_mfp",
        [](const MfpGenerator& stream, std::uint64_t event, const Buffer& data) {
            return check_mfp(stream, event, BytesOf(data)());
        },
        nb::arg("stream"), nb::arg("event"), nb::arg("data"));
    module.def(
        "check_mep",
        [](const std::vector<MfpGenerator>& streams, const Buffer& data) {
            return check_mep(streams, BytesOf(data)());
        },
        nb::arg("streams"), nb::arg("data"));
    nb::class_<PatternScan>(module, "PatternScan",
                            "Generated data found in an MFP of unknown origin.")
        .def_prop_ro(
            "fault", [](const PatternScan& self) { return in_words(self.fault); },
            "The first fault, in words.")
        .def_ro("event", &PatternScan::event, "Number of the event with the fault.")
        .def_ro("offset", &PatternScan::offset, "Offset of the fault in the MFP (B).")
        .def_ro("recognised", &PatternScan::recognised,
                "Fragments of 8 bytes or more that are generated data.");
    module.def(
        "scan_pattern", [](const Buffer& data) { return scan_pattern(BytesOf(data)()); },
        nb::arg("data"));
}

// ---- files -----------------------------------------------------------------------------------

/// The next packet as bytes; None at the end of the file.
template <class File>
std::optional<nb::bytes> next_packet(File& file) {
    if (!value_of(file.next())) {
        return std::nullopt;
    }
    return new_bytes(file.packet());
}

template <class File>
void bind_file(nb::module_& module, const char* name) {
    nb::class_<File>(module, name)
        .def(
            "__init__",
            [](File* self, std::string path) {
                new (self) File(value_of(File::open(std::move(path))));
            },
            nb::arg("path"))
        .def("next", &next_packet<File>,
             "The next packet; None at the end. Raises ValueError at damage.")
        .def(
            "skip", [](File& self) { return value_of(self.skip()); },
            "Skips the damage after a ValueError of `next`; returns the bytes skipped.")
        .def_prop_ro("offset", &File::offset, "Offset of the last packet in the file.");
}

void bind_data(nb::module_& module) {
    bind_mfp(module);
    bind_mep(module);
    bind_generator(module);
    bind_check(module);
    bind_file<live::MfpFile>(module, "MfpFile");
    bind_file<live::MepFile>(module, "MepFile");
}

const Subject packets(bind_data);

}  // namespace

}  // namespace daqloom::bindings
