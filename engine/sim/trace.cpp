#include "sim/trace.hpp"

#include <fmt/format.h>

#include <iterator>

namespace daqloom::sim {
namespace {

/// JSON string of `text`, with quotes. Bytes above 127 are kept, as names are UTF-8.
std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
            out += c;
        }
    }
    return out += '"';
}

/// Time in microseconds, as the format requires; six decimals keep the picosecond.
std::string microseconds(base::Time t) {
    const auto* sign = t.ps < 0 ? "-" : "";
    const auto ps =
        t.ps < 0 ? 0 - static_cast<std::uint64_t>(t.ps) : static_cast<std::uint64_t>(t.ps);
    return fmt::format("{}{}.{:06}", sign, ps / 1'000'000, ps % 1'000'000);
}

}  // namespace

base::expected<TraceWriter> TraceWriter::open(std::string path, std::uint64_t max_entries) {
    return base::AtomicFile::create(std::move(path)).map([&](base::AtomicFile&& file) {
        return TraceWriter(std::move(file), max_entries);
    });
}

TraceWriter::TraceWriter(base::AtomicFile file, std::uint64_t max_entries)
    : file_(std::move(file)), max_entries_(max_entries) {
    file_.write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

TraceWriter::Track TraceWriter::track(std::string_view group, std::string_view row) {
    const auto [g, new_group] =
        groups_.try_emplace(std::string(group), static_cast<std::uint32_t>(groups_.size() + 1));
    const auto [r, new_row] = rows_.try_emplace({g->second, std::string(row)},
                                                static_cast<std::uint32_t>(rows_.size() + 1));
    const Track track{g->second, r->second};
    if (new_group) {
        write_name(track, "process_name", group);
    }
    if (new_row) {
        write_name(track, "thread_name", row);
    }
    return track;
}

void TraceWriter::slice(Track track, std::string_view name, base::Time start, base::Time end,
                        std::initializer_list<Argument> arguments) {
    if (admit()) {
        write(fmt::format(R"("ph":"X","pid":{},"tid":{},"name":{},"ts":{},"dur":{})", track.group,
                          track.row, quoted(name), microseconds(start), microseconds(end - start)),
              arguments);
    }
}

void TraceWriter::instant(Track track, std::string_view name, base::Time at,
                          std::initializer_list<Argument> arguments) {
    if (admit()) {
        write(fmt::format(R"("ph":"i","s":"t","pid":{},"tid":{},"name":{},"ts":{})", track.group,
                          track.row, quoted(name), microseconds(at)),
              arguments);
    }
}

void TraceWriter::counter(Track track, std::string_view name, base::Time at, std::int64_t value) {
    if (admit()) {
        write(fmt::format(R"("ph":"C","pid":{},"tid":{},"name":{},"ts":{})", track.group, track.row,
                          quoted(name), microseconds(at)),
              {{"value", value}});
    }
}

base::expected<void> TraceWriter::close() {
    file_.write(fmt::format("\n],\"otherData\":{{\"left_out\":{}}}}}\n", left_out_));
    return file_.commit();
}

bool TraceWriter::admit() {
    const bool room = entries_ < max_entries_;
    ++(room ? entries_ : left_out_);
    return room;
}

void TraceWriter::write(std::string_view fields, std::initializer_list<Argument> arguments) {
    std::string entry = first_ ? "\n{" : ",\n{";
    first_ = false;
    entry += fields;
    const char* before = ",\"args\":{";
    for (const auto& [name, value] : arguments) {
        fmt::format_to(std::back_inserter(entry), "{}{}:{}", before, quoted(name), value);
        before = ",";
    }
    entry += arguments.size() == 0 ? "}" : "}}";
    file_.write(entry);
}

void TraceWriter::write_name(Track track, std::string_view what, std::string_view name) {
    write(fmt::format(R"("ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}})", track.group,
                      track.row, what, quoted(name)));
}

}  // namespace daqloom::sim
