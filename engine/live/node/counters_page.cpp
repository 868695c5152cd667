#include "live/node/counters_page.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "live/memory/buffer_client.hpp"
#include "live/memory/clock.hpp"
#include "live/memory/counters.hpp"

namespace daqloom::live {

namespace {

/// Hash (FNV-1a) of the names of all counters and histograms, in order: the page's version.
std::uint64_t layout() {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&](const char* name, auto, const char*) {
        for (; *name != '\0'; ++name) {
            hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3;
        }
        hash *= 0x100000001b3;
    };
    NodeCounters::each(add);
    UnitHistograms::each(add);
    return hash ^ sizeof(NodeCounters);
}

struct Page {
    std::uint64_t layout;
    NodeCounters counters;
};
static_assert(std::is_trivially_destructible_v<Page>);

std::string name_of(const std::string& run, UnitIndex unit) {
    return buffer_name(run, unit.value(), "counters");
}

std::string file_of(const std::string& folder, UnitIndex unit) {
    return fmt::format("{}/{}.counters", folder, unit.value());
}

/// Opens the memfd `name` of another process for reading; none if the process has none.
OwnedFd descriptor_of(std::int64_t process, const std::string& name) {
    const std::string target = fmt::format("/memfd:{} (deleted)", name);
    std::error_code failed;
    std::filesystem::directory_iterator at(fmt::format("/proc/{}/fd", process), failed);
    for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
        std::error_code gone;
        if (std::filesystem::read_symlink(at->path(), gone) == target) {
            return OwnedFd(::open(at->path().c_str(), O_RDONLY | O_CLOEXEC));
        }
    }
    return {};
}

}  // namespace

CountersPage::CountersPage(SharedMemory memory)
    : memory_(std::move(memory)),
      counters_(&std::launder(reinterpret_cast<Page*>(memory_.bytes().data()))->counters) {}

base::expected<CountersPage> CountersPage::create(const std::string& run, UnitIndex unit,
                                                  const std::string& folder) {
    constexpr base::Bytes bytes{sizeof(Page)};
    DAQLOOM_TRY(memory, folder.empty() ? SharedMemory::create(name_of(run, unit), bytes)
                                       : SharedMemory::create_file(file_of(folder, unit), bytes));
    new (memory.bytes().data()) Page{.layout = layout(), .counters = {}};
    CountersPage page(std::move(memory));
    page.counters().made_ps.set(static_cast<std::uint64_t>(now().ps));
    return page;
}

base::expected<CountersPage> CountersPage::open(const std::string& folder, UnitIndex unit) {
    DAQLOOM_TRY(memory, SharedMemory::open_file(file_of(folder, unit), base::Bytes{sizeof(Page)}));
    return checked(std::move(memory), file_of(folder, unit));
}

base::expected<CountersPage> CountersPage::attach(std::int64_t process, const std::string& run,
                                                  UnitIndex unit) {
    OwnedFd descriptor = descriptor_of(process, name_of(run, unit));
    if (!descriptor) {
        return base::system_failure(
            fmt::format("process {} has no {}, or is another user's", process, name_of(run, unit)));
    }
    DAQLOOM_TRY(memory, SharedMemory::attach(std::move(descriptor), SharedMemory::Access::read,
                                             base::Bytes{sizeof(Page)}));
    return checked(std::move(memory), name_of(run, unit));
}

base::expected<CountersPage> CountersPage::checked(SharedMemory memory, const std::string& name) {
    std::uint64_t found = 0;
    if (memory.bytes().size() == sizeof(Page)) {
        std::memcpy(&found, memory.bytes().data(), sizeof found);
    }
    if (found != layout()) {
        return base::system_failure(
            fmt::format("{} counts other things than this version of daqloom", name));
    }
    return CountersPage(std::move(memory));
}

void see_counters(const NodeCounters& counted, const SeeCount& see) {
    NodeCounters::each(
        [&](const char* name, auto counter, const char*) { see(name, (counted.*counter).get()); });
    UnitHistograms::each([&](const char* name, auto histogram, const char*) {
        (counted.*histogram).each([&](std::size_t bucket, std::uint64_t count) {
            see(fmt::format("{}{}{}", name, counter_names::kBucket, bucket), count);
        });
    });
    see(counter_names::kSteps.name, counted.mfps_written + counted.mfps_received +
                                        counted.meps_processed + counted.meps_discarded);
}

}  // namespace daqloom::live
