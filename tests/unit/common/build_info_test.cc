// The build id that the linker writes.
#include "common/build_info.h"

#include <cstring>

#include "gtest/gtest.h"

namespace tcpx {
namespace {

TEST(BuildInfoTest, TheLinkersIdIsFound) { EXPECT_EQ("feedc0de01", BuildId()); }

TEST(BuildInfoTest, ThereIsAVersion) { EXPECT_LT(0u, std::strlen(kVersion)); }

}  // namespace
}  // namespace tcpx
