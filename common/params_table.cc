// The one table of parameters. The defaults are the initial values of Options.
#include <climits>

#include "common/limits.h"
#include "common/params.h"

namespace tcpx {
namespace {

constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;
constexpr SpecialValue kNoSpecial;

// docs/parameters.md shows each audience's in this order: by interfaces, lanes, threads, sizes, sockets, time, the GPU.
constexpr Parameter kParameters[] = {
    {"NCCL_SOCKET_IFNAME", ParameterKind::kText, &Options::ifname, 0, 0, kNoSpecial, Audience::kMost,
     "Which network interfaces become devices, as in NCCL: a comma-separated list of name prefixes; `=` in front makes "
     "them exact names, `^` in front excludes them (`eth`, `=eth0,eth1`, `^docker,lo`). Unset: `ib*`, else the "
     "interface in the subnet of NCCL_COMM_ID, else everything but `docker*`, `lo*` and `virbr*`, else these three in "
     "turn. Set it when the log names an interface that the other hosts can't reach."},
    {"NCCL_SOCKET_FAMILY", ParameterKind::kText, &Options::family, 0, 0, kNoSpecial, Audience::kMost,
     "`AF_INET` or `AF_INET6` restricts the interfaces' addresses to that family, as in NCCL; anything else allows "
     "both: the first address of each interface is what peers try first, and the first one of the other family is "
     "offered beside it (not where it is link-local). A peer takes what it has itself. Set it on hosts where only one "
     "family is routed."},
    {"TCPX_PORT_RANGE", ParameterKind::kPorts, &Options::port_range, 1, 65535, kNoSpecial, Audience::kOperator,
     "Ports that the listening sockets may use, such as `40000-40100`; one is used per device and process for each "
     "address that it listens on: of each of its interfaces (a fused device has several) and of each family. Where "
     "none is left for the second family, a WARN says so and peers get the first. A run may follow another at once: "
     "what the last one left in TIME_WAIT is no hindrance. Where none is left at all, listen fails at once and names "
     "the processes that have them; ports that this user may not have (EACCES) are passed over. Empty: the kernel "
     "chooses. Set it where a firewall needs a known range, with room for every rank on the host."},
    {"TCPX_SECRET_FILE", ParameterKind::kText, &Options::secret_file, 0, 0, kNoSpecial, Audience::kMost,
     "A file with a secret that all ranks share: 16 to 4096 bytes, of which a newline at the end does not count, such "
     "as what `openssl rand -base64 32` writes. Each side of every new connection then proves to the other that it has "
     "it, which costs one more round trip at connect and nothing afterwards; a peer without it, or with another one, "
     "is refused, and the logs of both sides say so. Read once, when NCCL loads the plugin; when it can't be used, "
     "every listen and connect fails with the reason. Data is not encrypted: docs/security.md says what this protects. "
     "Set it where others can reach the network of the job."},
    {"TCPX_ENCRYPT", ParameterKind::kFlag, &Options::encrypt, 0, 0, kNoSpecial, Audience::kMost,
     "on encrypts and authenticates everything that connections carry, tensors included, with keys of each socket's "
     "own (docs/security.md). TCPX_SECRET_FILE must be set too, else every listen and connect fails with the reason, "
     "as it does where the value is neither on nor off, or empty, and where a name is set that is almost this one. Set "
     "it alike on all ranks: those that disagree refuse each other. NCCL's bootstrap has sockets of its own, which "
     "this "
     "does not protect. docs/performance.md says how much CPU time it costs."},
    {"TCPX_REQUIRE_ENCRYPTION", ParameterKind::kFlag, &Options::require_encryption, 0, 0, kNoSpecial,
     Audience::kOperator,
     "on refuses every listen and connect of a job without TCPX_ENCRYPT=1 and a secret, with the reason. Set it in "
     "`/etc/nccl.conf` where no job of a site may send in the clear."},
    {"TCPX_ENCRYPT_CIPHER", ParameterKind::kText, &Options::encrypt_cipher, 0, 0, kNoSpecial, Audience::kFew,
     "With TCPX_ENCRYPT: `aes128-ocb`, `aes128-gcm` or `chacha20-poly1305` allows that cipher alone. Empty: the first "
     "of "
     "these that both ends have; AES needs libgcrypt 1.8 or later on the machine and a processor with instructions for "
     "it. Set it where a rule asks for a cipher of NIST's: `aes128-gcm`."},
    {"TCPX_THREADS",
     ParameterKind::kCount,
     &Options::threads,
     0,
     64,
     {"auto", -1},
     Audience::kMost,
     "Progress threads of the process, shared by all its connections; with 0 NCCL's own threads move everything. auto: "
     "the CPUs of the container (its cpuset and quota, and what the launcher bound the process to) divided by the "
     "ranks on this host and the GPUs of this process; below 3 no thread, else one fewer than that for each GPU, at "
     "most 4 for each network device in use. docs/cpus.md shows the result for many machines. Set 0 where every core "
     "is taken by the training process."},
    {"TCPX_CPUS", ParameterKind::kCpuList, &Options::cpus, 0, 0, kNoSpecial, Audience::kOperator,
     "CPUs that the progress threads may run on, such as `0-3,7`. Empty: those of the NUMA node of the network device, "
     "where that is known and has room for them, else wherever the launcher lets the process run. A WARN names those "
     "that this host or container does not have. Set it to keep them off cores that the training process needs."},
    {"TCPX_LANES",
     ParameterKind::kCount,
     &Options::lanes,
     1,
     kLanesMax,
     {"auto", 0},
     Audience::kMost,
     "TCP sockets of one connection, lane 0 included. Lane 0 carries the express messages and the others the bulk; a "
     "single lane carries both. More lanes help where one flow can't fill the link (a limit per flow, hashing over "
     "several paths); each costs a socket and its buffers. auto, towards the same host: one, of a fused device too. "
     "auto, towards another host: lane 0, and for each interface of the device as many bulk lanes as its speed is "
     "times 10 Gbit/s, rounded up, 8 at most; but 4 at the least where the speed is unknown or a virtual interface's, "
     "16 on Amazon's cards and 4 on Google's, as NCCL has it; fewer where the process has thousands of lanes open. Of "
     "those through one interface the ones that bring nothing are paused, and tried again now and then. A number is "
     "for every connection, towards the same host too; towards another host a device, or a peer, of several interfaces "
     "still has lane 0 and one lane for each. Overrides the product of NCCL_SOCKET_NTHREADS and "
     "NCCL_NSOCKS_PERTHREAD."},
    {"TCPX_SPEED_MBPS", ParameterKind::kText, &Options::speed_mbps, 0, 0, kNoSpecial, Audience::kOperator,
     "Speed of interfaces in Mbit/s, instead of what the kernel says: `100000` for all, or `eth0=100000,eth1=25000`. "
     "NCCL is told it (its number of channels and its algorithms follow), and so do the lanes. Set it where the kernel "
     "can't know: a veth pair in a container says 10000 whatever card is behind it, virtual machines' cards often "
     "nothing. The log says for each device where its speed is from."},
    {"TCPX_FUSE", ParameterKind::kText, &Options::fuse, 0, 0, kNoSpecial, Audience::kOperator,
     "Interfaces that become one device, whose connections spread over all of them: `eth1+eth2`, or several groups, "
     "`eth1+eth2,eth3+eth4`; up to 8 interfaces each, exact names, among those that NCCL_SOCKET_IFNAME chooses. The "
     "fused device is listed instead of its members, because beside it they would be loaded twice; name and speed are "
     "those of the members together. Towards another host each connection has a bulk lane or more on every member that "
     "has an address of the family in use, more on a faster one, and how much a lane carries follows its pace; a lane "
     "whose way fails goes by another's. Towards the same host auto is one lane. All members need an address of one "
     "family. The peer may have another number of interfaces. Where members share a subnet, set the sysctls "
     "net.ipv4.conf.all.arp_ignore=1, arp_announce=2 and rp_filter=2, so that each answers for its own address only. "
     "NCCL fuses by itself what is close on the PCI bus (NCCL_NET_MERGE_LEVEL, NCCL 2.28 and later); use this for "
     "older releases and for virtual interfaces."},
    {"TCPX_TRAFFIC_CLASS",
     ParameterKind::kClass,
     &Options::traffic_class,
     0,
     255,
     {"unset", kNoTrafficClass},
     Audience::kMost,
     "Traffic class of the lanes of every communicator for which the application set none (ncclConfig_t's "
     "trafficClass): the octet of IPv4 TOS and IPv6 Traffic Class, as NCCL_IB_TC is, so the DSCP times 4; or an id of "
     "TCPX_TRAFFIC_CLASS_MAP; or a DSCP's name, such as `ef`, which the map does not change. The two lowest bits are "
     "ECN's, belong to the kernel, and are never set. Both directions bear it, and SO_PRIORITY follows it (value / "
     "32), for queues on the host. unset: nothing is marked."},
    {"TCPX_PEER_TIMEOUT", ParameterKind::kSeconds, &Options::peer_timeout_ns, 1, 3600, kNoSpecial, Audience::kOperator,
     "A peer host that answers nothing for this long is dead, and its connections fail; so does a connection of which "
     "the network swallows a flow for this long. A peer that is alive and does not read never counts as dead. The "
     "kernel's keepalive, by which a silent host is known, counts whole seconds, rounded up, and 2 at the least; a "
     "swallowed flow goes by the value as it is. Raise it where links or switches are away for longer and come back."},
    {"NCCL_COMM_ID", ParameterKind::kText, &Options::comm_id, 0, 0, kNoSpecial, Audience::kFew,
     "NCCL's rendezvous address. Here only a hint: without NCCL_SOCKET_IFNAME an interface in its subnet is "
     "preferred."},
    {"NCCL_SOCKET_NTHREADS",
     ParameterKind::kLowered,
     &Options::socket_nthreads,
     0,
     kSocketThreadsMax,
     {"unset", -2},
     Audience::kFew,
     "Times NCCL_NSOCKS_PERTHREAD: the lanes of a connection; one that is unset counts as 1, and with 0 in either "
     "there is one lane, as NCCL then has one socket. Never a number of threads here. Kept so that a job tuned for "
     "NCCL's socket transport keeps its number of sockets. Too large a value is lowered as NCCL lowers it, with a "
     "WARN: to 16 here, and NCCL_NSOCKS_PERTHREAD to what 64 lanes allow. Where TCPX_LANES is set, neither has an "
     "effect, nor a WARN of that kind."},
    {"NCCL_NSOCKS_PERTHREAD",
     ParameterKind::kLowered,
     &Options::nsocks_perthread,
     0,
     kLanesMax,
     {"unset", -2},
     Audience::kFew,
     "See NCCL_SOCKET_NTHREADS."},
    {"TCPX_ENGINE", ParameterKind::kEngine, &Options::engine, 0, 0, kNoSpecial, Audience::kOperator,
     "How the progress threads talk to the kernel. auto: io_uring where the kernel and the container's seccomp profile "
     "allow it, else epoll; the log says which and why, with a WARN where the one that was asked for does not serve. "
     "Results are the same."},
    {"TCPX_EXPRESS_BYTES", ParameterKind::kBytes, &Options::express_bytes, 0, kMiB, kNoSpecial, Audience::kFew,
     "Messages up to this size go out at once on lane 0, in one piece, by the calling thread. Too low: small messages "
     "wait for a progress thread. Too high: large messages delay the small ones behind them."},
    {"TCPX_CHUNK_BYTES", ParameterKind::kBytes, &Options::chunk_bytes, 64 * kKiB, kGiB, kNoSpecial, Audience::kFew,
     "Largest piece of a bulk message that a lane takes at once; the last one may be larger, by less than "
     "NCCL_SOCKET_MIN_TASKSIZE, because a rest that is smaller than that goes with it. Smaller pieces spread better "
     "over unequal lanes, larger ones cost fewer system calls."},
    {"NCCL_SOCKET_MIN_TASKSIZE", ParameterKind::kBytes, &Options::chunk_bytes_min, 4 * kKiB, kGiB, kNoSpecial,
     Audience::kFew,
     "Smallest piece when a bulk message is split over lanes; a message that is smaller is one piece. Above "
     "TCPX_CHUNK_BYTES it raises that, unless both are set: then both keep their defaults, with a warning."},
    {"NCCL_SOCKET_INLINE",
     ParameterKind::kBytes,
     &Options::socket_inline,
     0,
     kGiB,
     {"unset", -1},
     Audience::kFew,
     "Accepted and without effect: here every express message travels in one piece with its header "
     "(TCPX_EXPRESS_BYTES)."},
    {"NCCL_SOCKET_SNDBUF",
     ParameterKind::kBytes,
     &Options::sndbuf,
     1,
     INT_MAX / 2,
     {"system", -1},
     Audience::kFew,
     "Send buffer of each socket, as in NCCL. system: the kernel tunes it as it goes, which is nearly always better; a "
     "fixed size ends that, and is capped by sysctl net.core.wmem_max."},
    {"NCCL_SOCKET_RCVBUF",
     ParameterKind::kBytes,
     &Options::rcvbuf,
     1,
     INT_MAX / 2,
     {"system", -1},
     Audience::kFew,
     "Receive buffer of each socket; see NCCL_SOCKET_SNDBUF. The cap is sysctl net.core.rmem_max. system: the kernel "
     "tunes it, and towards an address of the same host it is 384 KiB; on lane 0, 768 KiB while large messages come."},
    {"TCPX_CONGESTION", ParameterKind::kText, &Options::congestion, 0, 0, kNoSpecial, Audience::kOperator,
     "Congestion control of every lane, such as `cubic`, `bbr` or `dctcp`. Empty: the host's default, and `reno`, "
     "which does not pace, towards an address of the same host. The algorithm must be loaded, and for unprivileged "
     "users allowed by sysctl net.ipv4.tcp_allowed_congestion_control; else a WARN says so, and lanes have the host's "
     "default."},
    {"TCPX_PACING_MBPS",
     ParameterKind::kMbps,
     &Options::pacing_mbps,
     1,
     1000000,
     {"off", 0},
     Audience::kFew,
     "Highest rate of one lane. Pacing can smooth many senders to one receiver, and costs timers. Use it when the "
     "switch drops packets at incast."},
    {"TCPX_TRAFFIC_CLASS_MAP", ParameterKind::kClassMap, &Options::traffic_class_map, 0, 0, kNoSpecial,
     Audience::kOperator,
     "What small numbers mean as traffic classes: `0:cs1,1:af21,2:46` gives packets of class 0 the DSCP cs1, of class "
     "1 af21, of class 2 the DSCP 46. Names: cs0 to cs7, af11 to af43, ef, va, le, df. It holds for what the "
     "application set and for TCPX_TRAFFIC_CLASS; a value that is no id here is the octet itself. Set it where "
     "applications number their classes and the network's DSCPs are the operator's business."},
    {"TCPX_LINGER", ParameterKind::kSeconds, &Options::linger_ns, 0, 600, kNoSpecial, Audience::kFew,
     "How long a socket that was closed in order waits for its peer to read everything. Raise it where peers stall for "
     "longer before their last receive."},
    {"TCPX_HELLO_TIMEOUT", ParameterKind::kSeconds, &Options::hello_timeout_ns, 1, 600, kNoSpecial, Audience::kFew,
     "How long an incoming socket has to say a complete hello before it is dropped. Strangers such as port scanners "
     "hold one socket for that time. It also bounds each step of a connect: the way to the peer, and its answer. A "
     "connect that makes no progress is a WARN after 5 s and is tried again (NCCL_SOCKET_RETRY_CNT), in all for at "
     "most that number plus 2 times this and the pauses between the tries: 420 s by default. Then the communicator "
     "fails on all ranks that have a connection of it."},
    {"NCCL_SOCKET_RETRY_CNT", ParameterKind::kCount, &Options::retry_count, 0, 100000, kNoSpecial, Audience::kFew,
     "How often a refused or timed-out connect is tried again on a fresh socket, as in NCCL."},
    {"NCCL_SOCKET_RETRY_SLEEP_MSEC", ParameterKind::kMilliseconds, &Options::retry_sleep_ns, 0, 60000, kNoSpecial,
     Audience::kFew,
     "Pause before retry n is n times this, as in NCCL; but nothing sleeps meanwhile: connect returns \"not yet\"."},
    {"TCPX_HEAL", ParameterKind::kFlag, &Options::heal, 0, 0, kNoSpecial, Audience::kMost,
     "on lets connections outlive their sockets: a lane whose socket is reset, ended or refuses a write gets another "
     "one from the same interface, and goes on at the byte where the old one broke. Both ends must have it, else "
     "their connections are without. A send is then done when the peer's kernel has acknowledged it, or when it was "
     "copied. off fails a connection with its first socket."},
    {"TCPX_STEER", ParameterKind::kAutoOff, &Options::steer, 0, 0, kNoSpecial, Audience::kFew,
     "auto, where TCPX_LANES is auto and the peer is another host: bulk lanes that bring nothing are paused and, with "
     "TCPX_HEAL on both ends, closed; and lanes are opened, or moved to another source port, while that brings more: "
     "the network's paths and its limits per flow are found while running. off: the lanes of the beginning, all the "
     "time."},
    {"TCPX_RECONNECT_TIMEOUT", ParameterKind::kSeconds, &Options::reconnect_timeout_ns, 1, 3600, kNoSpecial,
     Audience::kFew,
     "With TCPX_HEAL: for how long a lane that has lost its socket is dialled again. Then its connection fails; at "
     "once where the peer's port refuses, or its process knows the connection no more."},
    {"TCPX_STALL_WARN",
     ParameterKind::kSeconds,
     &Options::stall_warn_ns,
     0,
     3600,
     {"off", 0},
     Audience::kFew,
     "A request that makes no progress for this long is described in the log, at INFO, with cause and culprit as far "
     "as they are known: nothing ends because of it. So is a lane that drains at less than half the pace of its "
     "connection's other lanes for as long. With NCCL "
     "releases of v6 to v10 of the interface a failed connection is told again this often while NCCL goes on using "
     "it."},
    {"TCPX_SPREAD_ERRORS", ParameterKind::kFlag, &Options::spread_errors, 0, 0, kNoSpecial, Audience::kFew,
     "on fails all connections of a communicator with the first one that fails, here and on every other rank, so that "
     "each rank ends within seconds with the name of the peer that was lost; off leaves a failure with its connection. "
     "Needs a NCCL with v11 of the interface or later; before, a failure always stays with its connection."},
    {"TCPX_MAX_RECVS",
     ParameterKind::kCount,
     &Options::max_receives,
     1,
     8,
     {"auto", 0},
     Audience::kFew,
     "Largest number of receives that NCCL may group into one request (maxRecvs). auto: 8 where GPU memory is "
     "announced, because peers then may share a connection (PXN), else 1. Above 1 the receiver announces every receive "
     "to the sender, which costs a system call; with 1 sends are eager."},
    {"NCCL_NET_OPTIONAL_RECV_COMPLETION", ParameterKind::kCount, &Options::nccl_optional_recv, 0, 1, kNoSpecial,
     Audience::kFew,
     "NCCL's own: 0 makes it give no such hint. The hint is how receives of LL and LL128 are known, whose data is "
     "copied in ascending order and never written by the kernel: without it, every single receive is copied so."},
    {"NCCL_LL_BUFFSIZE",
     ParameterKind::kBytes,
     &Options::ll_buffer_bytes,
     0,
     kGiB,
     {"unset", -1},
     Audience::kFew,
     "NCCL's own: the size of its buffers for LL, of which an eighth is received at once. With TCPX_ENCRYPT every "
     "receive "
     "of a group up to that, and up to 64 KiB in any case, is taken for one that a GPU reads while it arrives."},
    {"TCPX_GPU_DIRECT_STAGING", ParameterKind::kFlag, &Options::gpu_direct_staging, 0, 0, kNoSpecial, Audience::kMost,
     "on announces GPU memory to NCCL (from interface v9 on, and where libcuda.so.1 is found), and stages it through "
     "pinned host memory by the GPU's copy engines. off: NCCL's kernels write into host buffers themselves. Which is "
     "faster depends on GPU and CPU: measure both."},
    {"TCPX_GPU_POOL_BYTES", ParameterKind::kBytes, &Options::gpu_pool_bytes, kMiB, kGiB, kNoSpecial, Audience::kFew,
     "Pinned slots for staged GPU memory that all connections share, per GPU, NUMA node of the network card, and "
     "direction. Each connection has one more slot of its own in each direction."},
    {"TCPX_ZEROCOPY", ParameterKind::kSwitch, &Options::zerocopy, 0, 0, kNoSpecial, Audience::kFew,
     "Zero-copy send of chunks of 64 KiB and more, by the io_uring progress threads (Linux 6.2). auto: tried on each "
     "lane towards another host, and kept where the kernel reports that nothing was copied. on: tried towards this "
     "host too, and given up only where the kernel refuses it. off: never tried. With TCPX_ENCRYPT chunks above 519 "
     "KiB "
     "are copied all the same."},
    {"TCPX_STATS", ParameterKind::kFlag, &Options::stats, 0, 0, kNoSpecial, Audience::kMost,
     "on writes a table of what its connections did, and what they waited for, into the log at INFO when a "
     "communicator "
     "ends. docs/observability.md says what the columns mean."},
    {"TCPX_STATS_DIR", ParameterKind::kText, &Options::stats_dir, 0, 0, kNoSpecial, Audience::kOperator,
     "A folder into which each process writes its numbers in Prometheus' text format every 10 s, as "
     "`tcpx-HOST-PID.prom`, for node_exporter's textfile collector. The file is replaced as a whole, and removed when "
     "the process has no connections left; those that dead processes of this host left are removed too. Empty: none. "
     "A folder on a local disk: who removes it, or fills it, costs a WARN and no more."},
    {"TCPX_STATS_SOCKET", ParameterKind::kText, &Options::stats_socket, 0, 0, kNoSpecial, Audience::kOperator,
     "A Unix socket that answers each connection with the process's numbers as one JSON document, to the same user and "
     "root only: a path, or `@name` for an abstract one; `%p` in it is the process's PID, and `auto` is "
     "an abstract name by which tools/tcpx_top finds it. Empty: none."},
    {"TCPX_STATS_LANES", ParameterKind::kFlag, &Options::stats_lanes, 0, 0, kNoSpecial, Audience::kFew,
     "on puts numbers of each lane into the file of TCPX_STATS_DIR too, of 4096 lanes at the most. Set it to look for "
     "a bad link; it makes as many series as there are lanes."},
    {"TCPX_TRACE_DIR", ParameterKind::kText, &Options::trace_dir, 0, 0, kNoSpecial, Audience::kMost,
     "Of the profiler (NCCL_PROFILER_PLUGIN=tcpx): the folder into which each rank writes its timeline, "
     "`tcpx-trace.HOST.PID.json` (in a container `tcpx-trace.HOST.PID-NAMESPACE.json`), which Perfetto shows. Empty: "
     "none. docs/observability.md."},
    {"TCPX_TRACE_EVENTS", ParameterKind::kText, &Options::trace_events, 0, 0, kNoSpecial, Audience::kFew,
     "Of the profiler: what the timeline shows, a list of `api` (the application's calls), `coll` (groups, "
     "collectives, "
     "point-to-point), `proxy` (proxy operations and their steps), `net` (our transfers, lane by lane), `gpu` (kernels "
     "by channel), `control` (the proxy thread), or `all`."},
    {"TCPX_TRACE_SAMPLE", ParameterKind::kCount, &Options::trace_sample, 1, 1000000, kNoSpecial, Audience::kFew,
     "Of the profiler: only every so many-th group, call or collective is recorded, with all that belongs to it. Set "
     "it for long jobs."},
    {"TCPX_PROFILER_CHAIN", ParameterKind::kText, &Options::profiler_chain, 0, 0, kNoSpecial, Audience::kFew,
     "Of the profiler: the library of another one, such as NCCL's Inspector, that gets all events too, because NCCL "
     "loads a single profiler."},
};

constexpr Parameter kTestParameters[] = {
    {"TCPX_TEST_SHUFFLE_LANES", ParameterKind::kFlag, &Options::shuffle_lanes, 0, 0, kNoSpecial, Audience::kFew,
     "Lanes are opened, moved and closed at random, towards this host too."},
    {"TCPX_TEST_GPU_SLOT_BYTES", ParameterKind::kBytes, &Options::gpu_slot_bytes, 64 * kKiB, 16 * kMiB, kNoSpecial,
     Audience::kFew, "Size of the pinned slots for staged GPU memory, rounded down to 4096 bytes."},
};

}  // namespace

absl::Span<const Parameter> Parameters() { return kParameters; }
absl::Span<const Parameter> TestParameters() { return kTestParameters; }

}  // namespace tcpx
