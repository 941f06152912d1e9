// The caches of programs: hits and misses, bounds, damage, crashes, folders that must not be
// trusted.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/opencl/runtime/disk_cache.h"
#include "backends/opencl/runtime/program_cache.h"
#include "engine/base/file.h"
#include "engine/base/hash.h"
#include "tests/unit/support/opencl_device.h"
#include "tests/unit/support/temporary.h"

namespace oncilla::opencl {
namespace {

using ::testing::HasSubstr;

class Folder {
 public:
  Folder() {
    std::string path = ::testing::TempDir() + "oncilla_cache_XXXXXX";
    path_ = ::mkdtemp(path.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::vector<std::string> Names(std::string_view ending) const {
    std::vector<std::string> names;
    for (const auto& e : std::filesystem::directory_iterator(path_)) {
      if (e.path().string().ends_with(ending)) names.push_back(e.path().string());
    }
    return names;
  }

 private:
  std::string path_;
};

std::string Key(int i) { return Sha256Hex(StrCat("key ", i)); }

TEST(DiskCache, KeepsWhatWasStored) {
  Folder folder;
  const std::string inside = folder.path() + "/a/b";
  {
    DiskCache cache(inside);
    EXPECT_EQ(cache.problem(), "");
    EXPECT_EQ(cache.Load(Key(1)), std::nullopt);
    cache.Store(Key(1), std::string("one\n\0two", 8));
  }
  struct stat info = {};
  ASSERT_EQ(::stat(inside.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  DiskCache cache(inside);
  EXPECT_EQ(cache.Load(Key(1)), std::string("one\n\0two", 8));
  cache.Drop(Key(1));
  EXPECT_EQ(cache.Load(Key(1)), std::nullopt);
}

TEST(DiskCache, AnyDamageIsAMiss) {
  Folder folder;
  DiskCache cache(folder.path());
  const std::string payload(1000, 'x');
  cache.Store(Key(1), payload);
  const std::string path = JoinPath(folder.path(), Key(1) + ".entry");
  const std::string whole = *ReadFile(path, 1 << 20);
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    ASSERT_TRUE(::oncilla::testing::WriteQuickly(path, bad));
    EXPECT_EQ(cache.Load(Key(1)), std::nullopt) << "flip at " << at;
  }
  for (size_t length = 0; length < whole.size(); length += 13) {
    ASSERT_TRUE(::oncilla::testing::WriteQuickly(path, whole.substr(0, length)));
    EXPECT_EQ(cache.Load(Key(1)), std::nullopt) << "cut to " << length;
  }
  // Valid bytes under another key's name are another program and must be a miss.
  ASSERT_TRUE(WriteFile(JoinPath(folder.path(), Key(2) + ".entry"), whole).ok());
  EXPECT_EQ(cache.Load(Key(2)), std::nullopt);
  ASSERT_TRUE(WriteFile(path, whole).ok());
  EXPECT_EQ(cache.Load(Key(1)), payload);
}

TEST(DiskCache, StaysWithinItsBoundAndDropsTheOldest) {
  Folder folder;
  constexpr uint64_t kLimit = 100 << 10;
  DiskCache cache(folder.path(), kLimit);
  const std::string payload(5 << 10, 'x');
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  for (int i = 0; i < 200; ++i) {  // ten times the bound
    cache.Store(Key(i), payload);
    if (i == 3) {
      ::utimensat(AT_FDCWD, JoinPath(folder.path(), Key(3) + ".entry").c_str(), old, 0);
    }
    uint64_t total = 0;
    const auto entries = ListCache(folder.path());
    ASSERT_TRUE(entries.ok());
    for (const CacheEntry& e : *entries) total += e.bytes;
    ASSERT_LE(total, kLimit) << "after " << i;
  }
  EXPECT_EQ(cache.Load(Key(3)), std::nullopt);
  EXPECT_EQ(cache.Load(Key(199)), payload);
  cache.Store(Key(1000), std::string(kLimit, 'x'));  // too large for the folder: not kept
  EXPECT_EQ(cache.Load(Key(1000)), std::nullopt);
  EXPECT_GT(*ClearCache(folder.path()), 10u << 10);
  EXPECT_TRUE(ListCache(folder.path())->empty());
}

// A process that is killed while its driver uses Key(2), after it has used Key(1).
void DieAtWork(const std::string& folder) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    DiskCache cache(folder);
    { DiskCache::InUse fine(cache, Key(1)); }
    DiskCache::InUse deadly(cache, Key(2));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(DiskCache, AnEntryThatKilledTwoProcessesIsNotUsedAgain) {
  Folder folder;
  {
    DiskCache cache(folder.path());
    cache.Store(Key(1), "fine");
    cache.Store(Key(2), "deadly");
  }
  // A process may be killed once for other reasons: the entry is compiled again.
  DieAtWork(folder.path());
  {
    DiskCache cache(folder.path());
    EXPECT_FALSE(cache.Crashed(Key(2)));
    EXPECT_EQ(cache.Load(Key(1)), "fine");
    EXPECT_EQ(cache.Load(Key(2)), std::nullopt);
    cache.Store(Key(2), "deadly");
  }
  DieAtWork(folder.path());
  DiskCache cache(folder.path());
  EXPECT_TRUE(cache.Crashed(Key(2)));
  EXPECT_EQ(cache.Load(Key(1)), "fine");
  EXPECT_EQ(cache.Load(Key(2)), std::nullopt);
  cache.Store(Key(2), "deadly");
  EXPECT_EQ(cache.Load(Key(2)), std::nullopt);
  // While a process holds its mark, others must not treat it as a crash.
  DiskCache::InUse in_use(cache, Key(1));
  DiskCache other(folder.path());
  EXPECT_EQ(other.Load(Key(1)), "fine");
}

// A user may have interrupted two first runs: the ban must end, later after each further death.
TEST(DiskCache, ABanEnds) {
  Folder folder;
  const std::string file = JoinPath(folder.path(), Key(2) + ".crashed");
  const auto banned_after = [&](int64_t seconds) {
    const timespec then = {::time(nullptr) - seconds, 0}, times[2] = {then, then};
    EXPECT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
    return DiskCache(folder.path()).Crashed(Key(2));
  };
  DieAtWork(folder.path());
  DieAtWork(folder.path());
  EXPECT_TRUE(DiskCache(folder.path()).Crashed(Key(2)));
  EXPECT_TRUE(banned_after(3000));
  EXPECT_FALSE(banned_after(3700));
  DieAtWork(folder.path());
  EXPECT_TRUE(DiskCache(folder.path()).Crashed(Key(2)));
  EXPECT_TRUE(banned_after(3700));
  EXPECT_FALSE(banned_after(7300));
  for (int i = 0; i < 12; ++i) DieAtWork(folder.path());
  EXPECT_TRUE(DiskCache(folder.path()).Crashed(Key(2)));
  EXPECT_TRUE(banned_after(9 * 24 * 3600));
  EXPECT_FALSE(banned_after(11 * 24 * 3600));
  EXPECT_FALSE(banned_after(-1000));  // the clock was set back
}

TEST(DiskCache, DeathsThatSurvivalSeparatesAreNoBan) {
  Folder folder;
  for (int i = 0; i < 3; ++i) {
    DieAtWork(folder.path());
    DiskCache cache(folder.path());
    EXPECT_FALSE(cache.Crashed(Key(2))) << i;
    DiskCache::InUse survived(cache, Key(2));
  }
}

TEST(DiskCache, AProgramThatIsInterruptedTakesItsMarkAway) {
  Folder folder;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      DiskCache cache(folder.path());
      DiskCache::InUse at_work(cache, Key(2));
      RemoveTemporaryFiles();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_FALSE(DiskCache(folder.path()).Crashed(Key(2)));
  }
}

TEST(DiskCache, FoldersThatOthersMayWriteAreNotUsed) {
  Folder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_THAT(DiskCache(folder.path()).problem(), HasSubstr("can be written by others"));
  const std::string file = folder.path() + "/file";
  std::ofstream(file) << "x";
  EXPECT_THAT(DiskCache(file).problem(), HasSubstr("is not a folder"));
  ASSERT_EQ(::chmod(folder.path().c_str(), 0700), 0);
  const std::string link = folder.path() + "/link";
  ASSERT_EQ(::symlink("/tmp", link.c_str()), 0);
  EXPECT_NE(DiskCache(link).problem(), "");
  DiskCache none("");
  EXPECT_THAT(none.problem(), HasSubstr("ONCILLA_CACHE_DIR"));
  none.Store(Key(1), "x");
  EXPECT_EQ(none.Load(Key(1)), std::nullopt);
}

constexpr Source kTwice{"test/twice.cl",
                        "__kernel void twice(__global int* a) { a[0] = FACTOR * a[0]; }"};

struct Opened {
  const FoundDevice& device = *TheTestDevice().found;
  const Api& api = *device.platform.api;
  Context context = *CreateContext(api, device.platform.id, device.id);
  std::shared_ptr<DeviceContext> shared =
      std::make_shared<DeviceContext>(device.platform.api, *Retain(api, context.get()));
  // The kernel's result for 21.
  int32_t Run(const BuiltProgram& built) {
    auto queue = *CreateQueue(api, context.get(), device.id, false);
    auto buffer = *CreateBuffer(api, context.get(), 4);
    auto kernel = *CreateKernel(api, built.program.get(), "twice");
    int32_t value = 21;
    cl_mem mem = buffer.get();
    const size_t one = 1;
    api.SetKernelArg(kernel.get(), 0, sizeof(mem), &mem);
    api.EnqueueWriteBuffer(queue.get(), mem, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr);
    api.EnqueueNDRangeKernel(queue.get(), kernel.get(), 1, nullptr, &one, &one, 0, nullptr,
                             nullptr);
    api.EnqueueReadBuffer(queue.get(), mem, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr);
    return value;
  }
};

TEST(ProgramCache, BuildsOnceThenRemembersThenReadsFromDisk) {
  ONCILLA_NEEDS_OPENCL();
  Folder folder;
  Opened o;
  {
    const auto disk = std::make_shared<DiskCache>(folder.path());
    ProgramCache cache(o.shared, o.device, true, disk);
    auto first = cache.Get(kTwice, "", {{"FACTOR", "2"}});
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(o.Run(**first), 42);
    EXPECT_EQ(cache.Get(kTwice, "", {{"FACTOR", "2"}})->get(), first->get());
    EXPECT_EQ(cache.built(), 1);
    EXPECT_EQ(o.Run(**cache.Get(kTwice, "", {{"FACTOR", "(1 + 2)"}})), 63);
    EXPECT_EQ(o.Run(**cache.Get(kTwice, "#define FACTOR 4", {})), 84);
    EXPECT_EQ(cache.built(), 3);
    EXPECT_GT(cache.bytes(), 100);
  }
  const auto disk = std::make_shared<DiskCache>(folder.path());
  ProgramCache cache(o.shared, o.device, true, disk);
  auto again = cache.Get(kTwice, "", {{"FACTOR", "2"}});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(o.Run(**again), 42);
  EXPECT_EQ(cache.loaded(), 1);
  EXPECT_EQ(cache.built(), 0);
}

TEST(ProgramCache, DamagedBinariesNeverReachTheDriver) {
  ONCILLA_NEEDS_OPENCL();
  Folder folder;
  Opened o;
  {
    const auto disk = std::make_shared<DiskCache>(folder.path());
    ProgramCache cache(o.shared, o.device, true, disk);
    ASSERT_TRUE(cache.Get(kTwice, "", {{"FACTOR", "2"}}).ok());
  }
  ASSERT_EQ(folder.Names(".entry").size(), 1u);
  const std::string path = folder.Names(".entry")[0];
  const std::string whole = *ReadFile(path, 64 << 20);
  for (int round = 0; round < 6; ++round) {
    std::string bad = whole;
    if (round < 3) {
      bad.resize(bad.size() * static_cast<size_t>(round + 1) / 4);
    } else {
      bad[bad.size() * static_cast<size_t>(round - 2) / 4] ^= 0x10;
    }
    ASSERT_TRUE(::oncilla::testing::WriteQuickly(path, bad));
    const auto disk = std::make_shared<DiskCache>(folder.path());
    ProgramCache cache(o.shared, o.device, true, disk);
    auto program = cache.Get(kTwice, "", {{"FACTOR", "2"}});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(o.Run(**program), 42);
    EXPECT_EQ(cache.built(), 1);
    EXPECT_EQ(cache.loaded(), 0);
  }
}

TEST(ProgramCache, WhatTheDriverRefusesIsBuiltAgain) {
  ONCILLA_NEEDS_OPENCL();
  Folder folder;
  Opened o;
  {
    const auto disk = std::make_shared<DiskCache>(folder.path());
    ProgramCache cache(o.shared, o.device, true, disk);
    ASSERT_TRUE(cache.Get(kTwice, "", {{"FACTOR", "2"}}).ok());
  }
  // A well-formed entry whose payload no driver knows; only the harmless kind of nonsense is tried.
  const std::string name = std::filesystem::path(folder.Names(".entry")[0]).filename();
  const auto disk = std::make_shared<DiskCache>(folder.path());
  disk->Store(name.substr(0, 64), "no program at all, only words");
  ProgramCache cache(o.shared, o.device, true, disk);
  auto program = cache.Get(kTwice, "", {{"FACTOR", "2"}});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(o.Run(**program), 42);
  EXPECT_EQ(cache.built(), 1);
}

TEST(ProgramCache, IsBoundedAndProgramsOutliveTheirEntry) {
  ONCILLA_NEEDS_OPENCL();
  Opened o;
  const int64_t before = CountLiveObjects().programs;
  {
    ProgramCache cache(o.shared, o.device, false, nullptr, 3);
    auto first = *cache.Get(kTwice, "", {{"FACTOR", "2"}});
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(cache.Get(kTwice, "", {{"FACTOR", StrCat(i + 10)}}).ok());
      ASSERT_LE(cache.size(), 3u);
    }
    EXPECT_EQ(CountLiveObjects().programs, before + 4);
    EXPECT_EQ(o.Run(*first), 42);
  }
  EXPECT_EQ(CountLiveObjects().programs, before);
}

TEST(ProgramCache, ThreadsThatWantOneProgramBuildItOnce) {
  ONCILLA_NEEDS_OPENCL();
  Opened o;
  ProgramCache cache(o.shared, o.device, false, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] { EXPECT_TRUE(cache.Get(kTwice, "", {{"FACTOR", "7"}}).ok()); });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cache.built(), 1);
}

TEST(ProgramCache, AFailedBuildSaysWhereAndIsNotRemembered) {
  ONCILLA_NEEDS_OPENCL();
  Opened o;
  ProgramCache cache(o.shared, o.device, false, nullptr);
  auto program = cache.Get(kTwice, "", {{"FACTOR", "oops +"}});
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(Message(program.status()), HasSubstr("test/twice.cl -DFACTOR=oops +"));
  EXPECT_FALSE(cache.Get(kTwice, "", {{"FACTOR", "oops +"}}).ok());
  EXPECT_FALSE(cache.Get(kTwice, "", {{"FACTOR", "1\n2"}}).ok());
}

}  // namespace
}  // namespace oncilla::opencl
