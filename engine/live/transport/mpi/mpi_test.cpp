#include "live/transport/mpi/mpi.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "live/transport/conformance_test.hpp"
#include "live/transport/make.hpp"
#include "live/transport/mpi/remote_test.hpp"

namespace daqloom::live {
namespace {

/// An MPI of this machine: Debian names the programs of each after it.
struct Mpi {
    std::string name;
    std::vector<std::string> launcher;

    [[nodiscard]] bool is_there() const {
        const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
        return ::access((folder / ("libdaqloom_mpi_" + name + ".so")).c_str(), R_OK) == 0 &&
               ::access(("/usr/bin/" + launcher[0]).c_str(), X_OK) == 0;
    }
};

constexpr std::size_t kWorkers = 5;  ///< up to four units, and a stranger

std::vector<Mpi> all_mpis() {
    std::vector<std::string> open_mpi{"mpirun.openmpi", "--oversubscribe", "--bind-to", "none"};
    if (::geteuid() == 0) {
        open_mpi.emplace_back("--allow-run-as-root");
    }
    std::vector<Mpi> all{{"openmpi", open_mpi}, {"mpich", {"mpirun.mpich"}}};
    for (Mpi& mpi : all) {
        mpi.launcher.insert(mpi.launcher.end(), {"-n", std::to_string(kWorkers)});
    }
    return all;
}

/// The workers of one MPI, started by the first test that needs them.
Workers& workers_of(const Mpi& mpi) {
    static std::unique_ptr<Workers> of_mpi[2];
    auto& workers = of_mpi[mpi.name == "mpich" ? 1 : 0];
    if (!workers) {
        workers = std::make_unique<Workers>(mpi.launcher, kWorkers);
    }
    return *workers;
}

std::vector<TransportUnderTest> under_test() {
    std::vector<TransportUnderTest> transports;
    for (const Mpi& mpi : all_mpis()) {
        if (mpi.is_there()) {
            transports.push_back(
                {.name = mpi.name,
                 .make =
                     [mpi](const TransportConfig& config) {
                         return workers_of(mpi).make("mpi", config);
                     },
                 .disturb =
                     [mpi](std::span<const std::byte> address, std::span<const std::byte> bytes) {
                         workers_of(mpi).disturb(address, bytes);
                     },
                 .tells_of_death = false,
                 .crash_in_write = "MPI cannot give up a write that has begun",
                 .ends_together = "a rank of MPI that dies ends all others",
                 .most_waits = 250,
                 .allocations = [mpi] { return workers_of(mpi).allocations(); }});
        }
    }
    return transports;
}

INSTANTIATE_TEST_SUITE_P(Mpi, TransportConformance, testing::ValuesIn(under_test()),
                         testing::PrintToStringParamName());

TEST(MpiTransport, IsTestedWithOpenMpiAndWithMpich) {
    for (const Mpi& mpi : all_mpis()) {
        if (!mpi.is_there()) {
            GTEST_SKIP() << "no " << mpi.name << " (Debian: lib" << mpi.name << "-dev)";
        }
    }
}

TEST(MpiTransport, IsRefusedInAProcessThatNoMpirunHasStarted) {
    SharedMemory arena;
    const auto doorbell = Doorbell::create().value();
    const auto made = make_transport("mpi", {.doorbell = &doorbell});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message,
              "the transport 'mpi' in a process that no mpirun has started: measure with "
              "measure.launch = \"mpirun\"");
}

}  // namespace
}  // namespace daqloom::live
