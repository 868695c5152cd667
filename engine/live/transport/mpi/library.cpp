#include "live/transport/mpi/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace daqloom::live::mpi {

namespace {

/// Folder of the library or program that contains this function.
std::string own_folder() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<const void*>(&has_shim), &info) == 0) {
        return ".";
    }
    const std::string path = info.dli_fname;
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string shim_of(const char* mpi) {
    return fmt::format("{}/libdaqloom_mpi_{}.so", own_folder(), mpi);
}

/// The MPI whose launcher has started this process; none: no launcher has.
const char* own_mpi() {
    if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) {
        return "openmpi";
    }
    return std::getenv("PMI_RANK") != nullptr ? "mpich" : nullptr;
}

template <class Function>
bool resolve(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
}

}  // namespace

bool has_shim() {
    return ::access(shim_of("openmpi").c_str(), R_OK) == 0 ||
           ::access(shim_of("mpich").c_str(), R_OK) == 0;
}

base::expected<Library> load() {
    const char* const mpi = own_mpi();
    DAQLOOM_REFUSE_IF(mpi == nullptr,
                      "the transport 'mpi' in a process that no mpirun has started: measure with "
                      "measure.launch = \"mpirun\"");
    const std::string shim = shim_of(mpi);
    DAQLOOM_REFUSE_IF(::access(shim.c_str(), R_OK) != 0,
                      "the transport 'mpi' has no {0}, which this MPI needs: make it by `mpicc "
                      "-shared -fPIC -O2 -o {0} {1}/mpi_shim.c`, with the mpicc of that MPI",
                      shim, own_folder());
    // Plugins of an MPI expect its symbols to be global.
    void* const handle = ::dlopen(shim.c_str(), RTLD_NOW | RTLD_GLOBAL);
    Library library{};
    if (handle == nullptr || !resolve(handle, "daqloom_mpi_open", library.open) ||
        !resolve(handle, "daqloom_mpi_close", library.close) ||
        !resolve(handle, "daqloom_mpi_abort", library.abort) ||
        !resolve(handle, "daqloom_mpi_send", library.send) ||
        !resolve(handle, "daqloom_mpi_receive", library.receive) ||
        !resolve(handle, "daqloom_mpi_next", library.next) ||
        !resolve(handle, "daqloom_mpi_completed", library.completed)) {
        const char* const reason = ::dlerror();
        return base::failure(fmt::format("{} cannot be loaded: {}", shim,
                                         reason != nullptr ? reason : "a function is missing"));
    }
    return library;
}

}  // namespace daqloom::live::mpi
