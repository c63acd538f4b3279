#include "bench/nccl_bench/data_type.h"

#include <string.h>

#include <cmath>

namespace tcpx {
namespace nccl_bench {
namespace {

// What floating-point formats of 16 bits differ in.
struct Format {
  int mantissa_bits;  // stored ones
  int exponent_min;   // of the smallest normal value
  int exponent_max;   // of the largest
};
constexpr Format kHalf = {10, -14, 15};
constexpr Format kBfloat16 = {7, -126, 127};

constexpr int kSignBit = 15;

uint16_t Infinity(const Format& format) {
  const int exponent_field = format.exponent_max - format.exponent_min + 2;
  return static_cast<uint16_t>(exponent_field << format.mantissa_bits);
}

// Counting in units of the last place, a carry out of the mantissa raises the exponent field by itself.
uint16_t Encode(const Format& format, double value) {
  const uint16_t sign = static_cast<uint16_t>(std::signbit(value) ? 1 << kSignBit : 0);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | Infinity(format) | 1);
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | Infinity(format));
  if (magnitude == 0) return sign;
  int exponent = std::ilogb(magnitude);
  if (exponent > format.exponent_max) return static_cast<uint16_t>(sign | Infinity(format));
  const bool subnormal = exponent < format.exponent_min;
  if (subnormal) exponent = format.exponent_min;
  // nearbyint rounds ties to even in the default rounding mode.
  const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  const int field = subnormal ? 0 : exponent - format.exponent_min;
  return static_cast<uint16_t>(sign | ((field << format.mantissa_bits) + static_cast<int>(units)));
}

double Decode(const Format& format, uint16_t bits) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int field = (bits & 0x7fff) >> format.mantissa_bits;
  const double sign = (bits >> kSignBit) != 0 ? -1 : 1;
  if ((field << format.mantissa_bits) == Infinity(format)) return mantissa == 0 ? sign * INFINITY : NAN;
  if (field == 0) return sign * std::ldexp(mantissa, format.exponent_min - format.mantissa_bits);
  const int full = mantissa + (1 << format.mantissa_bits);
  return sign * std::ldexp(full, format.exponent_min + field - 1 - format.mantissa_bits);
}

template <class T>
void Store(void* array, size_t index, T value) {
  memcpy(static_cast<char*>(array) + index * sizeof(T), &value, sizeof(T));
}

template <class T>
T Load(const void* array, size_t index) {
  T value;
  memcpy(&value, static_cast<const char*>(array) + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

const char* DataTypeName(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return "float";
    case DataType::kHalf:
      return "half";
    case DataType::kBfloat16:
      return "bfloat16";
    case DataType::kInt8:
      return "int8";
  }
  return "?";
}

size_t DataTypeBytes(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return sizeof(float);
    case DataType::kHalf:
    case DataType::kBfloat16:
      return sizeof(uint16_t);
    case DataType::kInt8:
      return sizeof(int8_t);
  }
  return 0;
}

double Roundoff(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return std::ldexp(1, -24);
    case DataType::kHalf:
      return std::ldexp(1, -11);
    case DataType::kBfloat16:
      return std::ldexp(1, -8);
    case DataType::kInt8:
      return 0;
  }
  return 0;
}

uint16_t HalfFromDouble(double value) { return Encode(kHalf, value); }
double DoubleFromHalf(uint16_t bits) { return Decode(kHalf, bits); }
uint16_t Bfloat16FromDouble(double value) { return Encode(kBfloat16, value); }
double DoubleFromBfloat16(uint16_t bits) { return Decode(kBfloat16, bits); }

void StoreElement(DataType type, void* array, size_t index, double value) {
  switch (type) {
    case DataType::kFloat:
      return Store(array, index, static_cast<float>(value));
    case DataType::kHalf:
      return Store(array, index, HalfFromDouble(value));
    case DataType::kBfloat16:
      return Store(array, index, Bfloat16FromDouble(value));
    case DataType::kInt8:
      return Store(array, index, static_cast<uint8_t>(static_cast<int64_t>(value)));
  }
}

double LoadElement(DataType type, const void* array, size_t index) {
  switch (type) {
    case DataType::kFloat:
      return Load<float>(array, index);
    case DataType::kHalf:
      return DoubleFromHalf(Load<uint16_t>(array, index));
    case DataType::kBfloat16:
      return DoubleFromBfloat16(Load<uint16_t>(array, index));
    case DataType::kInt8:
      return Load<int8_t>(array, index);
  }
  return 0;
}

}  // namespace nccl_bench
}  // namespace tcpx
