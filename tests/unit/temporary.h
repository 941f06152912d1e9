// A folder for one test, removed with all that is in it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/base/file.h"

namespace oncilla::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/oncilla_test_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(WriteFile(File(name), bytes).ok());
    return File(name);
  }

 private:
  std::string path_;
};

}  // namespace oncilla::testing
