// Packets, generated data and their files, for Python. Errors are ValueError with one sentence.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/systems.hpp"
#include "live/packet_file.hpp"
#include "protocol/mep.hpp"
#include "protocol/mep_check.hpp"
#include "protocol/mep_layout.hpp"
#include "protocol/mfp.hpp"
#include "protocol/mfp_generator.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace protocol;
using base::Bytes;

namespace {

template <class T>
T value_of(base::expected<T>&& result) {
    if (!result) {
        throw nb::value_error(result.error().message.c_str());
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}

/// The bytes of anything with the buffer protocol, while this lives.
class BytesOf {
  public:
    explicit BytesOf(nb::handle object) {
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

/// Bytes of this size, of which `write` fills what it returns the size of.
template <class Write>
nb::object new_bytes(Bytes size, const Write& write) {
    auto object = nb::steal<nb::object>(PyBytes_FromStringAndSize(nullptr, size));
    if (!object) {
        throw nb::python_error();
    }
    auto* data = reinterpret_cast<std::uint8_t*>(PyBytes_AsString(object.ptr()));
    write(std::span<std::uint8_t>(data, static_cast<std::size_t>(size)));
    return object;
}

nb::object new_bytes(std::span<const std::uint8_t> bytes) {
    return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// ---- packets ---------------------------------------------------------------------------------

/// (event id, source id, align, version, count, bytes)
nb::tuple decode_mfp_of(nb::handle data) {
    const BytesOf bytes(data);
    const MfpView view = value_of(MfpView::decode(bytes()));
    const MfpHeader& header = view.header();
    return nb::make_tuple(header.event_id, header.source_id, header.align, header.version,
                          view.count(), view.bytes());
}

nb::object encode_mfp_of(std::uint64_t event_id, std::uint16_t source_id, std::uint8_t align,
                         std::uint8_t version,
                         const std::vector<std::pair<std::uint8_t, nb::object>>& given) {
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

/// (MEP number, first event id, events, [(offset, bytes, source id, state), …])
nb::tuple decode_mep_of(nb::handle data) {
    const BytesOf bytes(data);
    const MepView view = value_of(MepView::decode(bytes()));
    nb::list entries;
    for (std::uint32_t source = 0; source < view.sources(); ++source) {
        const MepEntry entry = view.entry(source);
        entries.append(nb::make_tuple(entry.offset, entry.bytes, entry.source_id,
                                      static_cast<std::uint16_t>(entry.state)));
    }
    return nb::make_tuple(static_cast<std::uint64_t>(view.header().mep), view.header().event_id,
                          view.header().events, entries);
}

/// `given`: (source id, state, MFP) each.
nb::object encode_mep_of(
    std::uint64_t mep, std::uint64_t event_id, std::uint32_t events,
    const std::vector<std::tuple<std::uint16_t, std::uint16_t, nb::object>>& given) {
    std::vector<BytesOf> mfps;
    std::vector<Bytes> sizes;
    mfps.reserve(given.size());
    for (const auto& each : given) {
        mfps.emplace_back(std::get<nb::object>(each));
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
                           .state = static_cast<MepState>(std::get<1>(given[i]))});
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

void bind_packets(nb::module_& module) {
    module.def("decode_mfp", &decode_mfp_of, nb::arg("data"));
    module.def("encode_mfp", &encode_mfp_of, nb::arg("event_id"), nb::arg("source_id"),
               nb::arg("align"), nb::arg("version"), nb::arg("fragments"));
    module.def("decode_mep", &decode_mep_of, nb::arg("data"));
    module.def("encode_mep", &encode_mep_of, nb::arg("mep"), nb::arg("event_id"), nb::arg("events"),
               nb::arg("mfps"));
}

// ---- generated data --------------------------------------------------------------------------

/// A table of sizes that several generators share.
using Sizes = std::shared_ptr<const PatternSizes>;
struct SharedSizes {
    Sizes sizes;
};

Sizes make_sizes(bool is_poissonian, Bytes mean, std::uint64_t seed) {
    if (mean < 0 || mean > PatternSizes::largest_mean) {
        throw nb::value_error(("mean fragment size of " + std::to_string(mean) +
                               " bytes; give 0 to " + std::to_string(PatternSizes::largest_mean))
                                  .c_str());
    }
    const auto kind = is_poissonian ? FragmentSizes::poisson : FragmentSizes::fixed;
    return std::make_shared<PatternSizes>(kind, mean, seed);
}

nb::object generate(const MfpGenerator& self, std::uint64_t event) {
    return new_bytes(self.bytes_of(event), [&](std::span<std::uint8_t> memory) {
        value_of(self.generate(event, memory));
    });
}

void bind_generator(nb::module_& module) {
    nb::class_<SharedSizes>(module, "PatternSizes")
        .def(
            "__init__",
            [](SharedSizes* self, bool is_poissonian, Bytes mean, std::uint64_t seed) {
                new (self) SharedSizes{make_sizes(is_poissonian, mean, seed)};
            },
            nb::arg("is_poissonian"), nb::arg("mean"), nb::arg("seed"))
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

nb::object in_words(DataFault fault) {
    return fault == DataFault::none ? nb::object(nb::none()) : nb::cast(name_of(fault));
}

void bind_check(nb::module_& module) {
    nb::class_<DataCheck>(module, "DataCheck")
        .def_prop_ro("fault", [](const DataCheck& self) { return in_words(self.fault); })
        .def_ro("source", &DataCheck::source)
        .def_ro("event", &DataCheck::event)
        .def_ro("offset", &DataCheck::offset)
        .def_ro("mfps", &DataCheck::mfps)
        .def_ro("absent", &DataCheck::absent)
        .def_ro("fragments", &DataCheck::fragments)
        .def_ro("fragment_bytes", &DataCheck::fragment_bytes);
    module.def(
        "check_mfp",
        [](const MfpGenerator& source, std::uint64_t event, nb::handle data) {
            return check_mfp(source, event, BytesOf(data)());
        },
        nb::arg("source"), nb::arg("event"), nb::arg("data"));
    module.def(
        "check_mep",
        [](const std::vector<MfpGenerator>& sources, nb::handle data) {
            return check_mep(sources, BytesOf(data)());
        },
        nb::arg("sources"), nb::arg("data"));
    nb::class_<PatternScan>(module, "PatternScan")
        .def_prop_ro("fault", [](const PatternScan& self) { return in_words(self.fault); })
        .def_ro("event", &PatternScan::event)
        .def_ro("offset", &PatternScan::offset)
        .def_ro("recognised", &PatternScan::recognised);
    module.def(
        "scan_pattern", [](nb::handle data) { return scan_pattern(BytesOf(data)()); },
        nb::arg("data"));
}

// ---- files -----------------------------------------------------------------------------------

/// The next packet as bytes; None at the end of the file.
template <class File>
nb::object next_packet(File& file) {
    if (!value_of(file.next())) {
        return nb::none();
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
        .def("next", &next_packet<File>, "The next packet; None at the end.")
        .def_prop_ro("offset", &File::offset, "Where the packet is that came last.");
}

}  // namespace

void bind_data(nb::module_& module) {
    bind_packets(module);
    bind_generator(module);
    bind_check(module);
    bind_file<live::MfpFile>(module, "MfpFile");
    bind_file<live::MepFile>(module, "MepFile");
}

}  // namespace daqloom::bindings
