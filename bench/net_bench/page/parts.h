// parts.h: what the page of net_bench --report is made of: texts generated from this folder's other files and uPlot's.
//
// Threads: constants.
#pragma once

namespace tcpx {
namespace bench {
namespace page {

extern const char kUplotStyle[];
extern const char kUplotScript[];
extern const char kStyle[];
extern const char kScript[];

}  // namespace page
}  // namespace bench
}  // namespace tcpx
