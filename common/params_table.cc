// The one table of parameters. The defaults are the initial values of Options.
#include <climits>

#include "common/limits.h"
#include "common/params.h"

namespace tcpx {
namespace {

using Kind = ParameterKind;

constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;

constexpr ParameterRange kNoRange;
constexpr ParameterRange Between(int64_t min, int64_t max, const char* word = nullptr, int64_t special = 0) {
  return {min, max, word, special};
}

// docs/parameters.md shows each audience's in this order: by interfaces, lanes, threads, sizes, sockets, time, the GPU.
constexpr Parameter kParameters[] = {
    {"NCCL_SOCKET_IFNAME", Kind::kText, &Options::ifname, kNoRange, Audience::kMost,
     "Which network interfaces are used",
     "Which network interfaces become devices, as in NCCL: a comma-separated list of name prefixes. `=` in front makes "
     "them exact names, `^` in front excludes them. If it is unset, the plugin takes `ib*`; if there are none, the "
     "interface in the subnet of NCCL_COMM_ID; else everything except `docker*`, `lo*` and `virbr*`; else these three "
     "in turn. Set it if the log names an interface that the other hosts can't reach.",
     "`eth`, `=eth0,eth1`, `^docker,lo`"},
    {"NCCL_SOCKET_FAMILY", Kind::kText, &Options::family, kNoRange, Audience::kMost, "IPv4 or IPv6",
     "`AF_INET` or `AF_INET6` restricts the interfaces' addresses to that family, as in NCCL. Any other value allows "
     "both: peers first try the first address of each interface; the first address of the other family is offered too, "
     "unless it is link-local. A peer uses the family that it has itself. Set it on hosts where only one family is "
     "routed.",
     "`AF_INET`, `AF_INET6`"},
    {"TCPX_PORT_RANGE", Kind::kPorts, &Options::port_range, Between(1, 65535), Audience::kOperator,
     "Ports that the plugin listens on",
     "Ports that the listening sockets may use, such as `40000-40100`. Each process needs one port for each address "
     "that a device listens on: one for each of its interfaces (a fused device has several) and each family. If no "
     "port is left for the second family, a WARN says so and peers get the first family only. A job may follow another "
     "one at once: sockets that the last one left in TIME_WAIT do not block a port. If no port is left at all, listen "
     "fails at once and names the processes that have them. Ports that this user may not open (EACCES) are skipped. "
     "Empty: the kernel chooses. Set it if a firewall needs a known range, with enough ports for every rank on the "
     "host."},
    {"TCPX_SECRET_FILE", Kind::kText, &Options::secret_file, kNoRange, Audience::kMost,
     "Lets only ranks with the same secret connect",
     "A file with a secret that all ranks share: 16 to 4096 bytes, not counting a newline at the end, such as the "
     "output of `openssl rand -base64 32`. On each new connection both sides prove to each other that they have it. "
     "This costs one more round trip at connect and nothing afterwards. A peer with another secret, or with none, is "
     "refused, and the logs of both sides say so. The file is read once, when NCCL loads the plugin. If it can't be "
     "used, every listen and connect fails with the reason. Data is not encrypted unless TCPX_ENCRYPT=1. "
     "docs/security.md says what the secret protects. Set it if others can reach the network of the job.",
     "a file's path"},
    {"TCPX_ENCRYPT", Kind::kFlag, &Options::encrypt, kNoRange, Audience::kMost,
     "Encrypts all connections of the plugin",
     "on encrypts and authenticates everything that connections carry, tensors included; each socket has its own keys "
     "(docs/security.md). TCPX_SECRET_FILE must be set too. Without it, or if the value is empty or neither on nor "
     "off, or if a name is set that is almost this one, every listen and connect fails with the reason. Set it to the "
     "same value on all ranks: ranks that disagree refuse each other. It does not protect the sockets of NCCL's "
     "bootstrap. It costs CPU time; docs/performance.md has figures."},
    {"TCPX_REQUIRE_ENCRYPTION", Kind::kFlag, &Options::require_encryption, kNoRange, Audience::kOperator,
     "Refuses connections that are not encrypted",
     "on refuses every listen and connect of a job without TCPX_ENCRYPT=1 and a secret, with the reason. Set it in "
     "`/etc/nccl.conf` if no job of a site may send in the clear."},
    {"TCPX_ENCRYPT_CIPHER", Kind::kText, &Options::encrypt_cipher, kNoRange, Audience::kFew,
     "The only cipher that TCPX_ENCRYPT may use",
     "With TCPX_ENCRYPT: allows this cipher only. Empty: the first of the three that both ends have. AES needs "
     "libgcrypt 1.8 or later on the machine and a processor with AES instructions. Set it if a policy requires a "
     "cipher of NIST's: `aes128-gcm`.",
     "`aes128-ocb`, `aes128-gcm` or `chacha20-poly1305`"},
    {"TCPX_THREADS", Kind::kCount, &Options::threads, Between(0, 64, "auto", -1), Audience::kMost,
     "Threads that move data",
     "Number of progress threads of the process, shared by all its connections. With 0, NCCL's own threads move "
     "everything. auto: the plugin divides the CPUs of the container (its cpuset and quota, and the CPUs that the "
     "launcher bound the process to) by the ranks on this host and the GPUs of this process. With fewer than 3 CPUs "
     "per GPU it starts no thread; otherwise one fewer than the CPUs for each GPU, and at most 4 for each network "
     "device in use. docs/cpus.md shows the result for many machines. Set 0 if the training process needs every core."},
    {"TCPX_CPUS", Kind::kCpuList, &Options::cpus, kNoRange, Audience::kOperator, "CPUs that these threads may use",
     "CPUs that the progress threads may run on, such as `0-3,7`. Empty: those of the NUMA node of the network device, "
     "if that node is known and has enough of them; otherwise all CPUs that the launcher allows. A WARN names CPUs "
     "that this host or container does not have. Set it to keep the threads off cores that the training process "
     "needs."},
    {"TCPX_LANES", Kind::kCount, &Options::lanes, Between(1, kLanesMax, "auto", 0), Audience::kMost,
     "TCP sockets per connection",
     "Number of TCP sockets (lanes) of one connection. Lane 0 carries the express messages and the others the bulk; a "
     "single lane carries both. More lanes help if one flow can't fill the link (a limit per flow, hashing over "
     "several paths). Each costs a socket and its buffers. auto, to the same host: one lane, also for a fused device. "
     "auto, to another host: lane 0 and, for each interface of the device, one bulk lane per 4 Gbit/s of its speed, "
     "rounded up, at most 24. An interface that is virtual or whose speed is unknown gets at least 4, Amazon's cards "
     "16 and Google's 4, as in NCCL. A process that has thousands of lanes open gets fewer. Bulk lanes that bring "
     "nothing are paused, and tried again from time to time. A number applies to every connection, also to the same "
     "host; if a device or a peer has several interfaces, a connection to another host still has lane 0 and one lane "
     "for each interface. Overrides the product of NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD."},
    {"TCPX_SPEED_MBPS", Kind::kText, &Options::speed_mbps, kNoRange, Audience::kOperator,
     "Speed of interfaces, if the kernel can't know it",
     "Speed of interfaces in Mbit/s, instead of the kernel's value: `100000` for all, or `eth0=100000,eth1=25000`. "
     "NCCL derives its number of channels and its algorithms from it, and the plugin its number of lanes. Set it if "
     "the kernel can't know the speed: a veth pair in a container reports 10000 for any card, cards of virtual "
     "machines often report nothing. The log says for each device where its speed comes from.",
     "`100000`, or `eth0=100000,eth1=25000`"},
    {"TCPX_FUSE", Kind::kText, &Options::fuse, kNoRange, Audience::kOperator, "Makes one device of several interfaces",
     "Interfaces that become one device, whose connections use all of them: `eth1+eth2`, or several groups, "
     "`eth1+eth2,eth3+eth4`. A group has up to 8 interfaces, given by exact names, from those that NCCL_SOCKET_IFNAME "
     "chooses. The fused device replaces its members, so that NCCL does not load them twice; its name and speed are "
     "those of the members together. To another host, each connection has at least one bulk lane on every member that "
     "has an address of the family in use, and more on a faster one. How much a lane carries follows its pace; if the "
     "path of a lane fails, the lane moves to another member. To the same host, auto is one lane. All members need an "
     "address of one family. The peer may have another number of interfaces. If members share a subnet, set the "
     "sysctls net.ipv4.conf.all.arp_ignore=1, arp_announce=2 and rp_filter=2, so that each answers for its own address "
     "only. NCCL itself fuses devices that are close on the PCI bus (NCCL_NET_MERGE_LEVEL, NCCL 2.28 and later); use "
     "TCPX_FUSE for older releases and for virtual interfaces.",
     "`eth1+eth2`, or `eth1+eth2,eth3+eth4`"},
    {"TCPX_TRAFFIC_CLASS", Kind::kClass, &Options::traffic_class, Between(0, 255, "unset", kNoTrafficClass),
     Audience::kMost, "DSCP mark of the plugin's packets",
     "Traffic class of the lanes of every communicator for which the application set none (ncclConfig_t's "
     "trafficClass). Three forms: the octet of IPv4 TOS and IPv6 Traffic Class, as for NCCL_IB_TC, which is the DSCP "
     "times 4; an id of TCPX_TRAFFIC_CLASS_MAP; or a DSCP's name, such as `ef`, which the map does not change. The two "
     "lowest bits are ECN's, belong to the kernel, and are never set. Packets of both directions carry the mark, and "
     "SO_PRIORITY follows it (value / 32), for queues on the host. unset: nothing is marked."},
    {"TCPX_PEER_TIMEOUT", Kind::kSeconds, &Options::peer_timeout_ns, Between(1, 3600), Audience::kOperator,
     "When a silent host counts as dead",
     "A peer host that answers nothing for this long is dead, and its connections fail. A connection also fails if the "
     "network drops one of its flows for this long. A peer that is alive but does not read never counts as dead. A "
     "silent host is detected by the kernel's keepalive, which counts whole seconds: the value is rounded up, and at "
     "least 2. For a dropped flow the exact value counts. Raise it if links or switches are away for longer and come "
     "back."},
    {"NCCL_COMM_ID", Kind::kText, &Options::comm_id, kNoRange, Audience::kFew, "NCCL's rendezvous address",
     "NCCL's rendezvous address. For the plugin it is only a hint: without NCCL_SOCKET_IFNAME it prefers an interface "
     "in the subnet of that address.",
     "HOST:PORT"},
    {"NCCL_SOCKET_NTHREADS", Kind::kLowered, &Options::socket_nthreads, Between(0, kSocketThreadsMax, "unset", -2),
     Audience::kFew, "Number of lanes, as for NCCL's Socket",
     "NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD is the number of lanes of a connection, so that a job tuned for "
     "NCCL's Socket transport keeps its number of sockets. One that is unset counts as 1; if one is 0 there is one "
     "lane, as NCCL then has one socket. It never sets a number of threads here. Values that are too large are lowered "
     "as in NCCL, with a WARN: this one to 16, and NCCL_NSOCKS_PERTHREAD to what 64 lanes allow. If TCPX_LANES is set, "
     "neither has an effect or causes such a WARN."},
    {"NCCL_NSOCKS_PERTHREAD", Kind::kLowered, &Options::nsocks_perthread, Between(0, kLanesMax, "unset", -2),
     Audience::kFew, "Number of lanes, as for NCCL's Socket", "See NCCL_SOCKET_NTHREADS."},
    {"TCPX_ENGINE", Kind::kEngine, &Options::engine, kNoRange, Audience::kOperator, "io_uring or epoll",
     "How the progress threads talk to the kernel. auto: io_uring if the kernel and the container's seccomp profile "
     "allow it, otherwise epoll; the log says which and why. If the requested engine does not work, a WARN says so. "
     "Results are the same."},
    {"TCPX_EXPRESS_BYTES", Kind::kBytes, &Options::express_bytes, Between(0, kMiB), Audience::kFew,
     "Largest message that is sent at once",
     "Messages up to this size are sent at once on lane 0, in one piece, by the calling thread. Too low: small "
     "messages wait for a progress thread. Too high: large messages delay the small ones that follow them."},
    {"TCPX_CHUNK_BYTES", Kind::kBytes, &Options::chunk_bytes, Between(64 * kKiB, kGiB), Audience::kFew,
     "Largest piece of a large message",
     "Largest piece of a bulk message that a lane takes at once. The last piece may be larger, by less than "
     "NCCL_SOCKET_MIN_TASKSIZE: a smaller remainder is sent with it. Smaller pieces spread better over unequal lanes, "
     "larger ones need fewer system calls."},
    {"NCCL_SOCKET_MIN_TASKSIZE", Kind::kBytes, &Options::chunk_bytes_min, Between(4 * kKiB, kGiB), Audience::kFew,
     "Smallest piece of a large message",
     "Smallest piece when a bulk message is split over lanes; a smaller message is one piece. A value above "
     "TCPX_CHUNK_BYTES raises that one too. If both are set and contradict each other, both keep their defaults, with "
     "a WARN."},
    {"NCCL_SOCKET_INLINE", Kind::kBytes, &Options::socket_inline, Between(0, kGiB, "unset", -1), Audience::kFew,
     "No effect",
     "Accepted, without effect: every express message travels in one piece with its header (TCPX_EXPRESS_BYTES)."},
    {"NCCL_SOCKET_SNDBUF", Kind::kBytes, &Options::sndbuf, Between(1, INT_MAX / 2, "system", -1), Audience::kFew,
     "Send buffer of each socket",
     "Send buffer of each socket, as in NCCL. system: the kernel tunes the size continuously, which is nearly always "
     "better. A fixed size turns that off, and sysctl net.core.wmem_max limits it."},
    {"NCCL_SOCKET_RCVBUF", Kind::kBytes, &Options::rcvbuf, Between(1, INT_MAX / 2, "system", -1), Audience::kFew,
     "Receive buffer of each socket",
     "Receive buffer of each socket; see NCCL_SOCKET_SNDBUF. Sysctl net.core.rmem_max limits it. system: the kernel "
     "tunes it; to an address of the same host it is 384 KiB, and on lane 0 768 KiB while large messages arrive."},
    {"TCPX_CONGESTION", Kind::kText, &Options::congestion, kNoRange, Audience::kOperator, "TCP congestion control",
     "Congestion control of every lane, such as `cubic`, `bbr` or `dctcp`. Empty: the host's default; to an address of "
     "the same host `reno`, which does not pace. The algorithm must be loaded and, for unprivileged users, be allowed "
     "by sysctl net.ipv4.tcp_allowed_congestion_control. Otherwise a WARN says so, and lanes use the host's default.",
     "an algorithm of the kernel, such as `bbr`"},
    {"TCPX_PACING_MBPS", Kind::kMbps, &Options::pacing_mbps, Between(1, 1000000, "off", 0), Audience::kFew,
     "Highest rate of one lane",
     "Highest rate of one lane. Pacing can smooth many senders to one receiver, but it costs timers. Set it if the "
     "switch drops packets at incast."},
    {"TCPX_TRAFFIC_CLASS_MAP", Kind::kClassMap, &Options::traffic_class_map, kNoRange, Audience::kOperator,
     "Maps traffic-class ids to DSCPs",
     "Maps traffic-class ids to DSCPs: `0:cs1,1:af21,2:46` gives packets of class 0 the DSCP cs1, those of class 1 "
     "af21, and those of class 2 the DSCP 46. Names: cs0 to cs7, af11 to af43, ef, va, le, df. It applies to the class "
     "that the application set and to TCPX_TRAFFIC_CLASS; a value that is no id of the map is the octet itself. Set it "
     "if applications number their classes and the operator assigns the DSCPs."},
    {"TCPX_LINGER", Kind::kSeconds, &Options::linger_ns, Between(0, 600), Audience::kFew,
     "How long a closed socket waits for its peer",
     "How long a socket that was closed in order waits for its peer to read everything. Raise it if peers pause for "
     "longer before their last receive."},
    {"TCPX_HELLO_TIMEOUT", Kind::kSeconds, &Options::hello_timeout_ns, Between(1, 600), Audience::kFew,
     "Time limit of each step of a connect",
     "How long an incoming socket has to send a complete hello before it is closed: strangers, such as port scanners, "
     "hold one socket for that time. It also limits each step of a connect: reaching the peer, and its answer. A "
     "connect that makes no progress causes a WARN after 5 s and is tried again (NCCL_SOCKET_RETRY_CNT). In total it "
     "takes at most 2 more than that number, times this value, plus the pauses between the tries: 420 s by default. "
     "Then the communicator fails on all ranks that have a connection of it."},
    {"NCCL_SOCKET_RETRY_CNT", Kind::kCount, &Options::retry_count, Between(0, 100000), Audience::kFew,
     "How often a connect is tried again",
     "How often a refused or timed-out connect is tried again on a new socket, as in NCCL."},
    {"NCCL_SOCKET_RETRY_SLEEP_MSEC", Kind::kMilliseconds, &Options::retry_sleep_ns, Between(0, 60000), Audience::kFew,
     "Pause between such tries",
     "The pause before retry n is n times this value, as in NCCL; but no thread sleeps meanwhile: connect returns "
     "\"not yet\"."},
    {"TCPX_HEAL", Kind::kFlag, &Options::heal, kNoRange, Audience::kMost, "Connections survive the loss of a socket",
     "on lets connections survive the loss of sockets: if the socket of a lane is reset, ends or refuses a write, the "
     "lane gets another socket on the same interface and continues at the byte at which the old one broke. Both ends "
     "must have it on, otherwise their connections do not heal. A send is then done when the peer's kernel has "
     "acknowledged it, or when it was copied. off fails a connection with its first lost socket."},
    {"TCPX_STEER", Kind::kAutoOff, &Options::steer, kNoRange, Audience::kFew,
     "Adapts the number of lanes while the job runs",
     "auto, if TCPX_LANES is auto and the peer is another host: bulk lanes that bring nothing are paused and, with "
     "TCPX_HEAL on both ends, closed. Lanes are opened, or moved to another source port, as long as that brings more. "
     "So the plugin finds the paths of the network and its limits per flow while the job runs. off: the first set of "
     "lanes is never changed."},
    {"TCPX_RECONNECT_TIMEOUT", Kind::kSeconds, &Options::reconnect_timeout_ns, Between(1, 3600), Audience::kFew,
     "How long a lost socket is dialled again",
     "With TCPX_HEAL: how long a lane that has lost its socket is dialled again. Then its connection fails. It fails "
     "at once if the peer's port refuses, or if its process no longer knows the connection."},
    {"TCPX_STALL_WARN", Kind::kSeconds, &Options::stall_warn_ns, Between(0, 3600, "off", 0), Audience::kFew,
     "When the log describes a stalled request",
     "A request that makes no progress for this long is described in the log, with cause and culprit as far as they "
     "are known. Nothing ends because of it. The same applies to a lane that is less than half as fast as the other "
     "lanes of its connection for this long. With versions v6 to v10 of NCCL's interface, a failed connection is "
     "reported again at this interval as long as NCCL uses it."},
    {"TCPX_SPREAD_ERRORS", Kind::kFlag, &Options::spread_errors, kNoRange, Audience::kFew,
     "One failed connection ends the communicator",
     "on: the first connection that fails ends all connections of its communicator, here and on every other rank, so "
     "that each rank stops within seconds and names the peer that was lost. off: a failure ends its own connection "
     "only. Needs v11 or later of NCCL's interface; with earlier versions a failure always ends its own connection "
     "only."},
    {"TCPX_MAX_RECVS", Kind::kCount, &Options::max_receives, Between(1, 8, "auto", 0), Audience::kFew,
     "Receives that NCCL may group",
     "Largest number of receives that NCCL may group into one request (maxRecvs). auto: 8 if GPU memory is announced, "
     "because peers may then share a connection (PXN); otherwise 1. Above 1 the receiver announces every receive to "
     "the sender, which costs a system call; with 1, sends are eager."},
    {"NCCL_NET_OPTIONAL_RECV_COMPLETION", Kind::kCount, &Options::nccl_optional_recv, Between(0, 1), Audience::kFew,
     "NCCL's hint for LL and LL128",
     "NCCL's own: with 0, NCCL does not give this hint. The plugin uses the hint to recognize receives of LL and "
     "LL128; it copies their data in ascending order, and the kernel never writes it. Without the hint, every single "
     "receive is copied in this manner."},
    {"NCCL_LL_BUFFSIZE", Kind::kBytes, &Options::ll_buffer_bytes, Between(0, kGiB, "unset", -1), Audience::kFew,
     "Size of NCCL's buffers for LL",
     "NCCL's own: the size of its buffers for LL; NCCL receives an eighth of it at once. With TCPX_ENCRYPT, every "
     "receive of a group up to that size, and up to 64 KiB in any case, is handled as if a GPU read it while it "
     "arrives."},
    {"TCPX_RMA", Kind::kFlag, &Options::rma, kNoRange, Audience::kMost, "Offers one-sided transfers to NCCL",
     "on offers NCCL 2.30.7 and later one-sided transfers: `ncclPutSignal`, symmetric windows over several nodes, "
     "zero-SM collectives, and puts from GPU kernels through NCCL's own proxy (docs/rma.md). Set it to the same value "
     "on all ranks. Set it if an application asks for windows or one-sided transfers and the nodes have no RDMA."},
    {"TCPX_RMA_GDRCOPY", Kind::kFlag, &Options::rma_gdrcopy, kNoRange, Audience::kFew,
     "One-sided transfers write short data by GDRCopy",
     "on, with TCPX_RMA: while the stream of one-sided writes is idle, the CPU itself writes signals, and data of up "
     "to 16 KiB from a peer's host memory, into GPU memory. This needs GDRCopy 2.5 or later (libgdrapi.so.2 and the "
     "kernel module gdrdrv). Memory that the GPU can't map is written as with off. off: the GPU's copy engine does all "
     "of it. No GPU has run this yet (docs/rma.md)."},
    {"TCPX_GPU_DIRECT_STAGING", Kind::kFlag, &Options::gpu_direct_staging, kNoRange, Audience::kMost,
     "The plugin copies GPU memory itself",
     "on announces GPU memory to NCCL (from v9 of the interface on, if libcuda.so.1 is found), and the GPU's copy "
     "engines move it through pinned host memory. off: NCCL's kernels write into host buffers themselves. Which is "
     "faster depends on GPU and CPU: measure both."},
    {"TCPX_GPU_POOL_BYTES", Kind::kBytes, &Options::gpu_pool_bytes, Between(kMiB, kGiB), Audience::kFew,
     "Pinned memory for staged GPU memory",
     "Pinned memory for staged GPU memory (TCPX_GPU_DIRECT_STAGING, TCPX_RMA) that all connections share, for each "
     "GPU, NUMA node of the network card, and direction. Each connection has one more slot of its own in each "
     "direction."},
    {"TCPX_ZEROCOPY", Kind::kSwitch, &Options::zerocopy, kNoRange, Audience::kFew, "Zero-copy send",
     "Zero-copy send of chunks of 64 KiB or more, by the io_uring progress threads (Linux 6.2). auto: tried on each "
     "lane to another host, and kept if the kernel reports that nothing was copied. on: tried to this host too, and "
     "given up only if the kernel refuses it. off: never tried. With TCPX_ENCRYPT, chunks above 519 KiB are copied "
     "nevertheless."},
    {"TCPX_STATS", Kind::kFlag, &Options::stats, kNoRange, Audience::kMost, "A table of numbers in the log",
     "on writes a table into the log, at INFO, when a communicator ends: what its connections did and what they waited "
     "for. docs/observability.md explains the columns."},
    {"TCPX_STATS_DIR", Kind::kText, &Options::stats_dir, kNoRange, Audience::kOperator, "Numbers for Prometheus",
     "A folder into which each process writes its numbers every 10 s in Prometheus' text format, as "
     "`tcpx-HOST-PID.prom`, for node_exporter's textfile collector. The plugin replaces the file as a whole and "
     "removes it when the process has no connections left; it also removes files of dead processes of this host. "
     "Empty: none. Use a folder on a local disk. If the folder disappears or fills up, the log gets a WARN, and "
     "nothing else happens.",
     "a folder"},
    {"TCPX_STATS_SOCKET", Kind::kText, &Options::stats_socket, kNoRange, Audience::kOperator, "Numbers for tcpx_top",
     "A Unix socket that answers each connection with the process's numbers as one JSON document, for the same user "
     "and root only. A path, or `@name` for an abstract socket; `%p` in it becomes the process's PID. `auto` is an "
     "abstract name that `tcpx_top` finds. Empty: none.",
     "`auto`, a path, or `@name`"},
    {"TCPX_STATS_LANES", Kind::kFlag, &Options::stats_lanes, kNoRange, Audience::kFew, "Numbers for each lane",
     "on adds the numbers of each lane, of at most 4096 lanes, to the file of TCPX_STATS_DIR. Set it to look for a bad "
     "link; it makes as many series as there are lanes."},
    {"TCPX_TRACE_DIR", Kind::kText, &Options::trace_dir, kNoRange, Audience::kMost, "A timeline for each rank",
     "Read by the profiler (NCCL_PROFILER_PLUGIN=tcpx): the folder into which each rank writes its timeline, "
     "`tcpx-trace.HOST.PID.json` (in a container `tcpx-trace.HOST.PID-NAMESPACE.json`), for Perfetto. Empty: none. See "
     "docs/observability.md.",
     "a folder"},
    {"TCPX_TRACE_EVENTS", Kind::kText, &Options::trace_events, kNoRange, Audience::kFew, "What the timeline shows",
     "Read by the profiler: what the timeline shows. `api`: the application's calls; `coll`: groups, collectives, "
     "point-to-point; `proxy`: proxy operations and their steps; `net`: the plugin's transfers, lane by lane; `gpu`: "
     "kernels by channel; `control`: the proxy thread.",
     "a list of `api`, `coll`, `proxy`, `net`, `gpu`, `control`; or `all`"},
    {"TCPX_TRACE_SAMPLE", Kind::kCount, &Options::trace_sample, Between(1, 1000000), Audience::kFew,
     "Records only every n-th operation",
     "Read by the profiler: with N, only every N-th group, call or collective is recorded, with everything that "
     "belongs to it. Set it for long jobs."},
    {"TCPX_PROFILER_CHAIN", Kind::kText, &Options::profiler_chain, kNoRange, Audience::kFew, "A second profiler",
     "Read by the profiler: the library of another profiler, such as NCCL's Inspector, which then gets all events too, "
     "because NCCL loads only one.",
     "a library's path or name"},
};

constexpr Parameter kTestParameters[] = {
    {"TCPX_TEST_SHUFFLE_LANES", Kind::kFlag, &Options::shuffle_lanes, kNoRange, Audience::kFew, "For tests",
     "Lanes are opened, moved and closed at random, also to this host."},
    {"TCPX_TEST_GPU_SLOT_BYTES", Kind::kBytes, &Options::gpu_slot_bytes, Between(64 * kKiB, 16 * kMiB), Audience::kFew,
     "For tests", "Size of the pinned slots for staged GPU memory, rounded down to 4096 bytes."},
};

}  // namespace

absl::Span<const Parameter> Parameters() { return kParameters; }
absl::Span<const Parameter> TestParameters() { return kTestParameters; }

}  // namespace tcpx
