/** The fixed bounds of the primary, its workers and what goes between them that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */
import { headerBytesMax } from '../http/limits.ts'
import { kib, requestTimeoutMs } from '../kit/limits.ts'

// Connections
/**
 * The primary reads at most this many bytes of a connection before it knows the bot: a longer line may go on after the
 * bot id. Web servers such as nginx and Apache allow 8 KiB for a request line by default.
 */
export const requestLineBytesMax = 8 * kib
/**
 * This many connections are on the way to one worker: as many as one turn of the event loop may bring, and few enough to
 * fit into the buffer of a socket (212,992 bytes; a small packet counts as about 1 KiB there).
 */
export const handOffsInFlightMax = 64
/**
 * The packet of a connection may have this many bytes: the request line and the last piece that was read (64 KiB), with
 * the client's address.
 */
export const connectionPacketBytesMax = requestLineBytesMax + 72 * kib
/**
 * The kernel queues this many connections that are not accepted yet: the default of net.core.somaxconn since Linux 5.4,
 * which caps larger values.
 */
export const listenBacklog = 4_096

// Life of the process (protocol.md §10)
/**
 * At a reload, requests in progress may take this long before the shards change hands, while the worker serves as usual.
 * No body takes longer to arrive.
 */
export const settleRequestsMs = requestTimeoutMs
/** At a reload, deliveries in flight may take this long while no new ones begin: as long as at a shutdown (`drainMs`). */
export const settleDeliveriesMs = 10_000
/**
 * The primary waits this long for a worker to settle: requests, deliveries, requests once more for as long as deliveries,
 * and a margin of the same size.
 */
export const settleMs = settleRequestsMs + 3 * settleDeliveriesMs
/** A worker that has not closed its shards after this time hangs and is killed: `leaveRequestsMs`, and 3 s for closing. */
export const leaveMs = 5_000
/** A replaced worker serves its connections for this long: longer than an idle connection is kept (`keepAliveTimeoutMs`). */
export const retireMs = 90_000
/**
 * After that it waits this long for the polls on the remaining connections: longer than the longest poll
 * (`pollTimeoutSMax`).
 */
export const retireResponsesMs = 55_000

// Shared memory: sizes of fixed tables in the mapped file
/**
 * A worker has this many metric slots, which its successive processes use in turn: the worker, its successor, and
 * `retiringWorkersMax` replaced ones.
 */
export const slotsPerWorker = 4

// Forwarding to the owner
/**
 * A request that was lost with its owner is repeated after this time, as is a stream that got no result: a killed process
 * still accepts connections while the kernel tears it down, and a hand-over takes about as long.
 */
export const peerRepeatDelayMs = 100
/**
 * A request waits this long for a worker that is not there, as connections do (`handOffWaitMs`): clients give up after 5
 * s.
 */
export const peerConnectWaitMs = 4_000
/**
 * A link to another node must be ready within this time: connected, with both sides proven. A handshake takes some 10 ms
 * and three round trips, and more than a second on machines with ten times the work that they can do: one that is given up
 * then, and begun anew, only adds to it. A call that waits for a lost node is free earlier, when the node is evicted. Chosen: not
 * longer, because the handshake with a worker that a reload replaces may never end.
 */
export const peerReadyMs = 2_000
/**
 * A connection between nodes without traffic is probed after this time, so that the links of a machine that vanished do
 * not stay open. Chosen: calls to a lost node are given up far earlier, so this only frees descriptors.
 */
export const linkKeepAliveMs = 10_000
/**
 * A frame of a link has at most this many bytes of payload. The head of a request is one frame: its text takes up to three
 * times `headerBytesMax`, if each header is a single character.
 */
export const linkPayloadBytesMax = 4 * headerBytesMax
/** The frames of a turn are collected in a buffer of this size; a fuller one is sent at once. */
export const linkBufferBytes = 128 * kib
/** A request may be forwarded this often: it may meet a shard that moves, but more hops are a loop. */
export const forwardHopsMax = 3

// Control and supervision
/**
 * A control call may take this long unless its caller says otherwise. Chosen: these calls take milliseconds; a worker
 * that needs longer is busy or hangs.
 */
export const controlCallMs = 5_000
/** A worker may take this long to start: opening shards may have to recover logs. After that it is taken for stuck. */
export const workerStartMs = 120_000
/**
 * Closing may take this long in addition to draining before a worker is killed. Chosen: closing a shard takes
 * milliseconds, a slow disk takes seconds.
 */
export const closeMarginMs = 3_000
/** A node may serve for this long after it sent the last heartbeat that was acknowledged. */
export const nodeLeaseMs = 1_000
