// An output file that appears under its name only when it is complete.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/expected.hpp"

namespace daqloom::base {

/// Writes to a temporary file in the folder of `path` and renames it to `path` on commit. Without a
/// commit the destructor removes the temporary file, and an existing file `path` stays unchanged.
///
/// A failed write (a full disk) is recorded: later writes do nothing, and commit reports the
/// failure, so that callers need not check each write.
class AtomicFile {
  public:
    /// Fails if no temporary file can be made in the folder of `path`, or if `path` is a directory
    /// or a device, which a rename must not replace.
    static expected<AtomicFile> create(std::string path);

    AtomicFile(AtomicFile&&) noexcept = default;
    AtomicFile& operator=(AtomicFile&& other) noexcept;
    ~AtomicFile() { discard(); }

    void write(std::string_view bytes);
    [[nodiscard]] expected<void> commit();

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };

    AtomicFile(std::string path, std::string part_path, std::FILE* file)
        : path_(std::move(path)), part_path_(std::move(part_path)), file_(file) {}

    void discard() noexcept;
    [[nodiscard]] tl::unexpected<Error> cannot_write(int error) const;

    std::string path_;
    std::string part_path_;
    std::unique_ptr<std::FILE, Close> file_;  ///< null once committed, discarded or moved from
    int error_ = 0;                           ///< errno of the first write that failed
};

}  // namespace daqloom::base
