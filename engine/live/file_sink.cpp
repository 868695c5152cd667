#include "live/file_sink.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "live/clock.hpp"
#include "live/packet_file.hpp"
#include "protocol/mep.hpp"

namespace daqloom::live {

namespace {

namespace fs = std::filesystem;

constexpr base::Time kPause = base::seconds(1);  ///< after a failure

void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) {
    counter.fetch_add(count, std::memory_order_relaxed);
}

/// Packets in files PREFIX-0001.ENDING, PREFIX-0002.ENDING, …
class FileSeries {
  public:
    FileSeries(std::string prefix, std::string ending, base::Bytes bytes_per_file,
               FileCounters& counters)
        : prefix_(std::move(prefix)),
          ending_(std::move(ending)),
          bytes_per_file_(bytes_per_file),
          counters_(&counters) {}

    void append(std::span<const std::uint8_t> packet) {
        if (!file_ && !open()) {
            add(counters_->lost, 1);
            return;
        }
        file_->append(packet);
        if (file_->has_failed() || file_->bytes() >= bytes_per_file_) {
            finish();
        }
    }

    void finish() {
        if (!file_) {
            return;
        }
        const bool is_written = file_->commit().has_value();
        add(is_written ? counters_->files : counters_->failed_files, 1);
        add(is_written ? counters_->packets : counters_->lost, file_->packets());
        add(counters_->bytes, is_written ? static_cast<std::uint64_t>(file_->bytes()) : 0);
        file_.reset();
        not_before_ = is_written ? not_before_ : now() + kPause;
    }

  private:
    bool open() {
        if (now() < not_before_) {
            return false;
        }
        std::error_code ignored;
        std::string path;
        do {
            path = fmt::format("{}-{:04}.{}", prefix_, ++number_, ending_);
        } while (fs::exists(path, ignored));
        auto file = PacketFileWriter::create(path);
        if (!file) {
            --number_;
            add(counters_->failed_files, 1);
            not_before_ = now() + kPause;
            return false;
        }
        file_ = std::move(*file);
        return true;
    }

    std::string prefix_;
    std::string ending_;
    base::Bytes bytes_per_file_;
    FileCounters* counters_;
    std::optional<PacketFileWriter> file_;
    std::uint64_t number_ = 0;
    base::Time not_before_ = base::Time::zero();
};

class WriteMeps final : public MepConsumer {
  public:
    WriteMeps(const FileSinkConfig& config, FileCounters& counters)
        : series_(config.prefix, "mep", config.bytes_per_file, counters) {}

    void consume(std::uint64_t /*mep*/, std::span<const std::uint8_t> bytes) override {
        series_.append(bytes);
    }
    void finish() override { series_.finish(); }

  private:
    FileSeries series_;
};

class WriteMfps final : public MepConsumer {
  public:
    WriteMfps(FileSinkConfig config, FileCounters& counters)
        : config_(std::move(config)), counters_(&counters) {}

    void consume(std::uint64_t /*mep*/, std::span<const std::uint8_t> bytes) override {
        const auto mep = protocol::MepView::decode(bytes);
        if (!mep) {
            add(counters_->lost, 1);
            return;
        }
        for (std::uint32_t source = 0; source < mep->sources(); ++source) {
            if (const auto mfp = mep->mfp(source); !mfp.empty()) {
                series_of(mep->entry(source).source_id).append(mfp);
            }
        }
    }
    void finish() override {
        for (auto& [source, series] : series_) {
            series.finish();
        }
    }

  private:
    FileSeries& series_of(std::uint16_t source) {
        const auto found = series_.find(source);
        return found != series_.end()
                   ? found->second
                   : series_
                         .emplace(source,
                                  FileSeries(fmt::format("{}-source-{}", config_.prefix, source),
                                             "mfp", config_.bytes_per_file, *counters_))
                         .first->second;
    }

    FileSinkConfig config_;
    FileCounters* counters_;
    std::map<std::uint16_t, FileSeries> series_;
};

}  // namespace

base::expected<std::unique_ptr<MepConsumer>> write_meps(FileSinkConfig config,
                                                        FileCounters& counters) {
    std::error_code ignored;
    const fs::path folder = fs::path(config.prefix).parent_path();
    if (!folder.empty() && !fs::is_directory(folder, ignored)) {
        return base::failure(
            fmt::format("no folder {} for the files of built events; make it first, or give one "
                        "that exists",
                        folder.string()));
    }
    if (config.bytes_per_file < 1) {
        return base::failure(
            fmt::format("{} bytes per file; give at least 1", config.bytes_per_file));
    }
    if (config.format == FileFormat::mep) {
        return std::make_unique<WriteMeps>(config, counters);
    }
    return std::make_unique<WriteMfps>(std::move(config), counters);
}

}  // namespace daqloom::live
