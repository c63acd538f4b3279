// versions.h: every version of the interface that this project speaks, and the number of a table's type.
//
// Purpose: lets one template serve all tables: `if constexpr (kNetVersion<Table> >= 9)`.
#pragma once

#include "nccl/net_v10.h"
#include "nccl/net_v11.h"
#include "nccl/net_v12.h"
#include "nccl/net_v6.h"
#include "nccl/net_v7.h"
#include "nccl/net_v8.h"
#include "nccl/net_v9.h"

namespace tcpx {

inline constexpr int kOldestNetVersion = 6;
inline constexpr int kNewestNetVersion = 12;

template <class Table>
inline constexpr int kNetVersion = 0;
template <>
inline constexpr int kNetVersion<ncclNet_v6_t> = 6;
template <>
inline constexpr int kNetVersion<ncclNet_v7_t> = 7;
template <>
inline constexpr int kNetVersion<ncclNet_v8_t> = 8;
template <>
inline constexpr int kNetVersion<ncclNet_v9_t> = 9;
template <>
inline constexpr int kNetVersion<ncclNet_v10_t> = 10;
template <>
inline constexpr int kNetVersion<ncclNet_v11_t> = 11;
template <>
inline constexpr int kNetVersion<ncclNet_v12_t> = 12;

}  // namespace tcpx
