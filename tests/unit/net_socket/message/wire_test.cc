#include "net_socket/message/wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

std::string Hex(const char* bytes, size_t length) { return absl::BytesToHexString(absl::string_view(bytes, length)); }

FrameHeader SomeChunk() {
  FrameHeader header;
  header.padding = 0x0201;
  header.length = 0x1000;
  header.sequence = 0x1122334455667788;
  header.offset = 0x2000;
  header.message_bytes = 0x123456;
  header.tag = -2;
  return header;
}

SocketAddress Address(const std::string& text) { return *SocketAddress::Parse(text); }

TEST(WireHeaderTest, GoldenBytes) {
  char bytes[kHeaderBytes];
  std::memset(bytes, 0xEE, sizeof(bytes));
  EncodeHeader(SomeChunk(), bytes);
  const std::string used =
      "0100"
      "0102"
      "00100000"
      "8877665544332211"
      "0020000000000000"
      "5634120000000000"
      "feffffff";
  EXPECT_EQ(used + std::string(2 * 28, '0'), Hex(bytes, kHeaderBytes)) << "36 bytes, and zeros up to a cache line";
}

TEST(WireHeaderTest, ComesBackAsItWas) {
  char bytes[kHeaderBytes];
  EncodeHeader(SomeChunk(), bytes);
  FrameHeader header;
  ASSERT_EQ(nullptr, DecodeHeader(bytes, &header));
  EXPECT_EQ(FrameKind::kChunk, header.kind);
  EXPECT_EQ(0x0201, header.padding);
  EXPECT_EQ(0x1000u, header.length);
  EXPECT_EQ(0x1122334455667788u, header.sequence);
  EXPECT_EQ(0x2000u, header.offset);
  EXPECT_EQ(0x123456u, header.message_bytes);
  EXPECT_EQ(-2, header.tag);
}

struct HeaderCase {
  const char* what;
  FrameKind kind;
  uint32_t length;
  uint64_t offset;
  uint64_t message_bytes;
  const char* wrong;  // null: it is right
};

constexpr FrameKind kChunk = FrameKind::kChunk;

const HeaderCase kHeaderCases[] = {
    {"whole message", kChunk, 100, 0, 100, nullptr},
    {"empty message", kChunk, 0, 0, 0, nullptr},
    {"last byte", kChunk, 1, 99, 100, nullptr},
    {"largest message", kChunk, 1, kMessageBytesMax - 1, kMessageBytesMax, nullptr},
    {"largest chunk", kChunk, kChunkBytesMax, 0, kChunkBytesMax, nullptr},
    {"too large a message", kChunk, 1, 0, kMessageBytesMax + 1, "message larger than 1 TiB"},
    {"enormous message", kChunk, 1, 0, ~uint64_t{0}, "message larger than 1 TiB"},
    {"too large a chunk", kChunk, kChunkBytesMax + 1, 0, kMessageBytesMax, "chunk larger than 1 GiB"},
    {"longer than its message", kChunk, 101, 0, 100, "chunk larger than its message"},
    {"bytes of an empty message", kChunk, 1, 0, 0, "chunk larger than its message"},
    {"one byte past the end", kChunk, 100, 1, 100, "chunk past the end of its message"},
    {"far past the end", kChunk, 1, 1000, 100, "chunk past the end of its message"},
    {"offset that wraps", kChunk, 100, ~uint64_t{0} - 50, 200, "chunk past the end of its message"},
    {"offset in an empty message", kChunk, 0, 1, 0, "chunk past the end of its message"},
    {"empty chunk", kChunk, 0, 50, 100, "empty chunk of a message that is not empty"},
    {"kind 0", static_cast<FrameKind>(0), 0, 0, 0, "unknown kind of frame"},
    {"kind 2", static_cast<FrameKind>(2), 1, 0, 1, "unknown kind of frame"},
    {"kind 63", static_cast<FrameKind>(63), 0, 0, 0, "unknown kind of frame"},
    {"credit", FrameKind::kCredit, 64, 0, 0, nullptr},
    {"record of a kind to come", static_cast<FrameKind>(255), 10, 7, 3, nullptr},
    {"longest record", FrameKind::kError, kRecordBytesMax, 0, 0, nullptr},
    {"record too long", FrameKind::kError, kRecordBytesMax + 1, 0, 0, "record longer than 64 KiB"},
    {"enormous record", static_cast<FrameKind>(200), 0xffffffff, 0, 0, "record longer than 64 KiB"},
};

TEST(WireHeaderTest, EverythingThatCanBeWrong) {
  for (const HeaderCase& row : kHeaderCases) {
    FrameHeader header;
    header.kind = row.kind;
    header.length = row.length;
    header.offset = row.offset;
    header.message_bytes = row.message_bytes;
    char bytes[kHeaderBytes];
    EncodeHeader(header, bytes);
    FrameHeader decoded;
    EXPECT_STREQ(row.wrong, DecodeHeader(bytes, &decoded)) << row.what;
  }
}

// A peer's text goes into a log line that may be parsed, or shown on a terminal.
TEST(WireCauseTest, NoLongAndNoForgedLines) {
  EXPECT_EQ("", CauseText(""));
  EXPECT_EQ("lane 3: reset ~", CauseText("lane 3: reset ~"));
  EXPECT_EQ("a?NCCL WARN forged?[2J???", CauseText(absl::string_view("a\nNCCL WARN forged\x1b[2J\x7f\xff\0", 25)));
  EXPECT_EQ(std::string(kCauseBytesMax, 'e'), CauseText(std::string(kCauseBytesMax + 1, 'e')));
}

Hello SomeHello() {
  Hello hello;
  for (size_t i = 0; i < 16; ++i) hello.ticket[i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < 16; ++i) hello.connection_id[i] = static_cast<uint8_t>(0xf0 + i);
  hello.lane = 3;
  hello.lanes = 9;
  hello.features = 0x0102030405060708;
  hello.express_bytes = 65536;
  hello.traffic_class = 184;
  hello.attempt = 0x0a0b0c0d;
  return hello;
}

TEST(WireHelloTest, GoldenBytes) {
  char bytes[kHelloBytes];
  EncodeHello(SomeHello(), bytes);
  EXPECT_EQ(
      "54435058"
      "0100"
      "0300"
      "0900"
      "0000"
      "b8000000"
      "000102030405060708090a0b0c0d0e0f"
      "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
      "0807060504030201"
      "00000100"
      "0d0c0b0a",
      Hex(bytes, kHelloBytes));
}

TEST(WireHelloTest, ComesBackAsItWas) {
  char bytes[kHelloBytes];
  EncodeHello(SomeHello(), bytes);
  Hello hello;
  ASSERT_EQ(nullptr, DecodeHello(bytes, &hello));
  EXPECT_EQ(kWireVersion, hello.version);
  EXPECT_EQ(SomeHello().ticket, hello.ticket);
  EXPECT_EQ(SomeHello().connection_id, hello.connection_id);
  EXPECT_EQ(3, hello.lane);
  EXPECT_EQ(9, hello.lanes);
  EXPECT_EQ(0x0102030405060708u, hello.features);
  EXPECT_EQ(65536u, hello.express_bytes);
  EXPECT_EQ(184, hello.traffic_class);
  EXPECT_EQ(0x0a0b0c0du, hello.attempt);
}

TEST(WireHelloTest, AnotherVersionDecodesButGarbageDoesNot) {
  Hello hello = SomeHello();
  hello.version = 77;
  char bytes[kHelloBytes];
  EncodeHello(hello, bytes);
  ASSERT_EQ(nullptr, DecodeHello(bytes, &hello));
  EXPECT_EQ(77, hello.version);
  for (int at = 0; at < 4; ++at) {
    bytes[at] ^= 1;
    EXPECT_STREQ("not a tcpx peer", DecodeHello(bytes, &hello)) << at;
    bytes[at] ^= 1;
  }
}

TEST(WireHandleTest, GoldenBytes) {
  Handle handle;
  handle.address = Address("10.1.2.3:4410");
  for (size_t i = 0; i < 16; ++i) handle.ticket[i] = static_cast<uint8_t>(0xa0 + i);
  char bytes[kHandleUsedBytes];
  EncodeHandle(handle, bytes);
  EXPECT_EQ(
      "58504354"
      "0100"
      "0100"
      "0004"
      "113a"
      "00000000"
      "0a010203"
      "000000000000000000000000"
      "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf" +
          std::string(64, '0'),
      Hex(bytes, kHandleUsedBytes));
  handle.other_address = Address("[fd00::1]:4411");
  handle.other_nics = 2;
  EncodeHandle(handle, bytes);
  const std::string other = "02000000000000000006113b00000000fd000000000000000000000000000001";
  EXPECT_EQ(other, Hex(bytes + 48, kHandleUsedBytes - 48));
}

// What older builds write there is zeros; what is senseless is as good.
TEST(WireHandleTest, TheOtherAddressIsThereOrNot) {
  struct Row {
    const char* text;
    uint16_t nics;
    bool kept;
  };
  const Row rows[] = {
      {"[fd00::1]:4411", 1, true},  {"[fd00::1]:4411", kNicsMax, true}, {"[fd00::1]:4411", kNicsMax + 1, false},
      {"[fd00::1]:4411", 0, false}, {"[fd00::1]:0", 1, false},          {"[::]:4411", 1, false},
      {"10.1.2.4:4411", 1, false},
  };
  for (const Row& row : rows) {
    Handle in, out;
    in.address = Address("10.1.2.3:4410");
    in.other_address = Address(row.text);
    in.other_nics = row.nics;
    char bytes[kHandleUsedBytes];
    EncodeHandle(in, bytes);
    ASSERT_EQ(nullptr, DecodeHandle(bytes, &out)) << row.text;
    EXPECT_EQ(row.kept ? row.nics : 0, out.other_nics) << row.text;
    EXPECT_EQ(row.kept ? in.other_address : SocketAddress(), out.other_address) << row.text;
  }
}

TEST(WireHandleTest, ComesBackAsItWas) {
  for (const char* text : {"10.1.2.3:4410", "[fd00::1]:65535"}) {
    Handle in, out;
    in.address = Address(text);
    in.ticket.fill(7);
    in.nics = kNicsMax;
    char bytes[kHandleUsedBytes];
    EncodeHandle(in, bytes);
    ASSERT_EQ(nullptr, DecodeHandle(bytes, &out)) << text;
    EXPECT_EQ(in.address, out.address);
    EXPECT_EQ(in.ticket, out.ticket);
    EXPECT_EQ(kNicsMax, out.nics);
  }
}

TEST(WireHandleTest, EverythingThatCanBeWrong) {
  struct Case {
    size_t at;
    char value;
    const char* wrong;
  };
  const Case cases[] = {
      {0, 0, "handle was not written by tcpx: every rank must load the same plugin"},
      {3, 0, "handle was not written by tcpx: every rank must load the same plugin"},
      {4, 2, "handle is of another wire version of tcpx: install one build on all ranks"},
      {5, 1, "handle is of another wire version of tcpx: install one build on all ranks"},
      {9, 5, "handle holds no address"},  // a family that is neither 4 nor 6
      {8, 1, "handle holds no address"},
      {6, 0, "handle holds a senseless number of interfaces"},
      {6, kNicsMax + 1, "handle holds a senseless number of interfaces"},
      {7, 1, "handle holds a senseless number of interfaces"},
  };
  for (const Case& row : cases) {
    Handle handle;
    handle.address = Address("10.1.2.3:4410");
    char bytes[kHandleUsedBytes];
    EncodeHandle(handle, bytes);
    bytes[row.at] = row.value;
    EXPECT_STREQ(row.wrong, DecodeHandle(bytes, &handle)) << row.at;
  }
  Handle handle;
  handle.address = Address("10.1.2.3:0");
  char bytes[kHandleUsedBytes];
  EncodeHandle(handle, bytes);
  EXPECT_STREQ("handle holds no address", DecodeHandle(bytes, &handle));
  const char zeros[kHandleUsedBytes] = {};
  EXPECT_NE(nullptr, DecodeHandle(zeros, &handle));
}

TEST(WireHandleTest, KeyIsAfterWhatTravels) {
  EXPECT_LE(kHandleUsedBytes, kHandleKeyOffset);
  EXPECT_LE(kHandleKeyOffset + sizeof(uint64_t), 128u);
}

TEST(WireAnswerTest, GoldenBytes) {
  Answer answer;
  answer.status = HelloStatus::kBusy;
  answer.max_receives = 8;
  answer.features = 0xff;
  answer.nics = {{Address("10.0.0.1:80"), 25000}};
  char bytes[kAnswerBytesMax];
  const size_t length = EncodeAnswer(answer, bytes);
  ASSERT_EQ(kAnswerFixedBytes + 32, length);
  EXPECT_EQ(
      "54435072"
      "0100"
      "0500"
      "08000000"
      "01000000"
      "ff00000000000000"
      "0000000000000000"
      "0004"
      "0050"
      "00000000"
      "0a000001"
      "000000000000000000000000"
      "a8610000"
      "00000000",
      Hex(bytes, length));
}

// Eight addresses of the longest kind. A scope is an index on the host that wrote it: the reader gets none, and fills
// in its own interface's.
TEST(WireAnswerTest, EightIpv6InterfacesComeBackAsTheyWere) {
  Answer in;
  in.max_receives = 3;
  for (int i = 0; i < kNicsMax; ++i) {
    PeerNic nic = {Address("[2001:db8:ffff:ffff:ffff:ffff:ffff:fff" + std::to_string(i) + "]:65535"), 400000};
    if (i % 2 == 1) nic.address = Address("[fe80::" + std::to_string(i) + "]:1234");
    if (i % 2 == 1) nic.address.set_scope(1000 + static_cast<uint32_t>(i));
    in.nics.push_back(nic);
  }
  char bytes[kAnswerBytesMax];
  ASSERT_EQ(kAnswerBytesMax, EncodeAnswer(in, bytes));
  Answer out;
  int nics = 0;
  ASSERT_EQ(nullptr, DecodeAnswer(bytes, &out, &nics));
  ASSERT_EQ(8, nics);
  ASSERT_EQ(nullptr, DecodeAnswerNics(bytes + kAnswerFixedBytes, nics, &out));
  ASSERT_EQ(8u, out.nics.size());
  for (size_t i = 0; i < out.nics.size(); ++i) {
    EXPECT_EQ(0u, out.nics[i].address.scope());
    in.nics[i].address.set_scope(0);
    EXPECT_EQ(in.nics[i].address, out.nics[i].address);
    EXPECT_EQ(400000u, out.nics[i].speed_mbps);
  }
  EXPECT_EQ(HelloStatus::kAccepted, out.status);
  EXPECT_EQ(3u, out.max_receives);
}

TEST(WireAnswerTest, EverythingThatCanBeWrong) {
  Answer answer;
  char bytes[kAnswerBytesMax];
  int nics = 0;
  EncodeAnswer(answer, bytes);
  bytes[2] ^= 4;
  EXPECT_STREQ("not a tcpx peer", DecodeAnswer(bytes, &answer, &nics));
  for (const uint32_t count : {uint32_t{kNicsMax + 1}, uint32_t{0x7fffffff}, uint32_t{0xffffffff}}) {
    EncodeAnswer(Answer(), bytes);
    std::memcpy(bytes + 12, &count, sizeof(count));
    EXPECT_STREQ("more interfaces than a device can have", DecodeAnswer(bytes, &answer, &nics)) << count;
  }
  for (const uint32_t receives : {uint32_t{0}, uint32_t{kReceivesMax + 1}, uint32_t{0xffffffff}}) {
    Answer wrong;
    wrong.max_receives = receives;
    EncodeAnswer(wrong, bytes);
    EXPECT_STREQ("of receives in groups of a wrong size", DecodeAnswer(bytes, &answer, &nics)) << receives;
  }
}

TEST(WireAnswerTest, InterfacesWithoutAnAddressAreRefused) {
  for (const char* what : {"no address", "no port"}) {
    char bytes[2 * kPeerNicBytes] = {};
    Address("10.0.0.1:80").Encode(bytes);
    if (std::string(what) == "no port") Address("10.0.0.2").Encode(bytes + kPeerNicBytes);
    Answer answer;
    EXPECT_STREQ("an interface without an address", DecodeAnswerNics(bytes, 2, &answer)) << what;
    EXPECT_EQ(nullptr, DecodeAnswerNics(bytes, 1, &answer)) << what;
    EXPECT_EQ(1u, answer.nics.size());
  }
}

// Whatever a peer sends, what is decoded is within bounds (and the sanitizers see no byte beyond).
TEST(WireAnswerTest, RandomBytes) {
  Rng random(TestSeed());
  for (int round = 0; round < 20000; ++round) {
    char bytes[kAnswerBytesMax];
    EncodeAnswer(Answer(), bytes);
    for (size_t i = 4; i < sizeof(bytes); ++i) bytes[i] = static_cast<char>(random.Next());
    if (round % 2 == 0) std::memset(bytes + 13, 0, 3);
    Answer answer;
    int nics = 0;
    if (DecodeAnswer(bytes, &answer, &nics) != nullptr) continue;
    ASSERT_LE(nics, kNicsMax);
    if (DecodeAnswerNics(bytes + kAnswerFixedBytes, nics, &answer) == nullptr) {
      ASSERT_EQ(static_cast<size_t>(nics), answer.nics.size());
    }
  }
}

TEST(WireAnswerTest, EveryStatusHasAText) {
  for (uint16_t status = 0; status < 12; ++status) {
    EXPECT_LT(0u, std::strlen(HelloStatusText(static_cast<HelloStatus>(status))));
  }
  EXPECT_STREQ("the peer refused for a reason this build does not know",
               HelloStatusText(static_cast<HelloStatus>(999)));
  EXPECT_STREQ("the peer refused for a reason this build does not know", HelloStatusText(HelloStatus::kCrowd))
      << "a peer that sends what is only ours has sent something unknown";
}

}  // namespace
}  // namespace tcpx
