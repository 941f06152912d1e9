// Three SavedModels and three TFLite models whose files are truncated at every kibibyte and have
// one byte changed 2,000 times: each must give a clear error or a valid graph, which runs or fails
// without a crash, in bounded time and with bounded memory. The work is done in a child with a
// limit on its address space, which reports its progress through shared memory.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "engine/base/file.h"
#include "engine/graph/verify.h"
#include "engine/import/model_source.h"
#include "engine/import/tf/state/checkpoint.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/unit/support/sanitized.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

// With sanitizers, which are slow, only one in so many.
constexpr int kOneIn = kSanitized ? 12 : 1;
// More than what the process has mapped when it begins.
constexpr uint64_t kMemoryBytes = uint64_t{1} << 30;

struct Progress {
  char file[64];
  int64_t damage;                         // the new size, or the offset of the byte
  int64_t errors, graphs, runs, results;  // those of the runs that did not fail
  double slowest;                         // run, in seconds
  char problem[512];
};

void LimitMemory() {
  if (kSanitized) return;  // sanitizers map terabytes
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  const rlim_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + kMemoryBytes;
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
}

// Runs the default signature on zeros; the result is not checked.
void Run(const std::string& path, Progress& progress) {
  static const auto session = Session::Create(Runtime::Create({}), {.device = "cpu", .threads = 1});
  const auto model = (*session)->Load(path, {});
  if (!model.ok()) return;
  RunRequest request;
  request.timeout = std::chrono::seconds(2);
  const auto signature = (*model)->source().FindSignature("");
  if (!signature.ok()) return;
  for (const TensorInfo& input : (*signature)->inputs) {
    if (!input.shape.ranked() || input.dtype == DType::kInvalid || input.dtype == DType::kString) {
      return;
    }
    Shape shape;
    for (const Dim& dim : input.shape.dims()) shape.push_back(dim.known() ? dim.size : 4);
    if (shape.elements() > 1 << 20) return;
    auto feed = Tensor::Allocate({input.dtype, shape});
    if (!feed.ok()) return;
    request.feeds.emplace_back(input.name, *std::move(feed));
  }
  ++progress.runs;
  const auto start = std::chrono::steady_clock::now();
  progress.results += (*model)->Run(request).ok() ? 1 : 0;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  progress.slowest = std::max(progress.slowest, taken.count());
  (void)(*model)->Unload();
}

// Imports all signatures. False, with the reason, for a result that is neither an error nor a valid
// graph.
bool Import(const std::string& path, Progress& progress) {
  static const auto ops = OpSet::Builtin();
  auto model = OpenModel(path, {});
  if (!model.ok()) {
    ++progress.errors;
    return true;
  }
  for (const Signature& signature : (*model)->signatures()) {
    const auto module = (*model)->Import({signature.key, {}, {}}, ops);
    if (!module.ok()) {
      ++progress.errors;
      continue;
    }
    ++progress.graphs;
    const Status status = Verify(module->main);
    if (status.ok()) continue;
    std::snprintf(progress.problem, sizeof(progress.problem), "%s",
                  std::string(Message(status)).c_str());
    return false;
  }
  return true;
}

class Damage {
 public:
  // The model is the folder, or a file of it. One in so many of its graphs is run.
  Damage(const std::string& folder, const std::string& file, int64_t run_one_in, Progress& progress)
      : folder_(folder),
        model_(file.empty() ? folder : folder + "/" + file),
        run_one_in_(run_one_in),
        progress_(progress) {}

  // Truncates `file` to every multiple of `step`, the largest first; then restores it.
  bool Cut(const std::string& file, int64_t step) {
    const std::string whole = Read(file);
    step *= kOneIn;
    for (int64_t size = static_cast<int64_t>(whole.size()) / step * step; size >= 0; size -= step) {
      std::filesystem::resize_file(Path(file), static_cast<uintmax_t>(size));
      if (!Try(file, size)) return false;
    }
    return testing::WriteQuickly(Path(file), whole);
  }

  // The same of a shard at every kibibyte, of which only the tensors are read.
  bool CutShard(const std::string& prefix, const std::string& file) {
    const std::string whole = Read(file);
    std::snprintf(progress_.file, sizeof(progress_.file), "%s", file.c_str());
    for (int64_t size = static_cast<int64_t>(whole.size()) / 1024 * 1024; size >= 0; size -= 1024) {
      std::filesystem::resize_file(Path(file), static_cast<uintmax_t>(size));
      progress_.damage = size;
      auto checkpoint = Checkpoint::Open(Path(prefix));
      if (!checkpoint.ok()) return false;  // the index is whole
      int64_t read = 0;
      for (const Checkpoint::Entry& entry : (*checkpoint)->entries()) {
        const auto tensor = (*checkpoint)->Read(entry.key);
        read += tensor.ok() ? 1 : 0;
        const bool there = entry.offset + entry.size <= size;
        if (tensor.ok() != there && entry.size > 0) return false;
      }
      if (static_cast<size_t>(read) == (*checkpoint)->entries().size()) return false;
    }
    return testing::WriteQuickly(Path(file), whole);
  }

  // `count` times one byte, drawn evenly, differs.
  bool Flip(const std::string& file, int count) {
    const std::string whole = Read(file);
    std::fstream out(Path(file), std::ios::in | std::ios::out | std::ios::binary);
    for (int i = 0; i < count / kOneIn; ++i) {
      const auto at = static_cast<int64_t>(Next() % whole.size());
      const auto bits = static_cast<char>(1 + Next() % 255);
      Put(out, at, static_cast<char>(whole[static_cast<size_t>(at)] ^ bits));
      if (!Try(file, at)) return false;
      Put(out, at, whole[static_cast<size_t>(at)]);
    }
    return true;
  }

 private:
  std::string Path(const std::string& file) const { return folder_ + "/" + file; }
  std::string Read(const std::string& file) const { return *ReadFile(Path(file), 1u << 30); }
  static void Put(std::fstream& file, int64_t at, char byte) {
    file.seekp(at);
    file.put(byte);
    file.flush();
  }
  uint32_t Next() { return random_ = random_ * 1664525u + 1013904223u, random_ >> 8; }
  bool Try(const std::string& file, int64_t damage) {
    std::snprintf(progress_.file, sizeof(progress_.file), "%s", file.c_str());
    progress_.damage = damage;
    const int64_t graphs = progress_.graphs;
    if (!Import(model_, progress_)) return false;
    if (progress_.graphs > graphs && progress_.graphs % run_one_in_ == 0) Run(model_, progress_);
    return true;
  }

  const std::string folder_, model_;
  const int64_t run_one_in_;
  Progress& progress_;
  uint32_t random_ = 20260704;
};

// Copies the files, and runs `work` on the copy in a child. What it counted is returned.
template <class Work>
Progress InChild(const std::string& files, const std::string& model, int64_t run_one_in,
                 Work&& work) {
  const testing::TemporaryFolder folder;
  std::filesystem::copy(
      std::string(ONCILLA_SOURCE_DIR) + "/testdata/" + files, folder.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    ADD_FAILURE() << "no memory to share";
    return {};
  }
  auto* progress = new (shared) Progress{};
  const pid_t child = fork();
  if (child == 0) {
    LimitMemory();
    Damage damage(folder.path(), model, run_one_in, *progress);
    _exit(work(damage) ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << files << "/" << progress->file << " damaged at " << progress->damage << ": "
      << (WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : progress->problem);
  const Progress counted = *progress;
  std::printf("%s: %ld errors, %ld graphs, %ld runs of at most %.1f s, %ld with results\n",
              files.c_str(), static_cast<long>(counted.errors), static_cast<long>(counted.graphs),
              static_cast<long>(counted.runs), counted.slowest, static_cast<long>(counted.results));
  munmap(shared, sizeof(Progress));
  return counted;
}

template <class Work>
void DamageSavedModel(const std::string& model, Work&& work) {
  const Progress counted = InChild(model, "", /*run_one_in=*/40, work);
  EXPECT_GT(counted.errors, 1000 / kOneIn);
  EXPECT_GT(counted.graphs, 1000 / kOneIn);
  EXPECT_GT(counted.runs, 20 / kOneIn);
}

// Every graph that comes out of a damaged TFLite file is also run.
void DamageTflite(const std::string& file) {
  const Progress counted = InChild("tflite/" + file, file, /*run_one_in=*/1, [&](Damage& damage) {
    return damage.Cut(file, 1024) && damage.Flip(file, 2000);
  });
  EXPECT_GT(counted.errors, 100 / kOneIn);
  EXPECT_GT(counted.results, 500 / kOneIn);
  // What the time limit of a run is, and room for a busy machine.
  EXPECT_LT(counted.slowest, kSanitized ? 60 : 10);
}

constexpr const char* kIndex = "variables/variables.index";
constexpr const char* kPrefix = "variables/variables";
constexpr const char* kData = "variables/variables.data-00000-of-00001";

TEST(DamagedModels, TheQuickstart) {
  DamageSavedModel("quickstart/efficientnet_lite0", [](Damage& damage) {
    return damage.Cut("saved_model.pb", 1024) && damage.Cut(kIndex, 1024) &&
           damage.Cut(kData, 256 << 10) && damage.CutShard(kPrefix, kData) &&
           damage.Flip("saved_model.pb", 1500) && damage.Flip(kIndex, 400) &&
           damage.Flip(kData, 100);
  });
}

TEST(DamagedModels, AConvolutionalNet) {
  DamageSavedModel("tensorflow/models/convnet", [](Damage& damage) {
    return damage.Cut("saved_model.pb", 1024) && damage.Cut(kIndex, 16) && damage.Cut(kData, 64) &&
           damage.Flip("saved_model.pb", 1500) && damage.Flip(kIndex, 400) &&
           damage.Flip(kData, 100);
  });
}

TEST(DamagedModels, RecurrentLayersWithLoops) {
  DamageSavedModel("tensorflow/runs/recurrent/model", [](Damage& damage) {
    return damage.Cut("saved_model.pb", 1024) && damage.Cut(kIndex, 16) && damage.Cut(kData, 64) &&
           damage.Flip("saved_model.pb", 1500) && damage.Flip(kIndex, 400) &&
           damage.Flip(kData, 100);
  });
}

TEST(DamagedModels, AnLstmInTflite) { DamageTflite("model_lstm.tflite"); }
TEST(DamagedModels, BytesInTflite) { DamageTflite("model_int8.tflite"); }
TEST(DamagedModels, ALoopInTflite) { DamageTflite("model_loop.tflite"); }

}  // namespace
}  // namespace oncilla
