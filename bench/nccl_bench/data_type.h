// data_type.h: the data types of nccl_bench and what the host must know of them.
//
// Purpose: half and bfloat16 on the host, without CUDA: conversions that round to nearest, ties to even.
// Threads: any; pure.
// Units:   bytes; Roundoff is relative.
// Errors:  none: a value too large for half becomes infinity, as on the device.
// Source:  IEEE 754 binary16 (1+5+10 bits); bfloat16 is the upper half of binary32 (1+8+7 bits).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcpx {
namespace nccl_bench {

enum class DataType { kFloat, kHalf, kBfloat16, kInt8 };
inline constexpr DataType kDataTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kBfloat16, DataType::kInt8};

const char* DataTypeName(DataType type);
size_t DataTypeBytes(DataType type);

// Half the distance between 1 and the next larger value: the most by which one rounding is wrong, relatively. 0 for
// integers, which never round.
double Roundoff(DataType type);

uint16_t HalfFromDouble(double value);
double DoubleFromHalf(uint16_t bits);
uint16_t Bfloat16FromDouble(double value);
double DoubleFromBfloat16(uint16_t bits);

// Element `index` of an array of `type`. Store rounds to the type; int8 keeps the lowest eight bits, as sums on the
// device do.
void StoreElement(DataType type, void* array, size_t index, double value);
double LoadElement(DataType type, const void* array, size_t index);

}  // namespace nccl_bench
}  // namespace tcpx
