// When the CPU writes to a GPU's memory by itself, and when the stream does.
#include "net_socket/gpu/gdr_copy.h"

#include <errno.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "net_socket/gpu/gpu_writer.h"
#include "tests/support/fake_cuda/fake_gdr.h"
#include "tests/unit/net_socket/gpu/gpu_fixture.h"

namespace tcpx {
namespace {

constexpr size_t kBytes = 100'000;  // two pages of the GPU

class GdrCopyTest : public GpuFixture {
 protected:
  void SetUp() override {
    GpuFixture::SetUp();
    fake_ = FakeGdr::Open();
    written_ = fake_.written();
    memory_ = std::make_unique<GpuBuffer>(gpu_.get(), kBytes);
    memory_->Fill(0);
    auto gdr = GdrCopy::Load();
    ASSERT_TRUE(gdr.ok()) << gdr.status();
    auto writer = GpuWriter::Open(pool_.get(), *std::move(gdr));
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }
  void TearDown() override {
    gpu_->fake().hold(0);
    writer_.reset();
    memory_.reset();
    EXPECT_EQ(0, fake_.pinned());
    EXPECT_EQ(0, fake_.opened());
    GpuFixture::TearDown();
  }

  char* at(size_t offset) { return static_cast<char*>(memory_->data()) + offset; }
  char* view(size_t offset) {
    return static_cast<char*>(gpu_->fake().view(reinterpret_cast<uint64_t>(memory_->data()))) + offset;
  }
  uint64_t Word(size_t offset) { return __atomic_load_n(reinterpret_cast<uint64_t*>(view(offset)), __ATOMIC_ACQUIRE); }
  void Put(size_t offset, absl::string_view bytes) {
    bool room = false;
    ASSERT_TRUE(writer_->Put(at(offset), bytes, &room).ok());
    ASSERT_TRUE(room);
  }
  bool IsReached() { return writer_->Reached(writer_->last()); }

  FakeGdr fake_;
  uint64_t written_ = 0;  // by earlier tests
  std::unique_ptr<GpuBuffer> memory_;
  std::unique_ptr<GpuWriter> writer_;
};

TEST_F(GdrCopyTest, AnIdleStreamIsNotUsed) {
  writer_->BeginRegion(at(0), kBytes);
  gpu_->fake().hold(1);
  Put(kBytes - 5, "short");
  ASSERT_TRUE(writer_->Add(at(70'000), 3, false).ok());
  ASSERT_TRUE(writer_->Add(at(70'000), 4, true).ok());
  EXPECT_EQ(std::string(view(kBytes - 5), 5), "short");
  EXPECT_EQ(Word(70'000), 7u);
  EXPECT_TRUE(IsReached());
  EXPECT_EQ(gpu_->counts().waiting, 0u);
  writer_->EndRegion(at(0), kBytes);
}

// The signal covers what the stream has not written yet.
TEST_F(GdrCopyTest, NothingOvertakesTheStream) {
  GpuBuffer other(gpu_.get(), 64);
  other.Fill(0);
  writer_->BeginRegion(at(0), kBytes);
  gpu_->fake().hold(1);
  bool room = false;
  ASSERT_TRUE(writer_->Put(static_cast<char*>(other.data()), "covered", &room).ok());
  Put(16, "later");
  ASSERT_TRUE(writer_->Add(at(0), 1, false).ok());
  EXPECT_EQ(Word(0), 0u);
  EXPECT_EQ(view(16)[0], 0);
  EXPECT_EQ(fake_.written(), written_) << "all of it goes through the stream";
  EXPECT_FALSE(IsReached());
  gpu_->fake().hold(0);
  ASSERT_TRUE(writer_->Await().ok());
  EXPECT_EQ(Word(0), 1u);
  EXPECT_EQ(std::string(view(16), 5), "later");
  gpu_->fake().hold(1);
  ASSERT_TRUE(writer_->Add(at(0), 1, false).ok());
  EXPECT_EQ(Word(0), 2u) << "directly again";
  writer_->EndRegion(at(0), kBytes);
}

// What is remembered of a word is the same for both ways.
TEST_F(GdrCopyTest, BothWaysAddToOneValue) {
  writer_->BeginRegion(at(0), kBytes);
  ASSERT_TRUE(writer_->Add(at(0), 1, true).ok());
  bool room = false;
  GpuBuffer other(gpu_.get(), 64);
  gpu_->fake().hold(1);
  ASSERT_TRUE(writer_->Put(static_cast<char*>(other.data()), "busy", &room).ok());
  ASSERT_TRUE(writer_->Add(at(0), 10, true).ok());
  gpu_->fake().hold(0);
  ASSERT_TRUE(writer_->Await().ok());
  ASSERT_TRUE(writer_->Add(at(0), 100, true).ok());
  EXPECT_EQ(Word(0), 111u);
  ASSERT_TRUE(writer_->Add(at(0), 1000, true).ok());
  EXPECT_EQ(Word(0), 1111u);
  const uint64_t anybodys = 1000;
  std::memcpy(view(8), &anybodys, sizeof(anybodys));
  ASSERT_TRUE(writer_->Add(at(8), 1, false).ok());
  EXPECT_EQ(Word(8), 1001u);
  writer_->EndRegion(at(0), kBytes);
}

TEST_F(GdrCopyTest, OnlyWhatIsRegisteredIsWrittenDirectly) {
  writer_->BeginRegion(at(64), 64);
  writer_->BeginRegion(at(64), 64);  // by another group
  EXPECT_EQ(fake_.pinned(), 2);
  gpu_->fake().hold(1);
  ASSERT_TRUE(writer_->Add(at(120), 1, false).ok());
  EXPECT_EQ(Word(120), 1u);
  writer_->EndRegion(at(64), 64);
  EXPECT_EQ(fake_.pinned(), 1);
  ASSERT_TRUE(writer_->Add(at(64), 1, false).ok());
  EXPECT_EQ(Word(64), 1u);
  for (const size_t outside : {size_t{56}, size_t{128}}) {
    ASSERT_TRUE(writer_->Add(at(outside), 1, false).ok());
    EXPECT_EQ(Word(outside), 0u) << outside << " waits for the stream";
    gpu_->fake().hold(0);
    ASSERT_TRUE(writer_->Await().ok());
    EXPECT_EQ(Word(outside), 1u);
    gpu_->fake().hold(1);
  }
  writer_->EndRegion(at(64), 64);
  EXPECT_EQ(fake_.pinned(), 0);
  ASSERT_TRUE(writer_->Add(at(64), 1, false).ok());
  EXPECT_EQ(Word(64), 1u) << "waits for the stream";
}

TEST_F(GdrCopyTest, WhatCannotBeMappedIsWrittenByTheStream) {
  for (const char* const function : {"gdr_pin_buffer", "gdr_map"}) {
    memory_->Fill(0);
    fake_.fail(function, ENOMEM);
    writer_->BeginRegion(at(0), kBytes);
    EXPECT_EQ(fake_.pinned(), 0) << function;
    ASSERT_TRUE(writer_->Add(at(0), 1, false).ok());
    ASSERT_TRUE(writer_->Await().ok());
    EXPECT_EQ(Word(0), 1u);
    writer_->EndRegion(at(0), kBytes);
    fake_.fail(function, 0);
  }
}

// As where a group was closed while its GPU was stuck.
TEST_F(GdrCopyTest, WhatIsStillMappedAtTheEndIsUnmapped) {
  writer_->BeginRegion(at(0), kBytes);
  EXPECT_EQ(fake_.pinned(), 1);
  writer_.reset();
  EXPECT_EQ(fake_.pinned(), 0);
}

TEST_F(GdrCopyTest, AfterAnErrorNothingIsWritten) {
  writer_->BeginRegion(at(0), kBytes);
  gpu_->fake().fail("cuMemcpyHtoDAsync", 0, 700);
  GpuBuffer other(gpu_.get(), 64);
  bool room = false;
  EXPECT_FALSE(writer_->Put(static_cast<char*>(other.data()), "refused", &room).ok());
  EXPECT_FALSE(writer_->Add(at(0), 1, false).ok());
  EXPECT_EQ(Word(0), 0u);
  writer_->EndRegion(at(0), kBytes);
}

TEST_F(GdrCopyTest, TheErrorNamesWhatIsMissing) {
  const auto why = [](const char* library) { return std::string(GdrCopy::Load(library).status().message()); };
  EXPECT_NE(why("libno-such-gdrapi.so").find("libno-such-gdrapi.so: cannot open shared object file"),
            std::string::npos);
  EXPECT_EQ(why("libc.so.6"), "libc.so.6 has no gdr_open");
  fake_.fail("gdr_open", 1);
  EXPECT_EQ(why("libgdrapi.so.2"), "gdr_open failed: is the kernel module gdrdrv loaded?");
  fake_.fail("gdr_open", 0);
  fake_.fail("gdr_get_attribute", 1);
  EXPECT_NE(why("libgdrapi.so.2").find("no persistent mappings"), std::string::npos);
  fake_.fail("gdr_get_attribute", 0);
  auto gdr = GdrCopy::Load();
  ASSERT_TRUE(gdr.ok()) << gdr.status();
  fake_.fail("gdr_pin_buffer", ENOMEM);
  EXPECT_EQ((*gdr)->Map(at(0), 8).message(), "gdr_pin_buffer failed: Cannot allocate memory (12)");
  gdr->reset();
}

}  // namespace
}  // namespace tcpx
