#include "live/transport/libfabric/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace daqloom::live::ofi {

namespace {

template <class Function>
bool resolve(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
}

/// The loader's reason for the last failure. The reason names the library.
tl::unexpected<base::Error> load_failure() {
    const char* reason = ::dlerror();
    return base::failure(fmt::format("libfabric cannot be loaded: {}",
                                     reason != nullptr ? reason : "a function is missing"));
}

base::expected<Library> load() {
    void* handle = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    Library library{};
    if (handle == nullptr || !resolve(handle, "fi_version", library.version) ||
        !resolve(handle, "fi_getinfo", library.getinfo) ||
        !resolve(handle, "fi_dupinfo", library.dupinfo) ||
        !resolve(handle, "fi_freeinfo", library.freeinfo) ||
        !resolve(handle, "fi_fabric", library.fabric) ||
        !resolve(handle, "fi_strerror", library.strerror)) {
        return load_failure();
    }
    return library;
}

}  // namespace

const base::expected<Library>& library() {
    static const base::expected<Library> loaded = load();
    return loaded;
}

}  // namespace daqloom::live::ofi
