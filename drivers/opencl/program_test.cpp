// Compiling, and what is kept of it.
#include "penstock/drivers/opencl/program.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "penstock/drivers/opencl/opencl_rig_test.h"

namespace penstock::opencl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class ProgramTest : public OpenclTest {
 protected:
  void SetUp() override {
    OpenclTest::SetUp();
    if (IsSkipped()) return;
    folder_ = fs::temp_directory_path() / fmt::format("penstock-opencl-test-{}", ::getpid());
    fs::remove_all(folder_);
    found_ = choose_device("").value();
    context_ = cl::Context(found_.device);
  }
  void TearDown() override {
    context_ = cl::Context();
    if (!folder_.empty()) fs::remove_all(folder_);
    OpenclTest::TearDown();
  }
  Result<Program> build(const ProgramSource& source) {
    return build_program(context_, found_, source, cache());
  }
  // Builds what compiles; whether it came from the cache.
  bool from_cache() {
    auto built = build(small_);
    EXPECT_TRUE(built.ok()) << built.status().to_string();
    return built.ok() && built->from_cache;
  }
  BinaryCache cache() const { return BinaryCache(folder_.string()); }
  std::string file() const { return cache().path_of(program_identity(found_.traits, small_)); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  void change_byte(std::uint64_t at) {
    std::fstream f(file(), std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(static_cast<std::streamoff>(at));
    const int byte = f.get();
    f.seekp(static_cast<std::streamoff>(at));
    f.put(static_cast<char>(byte ^ 1));
  }

  fs::path folder_;
  FoundDevice found_;
  cl::Context context_;
  const ProgramSource small_ = {"small", "__kernel void f(__global int* a) { a[0] = 1; }", ""};
};

TEST_F(ProgramTest, WhatDoesNotCompileShowsTheFirstLinesOfTheLog) {
  const auto built = build({"broken", "__kernel void f() { this is no C; }\n", ""});
  EXPECT_EQ(built.status().code(), Code::unsupported);
  const std::string& message = built.status().message();
  EXPECT_THAT(message, HasSubstr("the kernels (broken) do not compile: clBuildProgram on " +
                                 found_.traits.name + ": CL_BUILD_PROGRAM_FAILURE: "));
  EXPECT_THAT(message, HasSubstr("error: "));
  std::string many;
  for (int i = 0; i < 200; ++i) many += fmt::format("int wrong_{} = nothing;\n", i);
  const std::string long_one = build({"broken", many, ""}).status().message();
  EXPECT_LT(long_one.size(), 1300u);
  EXPECT_THAT(long_one, Not(HasSubstr("wrong_150")));
  const auto option = build({"small", small_.text, "-no-such-option"});
  EXPECT_EQ(option.status().code(), Code::unsupported);
  EXPECT_THAT(option.status().message(), HasSubstr("(small) do not compile: clBuildProgram on "));
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(ProgramTest, TheEngineSaysThatItsKernelsDoNotCompile) {
  faults_->fail("clBuildProgram", CL_BUILD_PROGRAM_FAILURE);
  const auto core = open_core(options(";cache=none"));
  EXPECT_EQ(core.status().code(), Code::unsupported);
  EXPECT_THAT(core.status().message(), HasSubstr("the kernels (folds) do not compile: "));
}

TEST_F(ProgramTest, CompiledOnceAndThenTakenFromDisk) {
  EXPECT_FALSE(from_cache());
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(from_cache());
  EXPECT_EQ(faults_->from_source, 1u);
  EXPECT_EQ(faults_->from_binary, 1u);
  // Other options, another program.
  ProgramSource other = small_;
  other.options = "-DOTHER=1";
  EXPECT_FALSE(build(other)->from_cache);
  EXPECT_EQ(files(), 2u);
  // Another driver, another program.
  FoundDevice updated = found_;
  updated.traits.driver += ".1";
  EXPECT_FALSE(build_program(context_, updated, small_, cache())->from_cache);
}

// None of these is run, and each is replaced by one that is sound.
TEST_F(ProgramTest, ADamagedFileIsIgnoredAndReplaced) {
  EXPECT_FALSE(from_cache());
  const std::uint64_t bytes = fs::file_size(file());
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{13},
                                 std::uint64_t{17}, std::uint64_t{30}, bytes / 2, bytes - 1}) {
    change_byte(at);
    EXPECT_FALSE(from_cache()) << at;
    EXPECT_TRUE(from_cache()) << at;
  }
  for (const std::uint64_t left : {std::uint64_t{0}, std::uint64_t{10}, bytes - 1}) {
    fs::resize_file(file(), left);
    EXPECT_FALSE(from_cache()) << left;
  }
  fs::resize_file(file(), bytes + 1);
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
  EXPECT_EQ(files(), 1u);
}

TEST_F(ProgramTest, WhatIsNotItsOwnIsIgnored) {
  ProgramSource other = small_;
  other.options = "-DOTHER=1";
  ASSERT_TRUE(build(other).ok());
  const std::string others = cache().path_of(program_identity(found_.traits, other));
  EXPECT_FALSE(from_cache());
  // A whole file of another program, under this one's name.
  fs::copy_file(others, file(), fs::copy_options::overwrite_existing);
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
  ASSERT_EQ(::chmod(file().c_str(), 0620), 0);
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
  fs::remove(file());
  fs::create_symlink(others, file());
  EXPECT_FALSE(from_cache());
}

TEST_F(ProgramTest, WhatTheRuntimeDoesNotTakeIsCompiledAgain) {
  EXPECT_FALSE(from_cache());
  faults_->fail("clCreateProgramWithBinary", CL_INVALID_BINARY, 0, 1);
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
}

TEST_F(ProgramTest, AFolderThatCannotBeWrittenIsNoError) {
  // A file stands where the folder should be: so it is for the superuser, too.
  std::ofstream(folder_) << "in the way";
  EXPECT_FALSE(from_cache());
  EXPECT_FALSE(from_cache());
  const Status stored = cache().store("identity", {1, 2, 3});
  EXPECT_FALSE(stored.ok());
  EXPECT_THAT(stored.message(), HasSubstr(folder_.string()));
  const Status below = BinaryCache((folder_ / "x" / "y").string()).store("identity", {1, 2, 3});
  EXPECT_FALSE(below.ok());
  EXPECT_THAT(below.message(), HasSubstr(folder_.string()));
}

TEST_F(ProgramTest, NothingIsKeptWithoutAFolder) {
  for (int i = 0; i < 2; ++i) {
    auto built = build_program(context_, found_, small_, BinaryCache(""));
    ASSERT_TRUE(built.ok());
    EXPECT_FALSE(built->from_cache);
  }
}

TEST(BinaryCacheFolder, IsTheUsers) {
  ::setenv("XDG_CACHE_HOME", "/x/cache", 1);
  EXPECT_EQ(BinaryCache::users_folder(), "/x/cache/penstock/opencl");
  ::setenv("XDG_CACHE_HOME", "not/absolute", 1);
  ::setenv("HOME", "/x/home", 1);
  EXPECT_EQ(BinaryCache::users_folder(), "/x/home/.cache/penstock/opencl");
  ::unsetenv("HOME");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(BinaryCache::users_folder(), "");
}

}  // namespace
}  // namespace penstock::opencl
