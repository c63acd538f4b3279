#include "common/traffic_class.h"

#include <climits>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

// "0:8,1:18", or "wrong".
std::string Parsed(absl::string_view text) {
  const absl::StatusOr<TrafficClassMap> map = ParseTrafficClassMap(text);
  if (!map.ok()) return map.status().code() == absl::StatusCode::kInvalidArgument ? "wrong" : "another error";
  std::string out;
  for (const auto& [id, dscp] : *map) absl::StrAppend(&out, out.empty() ? "" : ",", id, ":", dscp);
  return out;
}

TEST(TrafficClassMapTest, ReadsNamesAndNumbers) {
  EXPECT_EQ(Parsed(""), "");
  EXPECT_EQ(Parsed("0:cs1,1:af21,2:46"), "0:8,1:18,2:46");
  EXPECT_EQ(Parsed("255:63"), "255:63");
  EXPECT_EQ(Parsed("7:0"), "7:0");
  EXPECT_EQ(Parsed("1:EF,2:Af43"), "1:46,2:38");
}

// RFC 2474: cs is 8 x. RFC 2597: afXY is 8 X + 2 Y.
TEST(TrafficClassMapTest, KnowsEveryName) {
  for (int selector = 0; selector < 8; ++selector) {
    EXPECT_EQ(Parsed(absl::StrCat("1:cs", selector)), absl::StrCat("1:", 8 * selector));
  }
  for (int klass = 1; klass <= 4; ++klass) {
    for (int drop = 1; drop <= 3; ++drop) {
      EXPECT_EQ(Parsed(absl::StrCat("1:af", klass, drop)), absl::StrCat("1:", 8 * klass + 2 * drop));
    }
  }
  EXPECT_EQ(Parsed("1:ef,2:va,3:le,4:df,5:be"), "1:46,2:44,3:1,4:0,5:0");
}

TEST(TrafficClassMapTest, RefusesEverythingElse) {
  for (const char* text : {",",
                           "0",
                           "0:",
                           ":46",
                           "0:64",
                           "0:-1",
                           "0:+1",
                           "-1:46",
                           "256:46",
                           "0:cs8",
                           "0:af44",
                           "0:af1",
                           "0:ef,",
                           ",0:ef",
                           "0:ef,,1:le",
                           "0:ef 1:le",
                           " 0:ef",
                           "0:ef ",
                           "0:0x2e",
                           "0:ef:1",
                           "a:ef",
                           "0:99999999999999999999",
                           "99999999999999999999:1",
                           "0=ef",
                           "1:ef,1:ef",
                           "1:ef,01:le"}) {
    EXPECT_EQ(Parsed(text), "wrong") << text;
  }
}

TEST(TrafficClassTest, IsTheOctetWithoutTheBitsOfEcn) {
  for (int value = 0; value <= 255; ++value) {
    const absl::StatusOr<int> octet = ResolveTrafficClass(value, {});
    ASSERT_TRUE(octet.ok()) << octet.status();
    EXPECT_EQ(DscpOf(*octet), value >> 2);
    EXPECT_EQ(*octet % 4, 0) << value;
    EXPECT_TRUE(IsTrafficClass(*octet));
  }
}

TEST(TrafficClassTest, IsTheDscpOfItsIdWhereThereIsOne) {
  const TrafficClassMap map = *ParseTrafficClassMap("0:cs1,184:63");
  EXPECT_EQ(*ResolveTrafficClass(0, map), 32);
  EXPECT_EQ(*ResolveTrafficClass(184, map), 252);
  EXPECT_EQ(*ResolveTrafficClass(104, map), 104) << "no id of the map";
}

TEST(TrafficClassTest, OutOfRangeSaysWhatIsAllowed) {
  for (int value : {-2, 256, INT_MAX, INT_MIN, -1}) {
    const absl::Status status = ResolveTrafficClass(value, *ParseTrafficClassMap("0:cs1")).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << value;
    EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("traffic class ", value, " is out of range")));
    EXPECT_TRUE(absl::StrContains(status.message(), "0 to 255")) << status;
  }
}

TEST(TrafficClassTest, WhatPacketsMayBear) {
  for (int octet : {-1, 0, 4, 184, 252}) EXPECT_TRUE(IsTrafficClass(octet)) << octet;
  for (int octet : {-2, 1, 2, 3, 185, 253, 255, 256, 260, INT_MAX, INT_MIN}) {
    EXPECT_FALSE(IsTrafficClass(octet)) << octet;
  }
}

TEST(TrafficClassTest, PriorityIsTheClassSelector) {
  EXPECT_EQ(PriorityOf(0), 0);
  EXPECT_EQ(PriorityOf(8 << 2), 1) << "cs1";
  EXPECT_EQ(PriorityOf(46 << 2), 5) << "ef";
  EXPECT_EQ(PriorityOf(252), 7);
}

TEST(TrafficClassTest, SuffixOfALogLine) {
  EXPECT_EQ(TrafficClassSuffix(kNoTrafficClass), "");
  EXPECT_EQ(TrafficClassSuffix(184), ", dscp 46 (ef)");
  EXPECT_EQ(TrafficClassSuffix(0), ", dscp 0 (df)");
  EXPECT_EQ(TrafficClassSuffix(252), ", dscp 63");
}

TEST(TrafficClassTest, ANamedOneIsNoIdOfTheMap) {
  EXPECT_EQ(46, DscpOfName("ef"));
  EXPECT_EQ(46, DscpOfName("EF"));
  EXPECT_EQ(std::nullopt, DscpOfName("46"));
  EXPECT_EQ(std::nullopt, DscpOfName(""));
  const TrafficClassMap map = *ParseTrafficClassMap("184:cs1,5:cs2");
  EXPECT_EQ(184, *ResolveTrafficClass(AskedClass{46 << 2, true}, map));
  EXPECT_EQ(8 << 2, *ResolveTrafficClass(AskedClass{184, false}, map));
  EXPECT_EQ(16 << 2, *ResolveTrafficClass(AskedClass{5, false}, map));
}

}  // namespace
}  // namespace tcpx
