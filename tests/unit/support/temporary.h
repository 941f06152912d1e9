// A folder for one test, removed with all that is in it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace oncilla::testing {

// Writes a file as most programs do. The engine's WriteFile has the disk confirm every file, which
// is not for tests that write thousands; nor is cutting a file to nothing, which ext4 answers by
// writing the new contents out at once, so that a file of that name is removed first.
inline bool WriteQuickly(const std::string& path, std::string_view bytes) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file.good();
}

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
    EXPECT_TRUE(WriteQuickly(File(name), bytes));
    return File(name);
  }

 private:
  std::string path_;
};

}  // namespace oncilla::testing
