/** The fixed bounds of putting a worker together, each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { mib } from '../limits.ts'

// Bodies that arrive in pieces
/**
 * The bodies that a worker holds and cannot use yet may have this many bytes per listener: 16 of the largest size, or 64
 * with the most parameters. Past that a call gets 503.
 */
export const heldBodiesBytesMax = 64 * mib
/**
 * One client address (an IPv6 /64 counts as one) may use this much of `heldBodiesBytesMax`: a quarter, so that three
 * addresses leave room for others.
 */
export const heldBodiesShareBytesMax = 16 * mib
/**
 * An address that may stand for many clients may use this much of `heldBodiesBytesMax`; the remaining quarter is for
 * addresses that are known. Many clients may share a Unix socket, or a private or loopback address without an X-Real-Ip,
 * as of a reverse proxy that does not report its clients. A forwarded body is counted only by the worker that read it
 * from its client, until the response is there. On the private listener this is the share of a key, and the admin key has none.
 */
export const heldBodiesSharedAddressBytesMax = 48 * mib

// Updates in memory
/** The default of `--window-memory`, if the memory of the machine or container is not small. */
export const windowBytesMax = 256 * mib
/**
 * The windows of all workers take this share of a smaller memory, and as much again for webhooks. Chosen: in a container of 320 MiB
 * with one worker, processes at rest take 140 MiB, and what is being sent takes the rest.
 */
export const windowMemoryShare = 1 / 8

// Connections
/** Delayed refusals may hold this share of the connections that a worker may have, so that most remain for requests. */
export const heldRefusalsShare = 1 / 8

// The event loop
/**
 * The delay of the event loop is measured this often, so a delay may be this much longer than the gauge shows. An idle
 * worker spends 0.2 % of a core on it; with 10 ms it would be 0.3 %.
 */
export const loopDelayResolutionMs = 20
/** The gauges of the event-loop delay are updated this often. Chosen: Prometheus usually reads every 15 to 60 s. */
export const loopDelayPeriodMs = 10_000
/** The gauges show the worst of this many periods: one minute, which is as long as a usual scrape interval. */
export const loopDelayPeriodsShown = 6
/** A worker notes this often that its event loop turns. It costs microseconds. */
export const loopTurnPeriodMs = 1_000
/**
 * A worker whose event loop has not turned for this long is shown as hanging. Chosen: on a busy machine a loop may be late
 * for a second or two.
 */
export const workerHangsAfterS = 5

// Store
/** A shard over which this many processes in a row have died is set aside: a single death may have had another reason. */
export const deathsBeforeAside = 2
/**
 * A background check reads at most this much per second from the disk. A check handles 50 MB per second of CPU, so this
 * takes 8 % of a worker.
 */
export const backgroundCheckBytesPerS = 4 * mib
/** A check on request reads at most this much per second, which takes half of a worker's CPU at most. */
export const requestedCheckBytesPerS = 24 * mib
/**
 * A shard in doubt that could not be opened for a reason other than damage is tried again after this time: a full disk or
 * a lack of descriptors may end at any moment.
 */
export const lateOpeningRetryMs = 1_000
/**
 * A shard for which the disk has no room is tried again after this time. Chosen: each try writes up to 8 MiB until the disk is
 * full, and its operator needs longer to make room.
 */
export const roomlessOpeningRetryMs = 10_000
/** Webhooks of a shard that could not be read are started again after this time, which doubles after each failure. */
export const webhookStartRetryMsMin = 1_000
/** The time between these attempts grows to this: each attempt reads all webhooks of the shard. */
export const webhookStartRetryMsMax = 300_000

// The upstream server (`--upstream`)
/** With an upstream server, a call may take this long to arrive: 50 MB, the most that an upload may have, at 85 KB/s. */
export const uploadTimeoutMs = 600_000

// The flood gates [ref]
/**
 * The thread that checks addresses ends after this idle time. Chosen: setWebhook calls and look-ups come in groups; a
 * thread takes 5 to 10 MB.
 */
export const addressPoolIdleMs = 30_000

// Events for the operator
/** An event that `--events-url` has not accepted for this long is skipped. Chosen: nobody acts on an older one. */
export const eventDeliveryS = 86_400
/** A question for new events waits this long. Chosen: it costs nothing while it waits, and ends soon with its process. */
export const eventReadWaitMs = 20_000
/** After a question that was not answered, the next one waits this long. */
export const eventReadAgainMs = 1_000
/** A worker that ends waits this long for the delivery of an event. Chosen: below `leaveDeliveriesMs`; the next process sends it again. */
export const eventDrainMs = 1_000
/** A file of `--events-secret-file` has at most this many secrets: the new one and an old one, with room for a mistake. */
export const eventSecretsMax = 4

// Keys of the private API
/**
 * A worker that starts waits this long for the keys if another worker has them, and serves without them after that. Chosen:
 * an answer takes milliseconds.
 */
export const keysOpenWaitMs = 500
