// A folder for one test, removed with its contents.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace oncilla::testing {

// Writes a file without forcing it to the disk. The engine's WriteFile syncs every file, which is
// too slow for tests that write thousands; so is truncating a file, after which ext4 writes the new
// contents out at once. Therefore a file of that name is removed first.
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
