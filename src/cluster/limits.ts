/** The fixed bounds of the primary, its workers and what goes between them, each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { certificateRequestBytesMax, kib, mib, requestTimeoutMs, streamIdleMs } from '../limits.ts'

// Bot API requests (protocol.md §3)
/**
 * The head of a request or a forwarded response may have this many bytes. Chosen: four times Node's default, for clients
 * that send long parameters in the address; a connection may hold this much before its token is checked.
 */
export const headerBytesMax = 64 * kib

// Connections
/**
 * The primary reads at most this many bytes of a connection before it knows the bot: a longer line may go on after the
 * bot id. Web servers such as nginx and Apache allow 8 KiB for a request line by default.
 */
export const requestLineBytesMax = 8 * kib
/**
 * A request line may take this long to arrive, as headers may (`headersTimeoutMs`): a line takes one round trip, so only
 * broken and hostile clients need longer.
 */
export const requestLineWaitMs = 10_000
/**
 * A connection waits this long for its worker before it gets 503: clients give up after 5 s, and a worker that dies is
 * usually back sooner.
 */
export const handOffWaitMs = 4_000
/**
 * This many connections wait for one worker, as many as in the backlog of a listener. A worker takes about 3,700 a second
 * (docs/know/benchmarks.md, connect-poll), so a full queue is empty after little more than a second.
 */
export const handOffQueueMax = 4_096
/**
 * The head of a request may take this long to arrive. Chosen: 64 KiB in 10 s is 52 kbit/s; a longer time lets slow
 * clients hold more connections.
 */
export const headersTimeoutMs = 10_000
/**
 * An idle connection is kept this long. HTTP clients keep theirs for up to 75 s, and many do not repeat a POST on a
 * connection that the server has closed.
 */
export const keepAliveTimeoutMs = 80_000
/**
 * The connections that wait for one worker may hold this many first bytes: `handOffQueueMax` lines of the largest size.
 * As many ordinary requests take 2 MiB.
 */
export const handOffQueueBytesMax = 32 * mib
/**
 * This many connections may wait for their request line. Each holds up to 8 KiB, so this is 128 MiB at worst. Past it the
 * oldest is closed; a line takes one round trip, so only 16,384 new connections within one could displace a client.
 */
export const requestLineWaitersMax = 16_384
/**
 * Refused connections that linger may be this share of the connections that a process may hold, so that they do not use
 * up the descriptors.
 */
export const lingeringShare = 1 / 8
/**
 * At most this many refused connections linger, however many descriptors there are. Chosen: at `refusedLingerMs` each,
 * that is 512 refusals a second with the full time; past that the oldest is closed early.
 */
export const lingeringMax = 1_024
/**
 * This many bytes of a lingering connection are read. Chosen: a client that sends its whole request before it reads rarely
 * sends more, and the buffers of the kernel take as much again.
 */
export const lingeringBytesMax = mib
/**
 * The connections that wait for one worker may be this share of those that the primary may hold, so that one slow worker
 * does not keep out the clients of the others.
 */
export const handOffShare = 1 / 2
/** This share of a process's connections is reserved for the private listener: bots never take it. */
export const privatePlacesShare = 1 / 8
/**
 * At most this many connections are reserved for the private listener: far more than producers and probes keep open at a
 * worker.
 */
export const privatePlacesMax = 256
/**
 * A client address with more than this share of a process's connections gives way before all others. At an eighth, at
 * most seven addresses are over their share at a time.
 */
export const clientPlacesShare = 1 / 8
/**
 * This share of the places of the private listener is kept for connections that have shown no key, and for the admin key, so
 * that health checks and the call that revokes a key find one. The rest is for producers while bots fill the server.
 */
export const keylessPlacesShare = 1 / 2
/**
 * A new connection to the private listener shows its key within this time: a head is one packet, and takes one of the places
 * that are kept for connections without a key.
 */
export const keylessMs = 1_000
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
 * A worker without a free descriptor cannot receive a connection, so the primary waits this long before it sends the
 * next. Chosen: 20 attempts a second cost nothing, and 80 of them fit into `handOffWaitMs`.
 */
export const handOffRetryMs = 50
/**
 * The kernel queues this many connections that are not accepted yet: the default of net.core.somaxconn since Linux 5.4,
 * which caps larger values.
 */
export const listenBacklog = 4_096
/**
 * One connection gets this many pipelined responses in one turn of the event loop, which take some 2 ms; a key gets as many
 * on all its connections, and the rest in later turns. A client over its budget of event-loop time gets one. The libraries
 * that bots are written with do not pipeline at all.
 */
export const pipelinedPerTurnMax = 64
/**
 * This many calls with a key wait in a worker for a later turn, at some 16 kB each. A connection brings up to 600, as it is
 * not read while calls of it wait; past the bound calls are refused.
 */
export const callsWaitingMax = 16_384
/** A key may have this share of them. Chosen: 13 connections that pipeline as much as they can; the rest is for other keys. */
export const callsWaitingKeyShare = 1 / 2
/**
 * Connections of clients may take this share of a process's descriptors; the rest is for the store, webhooks and other
 * workers.
 */
export const connectionDescriptorsShare = 0.75
/** This many descriptors are reserved in addition: a worker with four shards has about as many open by itself. */
export const otherDescriptorsMin = 64
/** A process may hold at least this many connections, even if there are hardly any descriptors. */
export const connectionsMin = 16
/**
 * A warning about an event that may happen thousands of times a second is logged once in this time, with the number of
 * events.
 */
export const rareWarningPeriodMs = 10_000
/**
 * Requests that cannot be forwarded are reported together, this long after the first one. Chosen: those that one take-over
 * fails have looked for their owner for as long as each other, `peerConnectWaitMs`, and began within that time.
 */
export const forwardFailuresGatherMs = 5_000
/**
 * Connections are checked for late headers and requests this often. Node's default of 30 s would turn a limit of 10 s
 * into 40 s.
 */
export const connectionsCheckMs = 1_000

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
/**
 * Requests still in progress may take this long when the shards are closed. With the opening of the shards this stays
 * below the 4 s that new requests wait.
 */
export const leaveRequestsMs = 2_000
/**
 * Deliveries still in flight may take this long when the shards are closed, beside `leaveRequestsMs`; they have had
 * `settleDeliveriesMs` already.
 */
export const leaveDeliveriesMs = 1_000
/**
 * Opening one shard of a database may take this long: a connection, a claim that ends the connection of the last owner, and
 * the statements, each within its own limit.
 */
export const openShardMs = 10_000
/** A worker that leaves checks this often whether anything is under way: short, because requests wait during that time. */
export const leaveCheckPeriodMs = 5
/** A worker that has not closed its shards after this time hangs and is killed: `leaveRequestsMs`, and 3 s for closing. */
export const leaveMs = 5_000
/** A shard that another node owns is dropped within this time, or its worker is gone: one that hangs has been killed by then. */
export const dropMs = 45_000
/** A replaced worker waits at least this long, because a connection may still be in the backlog of its link socket. */
export const retireGraceMs = 1_000
/** A replaced worker serves its connections for this long: longer than an idle connection is kept (`keepAliveTimeoutMs`). */
export const retireMs = 90_000
/**
 * After that it waits this long for the polls on the remaining connections: longer than the longest poll
 * (`pollTimeoutSMax`).
 */
export const retireResponsesMs = 55_000
/**
 * This many replaced workers of one place may be alive. With the worker and its successor they use all four metric slots
 * (`slotsPerWorker`).
 */
export const retiringWorkersMax = 2
/**
 * A second signal within this time belongs to the same key press: npm sends on a signal that the terminal has sent to all
 * processes already.
 */
export const signalEchoMs = 50

// The private API (protocol.md §9)
/**
 * A connection without traffic for this long during a request is cut, for example because its client does not read a
 * response: 4 MB would be held for it. It is longer than any response takes (`upstreamResponseTimeoutMs`), by 30 s.
 */
export const silentBotConnectionMs = 330_000
/** The same for the private listener: a minute longer than `streamIdleMs`, so that idle streams end in order first. */
export const silentPrivateConnectionMs = streamIdleMs + 60_000

// Shared memory: sizes of fixed tables in the mapped file
/**
 * A worker has this many metric slots, which its successive processes use in turn: the worker, its successor, and
 * `retiringWorkersMax` replaced ones.
 */
export const slotsPerWorker = 4

// The creation flood gate and the pacing of refusals, per client address (protocol.md §2) [ref]
/**
 * This many client addresses are counted, which takes 21 MB of shared memory. Chosen: an attacker needs about as many
 * addresses to make the server forget one early.
 */
export const clientAddressesMax = 131_072
/** A client address may try this many unknown tokens in a minute. [ref] */
export const creationsPerMinuteMax = 20
/** A client address may try this many unknown tokens in an hour. [ref] */
export const creationsPerHourMax = 600
/**
 * An address lies in one of this many places from its hash on. When as many addresses as places have come, 8 % of them
 * have been replaced too early; with 8 places it is 12 %, with 32 it is 6 %.
 */
export const clientTableProbeWindow = 16
/**
 * A process tries this often to claim a place that other processes change at the same moment; after that it refuses the
 * request or delays the refusal. Chosen: several collisions in a row are very rare.
 */
export const clientTableClaimAttemptsMax = 4
/**
 * A process tries this often to count a slot of the hour that other processes change at the same moment; after that one
 * slot is not counted. Chosen: more than the claims, since all workers may count for one address.
 */
export const clientTableCountAttemptsMax = 16

// Shards
/** The shard map caches the slots of this many bots; 65,536 numbers in a Map take 3 MiB. */
export const shardSlotsRememberedMax = 65_536

// Forwarding to the owner
/**
 * A connection to a worker that is not there is tried again after this time. Chosen: a reload opens shards in some 20 ms,
 * and 80 attempts fit into `peerConnectWaitMs`.
 */
export const peerConnectRetryMs = 50
/**
 * A request that was lost with its owner is repeated after this time, as is a stream that got no result: a killed process
 * still accepts connections while the kernel tears it down, and a hand-over takes about as long.
 */
export const peerRepeatDelayMs = 100
/**
 * A request whose shard nobody has at the moment asks for its owner again after this time. Chosen: a shard is opened in 60 to
 * 200 ms, and looking costs microseconds.
 */
export const ownerAskAgainMs = 25
/**
 * A request waits this long for a worker that is not there, as connections do (`handOffWaitMs`): clients give up after 5
 * s.
 */
export const peerConnectWaitMs = 4_000
/**
 * Up to this many bytes of the body of a streamed request are kept until its response begins, so that it can be sent to
 * another owner. Chosen: what one read of a socket brings at most, which is more than any call without a file has.
 */
export const streamedBytesKeptMax = 64 * kib
/**
 * A link to another node must be ready within this time: connected, with both sides proven. A handshake takes some 10 ms
 * and three round trips. The time stays below the 1.5 s after which a lost node's shards have another owner
 * (`nodeEvictedMs`), so a call that waits for a lost node is free when its new owner is known.
 */
export const peerReadyMs = 1_000
/**
 * A connection between nodes without traffic is probed after this time, so that the links of a machine that vanished do
 * not stay open. Chosen: calls to a lost node are given up far earlier, so this only frees descriptors.
 */
export const linkKeepAliveMs = 10_000
/**
 * A connection from another node may take this long for its handshake: longer than `peerReadyMs`, after which that node
 * gives up, and short enough that connections which send nothing do not keep the places of others.
 */
export const linkHandshakeMs = 5_000
/**
 * This many handshakes of other nodes may be under way in a worker; the oldest gives way to one more, and nodes try again.
 * Each takes about 1 ms of CPU and 100 KiB. Nodes keep their links, so they rarely need more than one each.
 */
export const linkHandshakesMax = 64
/** The port of the links is tried again after this time if the predecessor still has it, which is for milliseconds. */
export const linkListenRetryMs = 20
/** After this time the port of the links is taken for used by another program: as long as calls wait (`peerConnectWaitMs`). */
export const linkListenWaitMs = 4_000
/** The content of a cluster key file must have this many bytes. Chosen: 128 bits if they are random, and no word by accident. */
export const clusterKeyBytesMin = 16
/**
 * A frame of a link has at most this many bytes of payload. The head of a request is one frame: its text takes up to three
 * times `headerBytesMax`, if each header is a single character.
 */
export const linkPayloadBytesMax = 4 * headerBytesMax
/** Longer bodies become several frames of this size, so that the memory for frames stays small. */
export const linkPieceBytes = 32 * kib
/** The frames of a turn are collected in a buffer of this size; a fuller one is sent at once. */
export const linkBufferBytes = 128 * kib
/** A record of TLS holds at most this many bytes (RFC 8446 section 5.1), so a link between nodes reads that much at a time. */
export const linkRecordBytesMax = 16 * kib
/** A message up to this size is sent in one piece with its head: copying it costs less than a second write. */
export const shortResponseBytesMax = 16 * kib - 1
/**
 * A forwarded body, which is held to be sent again, may have this many bytes: the largest is a setWebhook with its
 * certificate.
 */
export const forwardedBodyBytesMax = certificateRequestBytesMax + 64 * kib
/**
 * When this many pipelined calls of a connection wait for earlier ones, nothing more is read from it. The calls that were
 * read together with them come on top, 64 KiB at a time.
 */
export const pipelinedWaitingMax = 64
/**
 * A worker that ends waits this long for the requests that other nodes answer, as long as for their owner
 * (`peerConnectWaitMs`). Polls are answered at once, so these are calls that take long, or their owner hangs.
 */
export const forwardedDrainMs = peerConnectWaitMs
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
 * A worker that died is started again after these delays, the last one repeated. The first start is immediate because
 * requests wait 4 s; a worker that cannot start tries once a second, so that it does not burn a CPU.
 */
export const workerRestartDelaysMs: readonly number[] = [0, 250, 500, 1_000]
/** After this lifetime a worker that dies is restarted immediately again, with the first of the delays above. */
export const workerSettledMs = 10_000
/**
 * The primary checks this often whether a worker still replies. Chosen: it adds at most 5 s to `workerHangMs`, and a
 * check costs next to nothing.
 */
export const workerPingPeriodMs = 5_000
/**
 * A worker that has not replied for this long hangs: no garbage collection and no busy machine takes as long. The primary
 * checks once more, in case it stood still itself.
 */
export const workerHangMs = 30_000
/** The second check waits this long: if the primary stood still as well, the worker now replies immediately. */
export const workerHangSurelyMs = 5_000
/**
 * Closing may take this long in addition to draining before a worker is killed. Chosen: closing a shard takes
 * milliseconds, a slow disk takes seconds.
 */
export const closeMarginMs = 3_000
/**
 * The primary waits this long after 'exit' for the end of a worker's channel. It is at its end already, unless a
 * grandchild process holds it open.
 */
export const workerChannelEndMs = 1_000

// Store
/**
 * Deaths of a worker that are further apart than this do not count as a row. Chosen: a compaction that meets the same
 * damage again does so within minutes of a start.
 */
export const crashMemoryMs = 600_000
