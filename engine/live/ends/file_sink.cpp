#include "live/ends/file_sink.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "live/ends/packet_file.hpp"
#include "live/memory/clock.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mfp.hpp"

namespace daqloom::live {

namespace {

namespace fs = std::filesystem;

constexpr base::Time kPause = base::seconds(1);  ///< after a failure

struct Held {
    std::uint64_t mep;
    bool is_complete;
    bool operator==(const Held&) const = default;
};

/// Writes the MFPs of a stream to files PREFIX-0001.mfp, PREFIX-0002.mfp, …
class FileSeries {
  public:
    FileSeries(std::string prefix, base::Bytes bytes_per_file, FileCounters& counters)
        : prefix_(std::move(prefix)), bytes_per_file_(bytes_per_file), counters_(&counters) {}

    /// Appends an MFP of MEP `mep`. False: the MFP is lost.
    bool append(std::span<const std::uint8_t> packet, const Held& mep) {
        if (file_ && file_->bytes() >= bytes_per_file_) {
            finish();
        }
        if (!file_ && !open()) {
            lose(1);
            return false;
        }
        if (!file_->append(packet)) {
            error_ = file_->error();
            lose(1);
            finish();
            not_before_ = now() + kPause;
            return false;
        }
        held_.push_back(mep);
        return true;
    }

    void finish() {
        if (!file_) {
            return;
        }
        if (file_->packets() == 0) {
            file_.reset();
            return;
        }
        if (file_->commit()) {
            counters_->files.add(1);
            counters_->packets.add(file_->packets());
        } else {
            error_ = file_->error();
            lose(file_->packets());
            lost_.insert(lost_.end(), held_.begin(), held_.end());
            not_before_ = now() + kPause;
        }
        held_.clear();
        file_.reset();
    }

    /// Returns, and removes, the MEPs of files that could not be finished.
    std::vector<Held> take_lost() { return std::exchange(lost_, {}); }

    /// Drops MEPs that are already counted as lost.
    void forget(const std::unordered_set<std::uint64_t>& meps) {
        std::erase_if(held_, [&](const Held& held) { return meps.contains(held.mep); });
    }
    void forget_last(const Held& mep) {
        if (!held_.empty() && held_.back() == mep) {
            held_.pop_back();
        }
    }

  private:
    bool open() {
        if (now() < not_before_) {
            return false;
        }
        // Skip the names of existing files, finished or not.
        std::error_code ignored;
        std::string path;
        do {
            path = fmt::format("{}-{:04}.mfp", prefix_, ++number_);
        } while (fs::exists(path, ignored) || fs::exists(path + PacketFileWriter::ending, ignored));
        errno = 0;
        auto file = PacketFileWriter::create(path);
        if (!file) {
            error_ = errno;
            --number_;
            not_before_ = now() + kPause;
            return false;
        }
        file_.emplace(std::move(*file));
        return true;
    }

    void lose(std::uint64_t packets) {
        const auto error = static_cast<std::size_t>(error_);
        counters_->lost[error < FileCounters::errors ? error : 0].add(packets);
    }

    std::string prefix_;
    base::Bytes bytes_per_file_;
    FileCounters* counters_;
    std::optional<PacketFileWriter> file_;
    std::vector<Held> held_;  ///< MEPs of the file's packets
    std::vector<Held> lost_;
    std::uint64_t number_ = 0;
    base::Time not_before_ = base::Time::zero();
    int error_ = 0;  ///< errno of the last failure
};

class WriteFiles final : public MepConsumer {
  public:
    WriteFiles(FileSinkConfig config, FileCounters& counters, NodeCounters& unit)
        : config_(std::move(config)), counters_(&counters), unit_(&unit) {
        look_at_disk();
    }

    void consume(std::uint64_t mep, std::span<const std::uint8_t> bytes) override {
        look_at_disk();
        const auto view = protocol::MepView::decode(bytes);
        if (!view || !is_readable(*view)) {
            counters_->lost[EBADMSG].add(1);
            count({mep, true});
            return;
        }
        const Held held{mep, view->is_complete()};
        if (!write_each(*view, held)) {
            count(held);
            for (auto& [source_id, series] : series_) {
                series.forget_last(held);
            }
        }
        count_unfinished();
    }
    void finish() override {
        for (auto& [source_id, series] : series_) {
            series.finish();
        }
        count_unfinished();
    }

  private:
    /// Whether each MFP agrees with the MEP's table: the MFP can be read from a file, and has the
    /// events of the MEP.
    static bool is_readable(const protocol::MepView& mep) {
        for (std::uint32_t stream = 0; stream < mep.streams(); ++stream) {
            const auto mfp = mep.mfp(stream);
            if (mfp.empty()) {
                continue;
            }
            const auto view = protocol::MfpView::decode(mfp);
            if (!view || view->bytes() != std::ssize(mfp) ||
                view->header().source_id != mep.entry(stream).source_id ||
                view->header().event_id != mep.header().event_id) {
                return false;
            }
        }
        return true;
    }
    bool write_each(const protocol::MepView& mep, const Held& held) {
        bool is_written = true;
        for (std::uint32_t stream = 0; stream < mep.streams(); ++stream) {
            if (const auto mfp = mep.mfp(stream); !mfp.empty()) {
                is_written &= series_of(mep.entry(stream).source_id).append(mfp, held);
            }
        }
        return is_written;
    }
    FileSeries& series_of(std::uint16_t source_id) {
        const auto found = series_.find(source_id);
        if (found != series_.end()) {
            return found->second;
        }
        return series_
            .emplace(source_id, FileSeries(fmt::format("{}-source-{}", config_.prefix, source_id),
                                           config_.bytes_per_file, *counters_))
            .first->second;
    }

    /// Reads the free space of the file system, at most once a second.
    void look_at_disk() {
        struct statvfs disk {};
        if (const base::Time here = now(); here >= look_at_) {
            look_at_ = here + kPause;
            const auto folder = fs::path(config_.prefix).parent_path();
            if (::statvfs(folder.empty() ? "." : folder.c_str(), &disk) == 0) {
                counters_->free_bytes.set(std::uint64_t{disk.f_bavail} * disk.f_frsize);
            }
        }
    }
    void count(const Held& mep) {
        unit_->meps_not_written.add(1);
        unit_->incomplete_meps_not_written.add(mep.is_complete ? 0U : 1U);
    }
    /// Counts each MEP in unfinished files once: several streams' files have its MFPs.
    void count_unfinished() {
        std::unordered_set<std::uint64_t> meps;
        for (auto& [source_id, series] : series_) {
            for (const Held& each : series.take_lost()) {
                if (meps.insert(each.mep).second) {
                    count(each);
                }
            }
        }
        if (!meps.empty()) {
            for (auto& [source_id, series] : series_) {
                series.forget(meps);
            }
        }
    }

    FileSinkConfig config_;
    FileCounters* counters_;
    NodeCounters* unit_;
    std::map<std::uint16_t, FileSeries> series_;
    base::Time look_at_ = base::Time::zero();
};

}  // namespace

base::expected<std::unique_ptr<MepConsumer>> write_meps(FileSinkConfig config,
                                                        FileCounters& counters,
                                                        NodeCounters& unit) {
    std::error_code ignored;
    const fs::path folder = fs::path(config.prefix).parent_path();
    DAQLOOM_REFUSE_IF(!folder.empty() && !fs::is_directory(folder, ignored),
                      "no folder {} for the files of built events; make it first, or give one "
                      "that exists",
                      folder.string());
    DAQLOOM_REFUSE_IF(config.bytes_per_file < 1, "{} bytes per file; give at least 1",
                      config.bytes_per_file);
    return std::make_unique<WriteFiles>(std::move(config), counters, unit);
}

}  // namespace daqloom::live
