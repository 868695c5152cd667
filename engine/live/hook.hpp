// A hook of a run as a program in C++: it gets a transition, and answers with a text or an error.
//
//     int main() {
//         return daqloom::live::run_hook([](const daqloom::live::Transition& transition) {
//             return "run " + transition.value("run_number");
//         });
//     }
#pragma once

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace daqloom::live {

/// The transition for which the run control has started this program.
class Transition {
  public:
    /// Value by its name, such as `transition`, `when`, `run_number`, `phase`; empty if not given.
    [[nodiscard]] std::string value(const std::string& name) const {
        std::string variable = "DAQLOOM_HOOK_";
        for (const unsigned char letter : name) {
            variable += static_cast<char>(std::toupper(letter));
        }
        const char* const found = std::getenv(variable.c_str());
        return found != nullptr ? found : "";
    }
    /// Number of the run; 0: none.
    [[nodiscard]] unsigned long long run_number() const {
        return std::strtoull(value("run_number").c_str(), nullptr, 10);
    }
};

/// Calls the hook and prints its answer. Returns the exit code of the program: 1 after an
/// exception, which fails the hook with its message.
template <class Hook>
int run_hook(const Hook& hook) {
    try {
        const std::string answer = hook(Transition());
        std::printf("%s\n", answer.c_str());
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

}  // namespace daqloom::live
