// A folder of its own for each test that writes files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace daqloom::live {

/// Removed at the end of the test.
class FolderTest : public testing::Test {
  protected:
    FolderTest() {
        std::string name = (std::filesystem::temp_directory_path() / "daqloom-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~FolderTest() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

    std::filesystem::path folder_;
};

}  // namespace daqloom::live
