// Files: what is refused with which message, limits, and that a draft never damages its target.
#include "engine/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <thread>

namespace oncilla {
namespace {

using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    folder_ = StrCat(::testing::TempDir(), "oncilla_file_", ::getpid(), "_",
                     ::testing::UnitTest::GetInstance()->current_test_info()->name());
    EXPECT_TRUE(MakeFolder(folder_).ok());
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(std::string_view name) const { return JoinPath(folder_, name); }

  std::string folder_;
};

TEST_F(FileTest, MapsAndReadsWhatWasWritten) {
  std::string text(100'000, 'x');
  text[77'777] = '\0';
  ASSERT_TRUE(WriteFile(Path("a"), text).ok());
  auto mapped = MappedFile::Open(Path("a"));
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ((*mapped)->text(), text);
  EXPECT_EQ(*ReadFile(Path("a"), 100'000), text);
  EXPECT_EQ((*mapped)->path(), Path("a"));
}

TEST_F(FileTest, EmptyFileIsAnEmptySpan) {
  ASSERT_TRUE(WriteFile(Path("empty"), "").ok());
  auto mapped = MappedFile::Open(Path("empty"));
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_TRUE((*mapped)->bytes().empty());
  EXPECT_TRUE((*mapped)->CheckUnchanged().ok());
  EXPECT_EQ(*ReadFile(Path("empty"), 0), "");
}

TEST_F(FileTest, RefusesWhatIsNotARegularFile) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", Path("s").c_str());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::pair<std::string, std::string> cases[] = {
      {folder_, "folder"}, {"/dev/null", "device"}, {Path("pipe"), "pipe"}, {Path("s"), "socket"}};
  for (const auto& [path, kind] : cases) {
    for (const Status& status :
         {MappedFile::Open(path).status(), ReadFile(path, 100).status(), WriteFile(path, "x")}) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << path << ": " << status;
      EXPECT_THAT(Message(status), HasSubstr(kind));
      EXPECT_THAT(Message(status), HasSubstr(path));
      EXPECT_EQ(Details(status).stage, Stage::kFile);
    }
  }
  ::close(fd);
}

TEST_F(FileTest, FailuresCarryTheSystemsReason) {
  const Status missing = MappedFile::Open(Path("none")).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(Message(missing), HasSubstr("No such file or directory"));
  EXPECT_EQ(ReadFile(Path("none"), 10).status().code(), Code::kNotFound);
  EXPECT_EQ(WriteFile(Path("none/a"), "x").code(), Code::kNotFound);
  EXPECT_EQ(ListFolder(Path("none")).status().code(), Code::kNotFound);
  ASSERT_TRUE(WriteFile(Path("a"), "x").ok());
  EXPECT_EQ(MakeFolder(Path("a/b")).code(), Code::kAlreadyExists);
  const Status zero = ReadFile(Path(std::string_view("a\0b", 3)), 10).status();
  EXPECT_EQ(zero.code(), Code::kInvalidArgument);
}

TEST_F(FileTest, ReadRefusesAboveTheLimitWithBothNumbers) {
  ASSERT_TRUE(WriteFile(Path("a"), std::string(101, 'x')).ok());
  const Status status = ReadFile(Path("a"), 100).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr("101 bytes, the limit is 100"));
}

TEST_F(FileTest, ReadsFilesThatStateNoSize) {
  auto text = ReadFile("/proc/self/status", 1 << 20);
  if (!text.ok()) GTEST_SKIP() << text.status();
  EXPECT_THAT(*text, HasSubstr("Name:"));
  EXPECT_EQ(ReadFile("/proc/self/status", 10).status().code(), Code::kResourceExhausted);
  // This one ends after one call, however few bytes that asks for.
  text = ReadFile("/proc/sys/kernel/pid_max", 1 << 10);
  if (!text.ok()) GTEST_SKIP() << text.status();
  EXPECT_THAT(*text, ::testing::MatchesRegex("[0-9]+\n"));
  EXPECT_GT(text->size(), 2u);
}

TEST_F(FileTest, NoticesAChangedFile) {
  const std::string large(size_t{17} << 20, 'x');  // mapped; smaller ones are read whole
  ASSERT_TRUE(WriteFile(Path("a"), large).ok());
  auto mapped = MappedFile::Open(Path("a"));
  ASSERT_TRUE(mapped.ok());
  EXPECT_TRUE((*mapped)->CheckUnchanged().ok());
  std::filesystem::last_write_time(
      Path("a"), std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_EQ((*mapped)->CheckUnchanged().code(), Code::kDataLoss);
  ASSERT_EQ(::truncate(Path("a").c_str(), 4), 0);
  const Status shrunk = (*mapped)->CheckUnchanged();
  EXPECT_EQ(shrunk.code(), Code::kDataLoss);
  EXPECT_THAT(Message(shrunk), HasSubstr("from 17825792 to 4 bytes"));
}

TEST_F(FileTest, AReplacedFileKeepsItsOldBytesWhereMapped) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").ok());
  auto mapped = MappedFile::Open(Path("a"));
  ASSERT_TRUE(mapped.ok());
  ASSERT_TRUE(WriteFile(Path("a"), "newer").ok());
  EXPECT_EQ((*mapped)->text(), "old");
  EXPECT_TRUE((*mapped)->CheckUnchanged().ok());
  EXPECT_EQ(*ReadFile(Path("a"), 10), "newer");
}

TEST_F(FileTest, ADraftLeavesNothingUnlessCommitted) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").ok());
  {
    auto draft = FileDraft::Create(Path("a"));
    ASSERT_TRUE(draft.ok());
    ASSERT_TRUE(draft->Append("new").ok());
    FileDraft moved = std::move(*draft);
    ASSERT_TRUE(moved.Append("er").ok());
    EXPECT_EQ(moved.bytes_written(), 5u);
    EXPECT_EQ(*ReadFile(Path("a"), 10), "old");
    EXPECT_EQ(ListFolder(folder_)->size(), 2u);
  }
  EXPECT_EQ(*ReadFile(Path("a"), 10), "old");
  EXPECT_EQ(ListFolder(folder_)->size(), 1u);

  auto draft = FileDraft::Create(Path("a"));
  ASSERT_TRUE(draft.ok());
  ASSERT_TRUE(draft->Append("new").ok());
  ASSERT_TRUE(draft->Commit().ok());
  EXPECT_EQ(draft->Commit().code(), Code::kInternal);
  EXPECT_EQ(*ReadFile(Path("a"), 10), "new");
  EXPECT_EQ(ListFolder(folder_)->size(), 1u);
}

TEST_F(FileTest, ReadersSeeOneWholeVersionWhileWritersRace) {
  ASSERT_TRUE(WriteFile(Path("a"), std::string(5000, '0')).ok());
  std::vector<std::thread> writers;
  for (char c : {'1', '2', '3'}) {
    writers.emplace_back([&, c] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(WriteFile(Path("a"), std::string(5000, c)).ok());
    });
  }
  for (int i = 0; i < 200; ++i) {
    auto text = ReadFile(Path("a"), 5000);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, std::string(5000, (*text)[0]));
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ListFolder(folder_)->size(), 1u);
}

TEST_F(FileTest, ListsSortedWithKindsAndSizes) {
  ASSERT_TRUE(MakeFolder(Path("m/n")).ok());
  ASSERT_TRUE(MakeFolder(Path("m/n")).ok());
  ASSERT_TRUE(WriteFile(Path("z"), "12345").ok());
  ASSERT_TRUE(WriteFile(Path("b"), "1").ok());
  auto entries = ListFolder(folder_);
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].name, "b");
  EXPECT_EQ((*entries)[1].name, "m");
  EXPECT_TRUE((*entries)[1].is_folder);
  EXPECT_EQ((*entries)[2].bytes, 5u);
  EXPECT_TRUE(FileExists(Path("z")) && !FileExists(Path("m")));
  EXPECT_TRUE(FolderExists(Path("m")) && !FolderExists(Path("z")));
  EXPECT_TRUE(RemoveFile(Path("z")).ok());
  EXPECT_TRUE(RemoveFile(Path("z")).ok());
  EXPECT_FALSE(FileExists(Path("z")));
}

TEST(JoinPath, KeepsAbsoluteNames) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
}

}  // namespace
}  // namespace oncilla
