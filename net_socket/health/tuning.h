// tuning.h: the numbers by which a peer, a lane or a health socket counts as gone, in the form of
//           net_socket/pilot/tuning.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/clock.h"

namespace tcpx::tuning {

// == docs/healing.md: who is gone

// A refusing port counts as gone after this time, if no socket of its process was up meanwhile. [ns]
inline constexpr int64_t kRefusedNs = kSecond;
// A process that ends takes all its sockets with it; one that lives has dialled again by then. At the least: [ns]
inline constexpr int64_t kEndedNs = 120 * kMillisecond;
// The same in round trips of the path, where these take longer: the news, a SYN, its answer, and one to spare. [round
// trips]
inline constexpr int64_t kEndedRoundTrips = 4;
// The dialled end gives up later by this: the dialling end knows more, and says it. [ns]
inline constexpr int64_t kDiallerGivesUpNs = 2 * kSecond;
// A lost health socket is given up only if no lane was heard for this long; lanes are probed every 2 s meanwhile. [ns]
inline constexpr int64_t kHeardNs = 5 * kSecond;

// After a reset of the health socket: a dead process's lanes fall next, which tells it from a firewall's. [ns]
inline constexpr int64_t kLanesFallNs = 50 * kMillisecond;
// From one look at the peer of a health socket that is lost to the next, while its end may be news. [ns]
inline constexpr int64_t kAskPeerNs = 20 * kMillisecond;
// The same later. [ns]
inline constexpr int64_t kAskPeerLaterNs = 500 * kMillisecond;
// How long its end may be news. [ns]
inline constexpr int64_t kNewsNs = kSecond;
// From one question whether lanes have come back to the end that waits for them to the next. [ns]
inline constexpr int64_t kAskLanesNs = 500 * kMillisecond;
// How long the end of a process waits for a health socket that is lost. [ns]
inline constexpr int64_t kNotifyNs = 500 * kMillisecond;
// Half of the time in which the end of a peer has to be known: what ends a process ends its sockets within microseconds
// of each other, or a few time slices where the CPU is wanted by many. [ns]
inline constexpr int64_t kReasonNs = 100 * kMillisecond;
// Rows of reads of a health socket, of 16 each, in which all is read that was there at the first: more than it holds.
// [rows]
inline constexpr int kRowsMax = 256;
// Samples that the death of a lane needs at the least, however much time lies between them: a host that slept has few.
// [samples]
inline constexpr int kSamplesMin = 5;
// Probes in a row without an answer that it needs: one or two may be in flight, or lost with their answers. [probes]
inline constexpr uint32_t kProbesMin = 3;
// A peer whose window is shut waits itself if it was heard within this part of TCPX_PEER_TIMEOUT. [parts]
inline constexpr int64_t kHeardParts = 2;

// == docs/healing.md: silence, and sockets that move nothing

// From one look at a lane to the next. [ns]
inline constexpr int64_t kLookNs = 250 * kMillisecond;
// Looks at the health socket within TCPX_PEER_TIMEOUT. [looks]
inline constexpr int64_t kHealthLooks = 20;
// They are no further apart than this. [ns]
inline constexpr int64_t kHealthLookMaxNs = kSecond;
// A lane that was not looked at for this long had nothing to do: what was known of it is forgotten. [ns]
inline constexpr int64_t kNotLookedNs = 5 * kSecond;
// A lane is suspected when nothing was acknowledged for this long. [ns]
inline constexpr int64_t kSilentNs = 500 * kMillisecond;
// The most that this grows to after moves that did not help. [ns]
inline constexpr int64_t kSilentMaxNs = 30 * kSecond;
// Retransmissions, or probes of a shut window, without an answer: one is normal. [segments]
inline constexpr uint32_t kUnansweredMin = 2;
// The longest pause between two probes of a window that is shut, where it can be set (Linux 6.15). [ns;
// healing_gone_test: with the kernel's own pauses of up to 2 minutes a flow that was forgotten meanwhile is found no
// sooner]
inline constexpr int64_t kProbeNs = kSecond;
// The answer to such a probe is missing if it is late by this and a round trip. [ns]
inline constexpr int64_t kProbeAnswerNs = 300 * kMillisecond;
// The same after probing has ended: the kernel's own. [ns]
inline constexpr int64_t kProbeFreelyNs = 120 * kSecond;
// A socket of a lane is dialled no sooner after the one before, doubled by each that moves no byte. [ns]
inline constexpr int64_t kBetweenDialsNs = 10 * kMillisecond;
// The most that this grows to. [ns; killed_sockets_test: with 2 s a socket that dies each 2 ms, on a busy machine,
// moved nothing for 7 s]
inline constexpr int64_t kBetweenDialsMaxNs = 500 * kMillisecond;
// A peer whose kernel took a dial's socket within this, and TCPX_PEER_TIMEOUT, is reached: a dial waits 3 s for an
// answer, and others follow. [ns; survival_test: a stopped process is not a dropped flow]
inline constexpr int64_t kReachedNs = 10 * kSecond;
// How often the pause is doubled at the most. [times]
inline constexpr int kDoublingsMax = 10;
// From one such dial of a connection to the next: 20 a second. [ns]
inline constexpr int64_t kStuckDialsNs = 50 * kMillisecond;
// Sockets of a lane in a row that moved no byte, from which on the log gets one line a second, and a cause. [sockets]
inline constexpr int kStuckMin = 2;
// Lines about a connection's sockets that go to the log at once; after them one a second. [lines]
inline constexpr int64_t kLinesAtOnce = 20;
// Time in which the first new socket of a lane must move a byte, however long it was awaited. [ns]
inline constexpr int64_t kOneTryNs = 2 * kSecond;
// From one such line to the next. [ns]
inline constexpr int64_t kStuckLinesNs = kSecond;
// A lane that has moved no byte on any socket for this long is a WARN. [ns]
inline constexpr int64_t kStuckWarnNs = 6 * kSecond;
// The same for a lane with nothing to move, or a health socket, if none of its sockets lasts. [ns]
inline constexpr int64_t kStillWarnNs = 60 * kSecond;

// == docs/healing.md: verdicts

// A question is answered within a round trip and a turn of the peer's housekeeping. One that is this old, and that the
// peer's kernel has, is not read by its process. [ns]
inline constexpr int64_t kUnansweredNs = kSecond;
// What was sent this long ago, and not acknowledged by the peer's kernel, has been sent again more than once. [ns]
inline constexpr int64_t kUnheardNs = kSecond;
// A lane that was lost has another socket by then, where the network lets one through. [ns]
inline constexpr int64_t kLostNs = kSecond;

// == docs/healing.md: no CPU, and news of stalls

// A process of more threads than that is not looked at thread by thread. [threads]
inline constexpr size_t kCpuThreadsMax = 512;
// A thread that waited for a CPU for less is reported as not short of it. [percent of the time]
inline constexpr uint64_t kCpuShortPercent = 50;
// One that wanted a CPU for less is not judged. [percent of the time]
inline constexpr uint64_t kCpuWantedPercent = 70;
// Our threads are looked for anew after this many looks: an application may have hundreds, and ours stay. [looks]
inline constexpr int kCpuNamesKeptLooks = 8;
// An older look says nothing about now. The thread that looks may itself be short of CPU, and late. [ns]
inline constexpr int64_t kCpuOldNs = 30 * kSecond;
// A caller that has not asked for this long has no stalled request any more. [ns]
inline constexpr int64_t kStallAskedNs = 30 * kSecond;
// With more connections than this, what they come to may be old. [connections]
inline constexpr size_t kStallFewMax = 16;
// How old where there are news. [ns]
inline constexpr int64_t kStallRefreshNs = 100 * kMillisecond;
// And where nobody has news. [ns]
inline constexpr int64_t kStallNoNewsNs = kSecond;
// What a peer makes of a rank that closes its connections is no news for this long. [ns]
inline constexpr int64_t kRankClosingNs = 10 * kSecond;

}  // namespace tcpx::tuning
