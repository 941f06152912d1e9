// What the fuzzers of model formats have in common: a file or folder in memory for the input, and
// all processing of a model before it runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace oncilla::fuzz {

// A file without a name on any disk, rewritten for each input.
class MemoryFile {
 public:
  MemoryFile();
  const std::string& path() const { return path_; }
  void Write(std::span<const uint8_t> bytes);

 private:
  int fd_ = -1;
  std::string path_;
};

// A folder of its own for files with fixed names; removed when the program ends.
class MemoryFolder {
 public:
  MemoryFolder();
  ~MemoryFolder();
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Opens the model, describes it, and imports and freezes each of its signatures; each imported
// graph must be valid.
void ImportEverything(const std::string& path);

}  // namespace oncilla::fuzz

// The message mutations as libFuzzer's hooks; once per fuzzer of a protobuf format.
#define ONCILLA_FUZZ_MESSAGES()                                                                  \
  extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most,             \
                                            unsigned int seed) {                                 \
    const std::string out =                                                                      \
        ::oncilla::fuzz::MutateMessage({reinterpret_cast<const char*>(data), size}, most, seed); \
    std::copy(out.begin(), out.end(), data);                                                     \
    return out.size();                                                                           \
  }                                                                                              \
  extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, \
                                              size_t b_size, uint8_t* out, size_t most,          \
                                              unsigned int seed) {                               \
    const std::string made =                                                                     \
        ::oncilla::fuzz::CrossMessages({reinterpret_cast<const char*>(a), a_size},               \
                                       {reinterpret_cast<const char*>(b), b_size}, most, seed);  \
    std::copy(made.begin(), made.end(), out);                                                    \
    return made.size();                                                                          \
  }
