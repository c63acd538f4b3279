// The key schedule against RFC 5869 and RFC 7748, and against what another implementation made of docs/security.md.
#include "net_socket/seal/key_schedule.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

template <typename Bytes>
std::string Hex(const Bytes& bytes) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// first, first + 1, ...
Key32 Counting(uint8_t first) {
  Key32 key;
  for (size_t i = 0; i < Key32::size(); ++i) key.data()[i] = static_cast<uint8_t>(first + i);
  return key;
}

Key32 FromHex(const char* hex) {
  Key32 key;
  absl::HexStringToBytes(hex).copy(reinterpret_cast<char*>(key.data()), Key32::size());
  return key;
}

const char* Data(const std::array<uint8_t, 32>& bytes) { return reinterpret_cast<const char*>(bytes.data()); }

TEST(KeyScheduleTest, ExtractsAsRfc5869) {
  const std::string input(22, '\x0b');
  EXPECT_EQ(Hex(Extract(absl::HexStringToBytes("000102030405060708090a0b0c"), input)),
            "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
}

TEST(KeyScheduleTest, AgreesAsRfc7748) {
  const EphemeralKey alice(FromHex("77076d0a7318a57d3c16c17251b26645df4c2f92ebc095f6c5d41d9c4a7d4b2a"));
  const EphemeralKey bob(FromHex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"));
  Key32 one;
  Key32 other;
  ASSERT_TRUE(alice.Agree(Data(bob.public_key()), &one));
  ASSERT_TRUE(bob.Agree(Data(alice.public_key()), &other));
  EXPECT_EQ(Hex(bob.public_key()), "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
  EXPECT_EQ(Hex(one), Hex(other));
}

// Points of small order: the result would be the same whatever we drew.
TEST(KeyScheduleTest, RefusesKeysThatAreNone) {
  const EphemeralKey ours(Counting(0));
  for (const char* none : {"0000000000000000000000000000000000000000000000000000000000000000",
                           "0100000000000000000000000000000000000000000000000000000000000000",
                           "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
                           "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"}) {
    Key32 shared;
    EXPECT_FALSE(ours.Agree(absl::HexStringToBytes(none).data(), &shared)) << none;
  }
}

TEST(KeyScheduleTest, GivesTheVectorsOfTheDocument) {
  const EphemeralKey acceptor(Counting(0));
  const EphemeralKey dialler(Counting(32));
  EXPECT_EQ(Hex(acceptor.public_key()), "8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285f");
  EXPECT_EQ(Hex(dialler.public_key()), "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254");
  Key32 shared;
  ASSERT_TRUE(acceptor.Agree(Data(dialler.public_key()), &shared));
  EXPECT_EQ(Hex(shared), "9663aa1da97e848a914a436d04163dfbb89178f107f1b5b77ed3854203382854");
  const Key32 early = Extract(Key32().view(), "sixteen and more");
  EXPECT_EQ(Hex(early), "5073c42ec2f62add844356b7a13df277484cb688c464827d9b7af2412806ad62");
  const std::string hellos = absl::StrCat("hello", "challenge", absl::string_view(Data(acceptor.public_key()), 32),
                                          absl::string_view(Data(dialler.public_key()), 32));
  const KeySchedule schedule(early, shared, hellos);
  const Digest proof = schedule.Finished(Side::kDialler, hellos);
  EXPECT_EQ(Hex(proof), "77d0f4cb5745bc20f5eb4ea4276733750be1a200f337c1b2e1c97a43c459dabe");
  const std::string proven = absl::StrCat(hellos, absl::string_view(Data(proof), 32));
  EXPECT_EQ(Hex(schedule.TrafficSecret(Side::kAcceptor, proven)),
            "be7f404b7bd8dc5da179d0630ee879b9acbdbe6e13326629e59d76a54c57443b");
  EXPECT_EQ(Hex(schedule.TrafficSecret(Side::kDialler, proven)),
            "dfc75bfa0e4a26924eb474c4b28daaf2ebddcbfa53646865851e020371862e0d");
  EXPECT_EQ(Hex(schedule.Finished(Side::kAcceptor, absl::StrCat(proven, "answer"))),
            "c8e67adf5588ee18f83dc2abf6aaf6c7edd02d6d04ced170102e3673eb77de09");
}

}  // namespace
}  // namespace tcpx
