// A hook in C++: refuses to start a run on a full disk.
//
//     my_hook FOLDER GIGABYTES
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <daqloom/live/hook.hpp>

int main(int argc, char** argv) {
    return daqloom::live::run_hook([&](const daqloom::live::Transition& transition) {
        if (argc != 3) {
            throw std::runtime_error("my_hook: give a folder and the gigabytes that it needs");
        }
        const double needed = std::strtod(argv[2], nullptr);
        const double left = static_cast<double>(std::filesystem::space(argv[1]).available) / 1e9;
        if (left < needed) {
            throw std::runtime_error(std::string(argv[1]) + " has " + std::to_string(left) +
                                     " GB left for run " + transition.value("run_number"));
        }
        return std::to_string(left) + " GB left";
    });
}
