/**
 * Every fixed bound of the server, with its reason. Bounds that an operator may change are options (config-options.ts).
 *
 * [ref] marks a number of the reference server, the public C++ server of the bot API. "Chosen" marks a number that
 * follows from no rule and no measurement; the comment says what it weighs.
 */

const kib = 1024
const mib = 1024 * kib

// Bot API requests (protocol.md §3)
/** A call may have this many bytes of parameters, counted after decompression. [ref] */
export const parameterBytesMax = 1 * mib
/**
 * A setWebhook with a certificate part may have this many bytes: the largest certificate, plus `parameterBytesMax` for
 * everything else.
 */
export const certificateRequestBytesMax = 4 * mib
/** An uploaded certificate may have this many bytes. [ref] */
export const certificateBytesMax = 3 * mib
/** An upload may have this many certificates: a usual chain has three or four. */
export const certificatesMax = 16
/**
 * One certificate may have this many bytes of PEM: one with a hundred names has 10 KiB. A certificate that is built to be
 * slow (400 parts of a name) takes 1 ms to parse; the time grows with the square of the size: 4 ms for 62 KiB, 132 ms for
 * 171 KiB.
 */
export const certificateBlockBytesMax = 16 * kib
/** All certificates of an upload may have this many bytes of PEM: four of the largest size, and many more usual ones. */
export const certificateBlocksBytesMax = 64 * kib
/**
 * A call may have this many parameters in its query or its body, and a multipart body this many parts. No method has more
 * than ten, so this leaves room for unknown parameters, which are ignored.
 */
export const parametersMax = 1_000
/**
 * A JSON body may have this many values, including nested ones. JSON.parse takes up to 2 us for one (an object with a new
 * key), so this is 8 ms at worst.
 */
export const jsonValuesMax = 4_000
/** A JSON body may have this many levels. [ref] */
export const jsonNestingMax = 100
/**
 * The header lines of a multipart part may have this many bytes: clients send one to three lines with a name and a file
 * name.
 */
export const partHeadBytesMax = 16 * kib
/** A multipart part may have this many header lines: clients send one to three. */
export const partHeaderLinesMax = 16
/** A header of a multipart part may have this many parameters: clients send a name and a file name. */
export const partHeaderParametersMax = 16
/**
 * A compressed body of parameters may unpack to this many times its size. JSON and forms are compressed 3 to 20 times;
 * the 1,000 times that gzip can reach make an attack cheap.
 */
export const bodyGrowthMax = 100
/**
 * Any compressed body may unpack to this many bytes, because short text of one repeated character is compressed more than
 * `bodyGrowthMax` times.
 */
export const bodyGrowthFreeBytes = 64 * kib
/**
 * The text of allowed_updates may have this many characters; all 22 names have 400. A longer text counts as text that is
 * not JSON.
 */
export const allowedUpdatesLengthMax = 16 * kib
/**
 * The head of a request or a forwarded response may have this many bytes. Chosen: four times Node's default, for clients
 * that send long parameters in the address; a connection may hold this much before its token is checked.
 */
export const headerBytesMax = 64 * kib
/** A token may have this many characters. [ref] */
export const tokenLengthMax = 80
/**
 * This many bytes of a refused body are still read, so that a client that sends all of it before it reads gets the
 * response and keeps its connection. Chosen: twice the largest body that is accepted; a longer body loses its connection,
 * and a larger bound would let clients send more in vain.
 */
export const refusedBodyBytesMax = 8 * mib
/**
 * Each piece of a refused body counts as at least this many bytes, so that at most 131,072 are read. 8 MiB in pieces of
 * one byte would take a worker over ten seconds.
 */
export const refusedPieceBytesMin = 64
/**
 * This many pieces are read of a body that is not used. A body of 50 MB arrives in 1,000; in pieces of one byte, each
 * costs a worker 2 us, so this is 0.3 s.
 */
export const unwantedPiecesMax = 131_072
/**
 * The sender of a body is charged each time this many pieces have arrived: a body of 4 MiB usually has 64, so usual
 * bodies are never charged for pieces.
 */
export const bodyPiecesPerCharge = 1_024
/**
 * A piece is charged as this much time of the event loop: Node's parser takes 2.4 to 3.9 s for 900,000 pieces of one
 * byte.
 */
export const bodyPieceCostMs = 0.003
/**
 * A multipart boundary may have this many characters. RFC 2046 allows 70; a search for a far longer one could be made
 * slow.
 */
export const boundaryLengthMax = 256

/** The body of a private call that is not a push may have this many bytes: it has only names, settings and ids. */
export const privateBodyBytesMax = 64 * kib

// Bodies that arrive in pieces
/** The memory for a body in several pieces begins with this many bytes and doubles; most bodies fit. */
export const growingBodyBytesMin = 4 * kib
/**
 * A body that holds no more than this many bytes is not counted, because its connection takes as much. Most bodies are
 * smaller.
 */
export const uncountedBodyBytes = 4 * kib
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
 * from its client, until the response is there. Producers have the admin key and share the complete budget of the private
 * listener.
 */
export const heldBodiesSharedAddressBytesMax = 48 * mib
/** A client whose body found no room may try again after this time: at 10 Mbit/s a body of 4 MiB arrives in less. */
export const bodyRetryAfterS = 5

// Bot ids (protocol.md §2): exact in a JavaScript number
/**
 * The smallest bot id. Chosen: any number above 0 would do; a token with a smaller id is invalid, and no such bot can be
 * registered.
 */
export const botIdMin = 100
/** The largest bot id: 2^52 - 1 is exact in a JavaScript number. */
export const botIdMax = 2 ** 52 - 1
/** Random ids are drawn from this many: all from botIdMin to 9,999,999,999, so that an id has at most ten digits. */
export const randomBotIdsCount = 9_999_999_900
/**
 * A registration draws at most this many ids until one is free and belongs to this worker. That is enough for 256 workers
 * with a `--filter`; a draw takes 2 us.
 */
export const randomBotIdTriesMax = 10_000

// Update ids (protocol.md §4): clients hold them in 32 bits [ref]
/**
 * A numbering begins at this id or above, as in the reference, which uses twice its longest queue plus 1. [ref] A large
 * first id also keeps clear of clients that treat 0 and 1 as special.
 */
export const updateIdFirstMin = 2_000_001
/** A numbering begins at this id or below, so that it has 2,000,000,000 ids before it must begin again. */
export const updateIdFirstMax = 2 ** 27 - 1
/**
 * Past this id a new numbering begins at the next push into an empty queue. The 483,646 ids above it are for a queue that
 * does not become empty soon.
 */
export const updateIdRenumber = 2_147_000_000
/** The largest update id: clients hold ids in 32 bits, and the offset that confirms this one is 2^31 - 1. */
export const updateIdMax = 2 ** 31 - 2
/** An offset further below the oldest update than this means "from the oldest". [ref] */
export const offsetBelowOldestMax = 100_000

// getUpdates (protocol.md §5) [ref]
/** A poll returns at most this many updates, which is also the default. [ref] */
export const pollLimitMax = 100
/**
 * A poll waits at most this long; a longer timeout is clamped, because clients that ask for 60 s or more often give up
 * themselves. [ref]
 */
export const pollTimeoutSMax = 50
/** The updates of a getUpdates response, each counted with `updateEnvelopeBytes`, have fewer bytes than this. [ref] */
export const responseBytesMax = 1 << 22
/** The envelope `,{"update_id":2147483646,...}` of one update counts as this many bytes. [ref] */
export const updateEnvelopeBytes = 50
/**
 * The client of a poll that repeats an offset within this time has handled nothing since: the poll waits at least
 * `pollRepeatedTimeoutMs`, so that a client without pauses does not spin. [ref]
 */
export const pollRepeatedWithinMs = 3_000
/** A poll that repeats an offset within `pollRepeatedWithinMs` has at least this timeout. [ref] */
export const pollRepeatedTimeoutMs = 3_000
/**
 * A poll that repeats an offset within this time gets a single update, because its client has handled none of those it
 * just got. [ref]
 */
export const pollHastyWithinMs = 500
/** A waiting poll gets its response this long after the last push, so that further updates can join it. [ref] */
export const pollPauseAfterLastMs = 1
/** A waiting poll gets its response at most this long after the first push. [ref] */
export const pollPauseAfterFirstMs = 2
/**
 * This many delayed conflicts wait per bot; past that the oldest is sent. Chosen: some instances of one bot; each waiting
 * conflict holds a connection.
 */
export const delayedRefusalsPerBotMax = 8
/**
 * This many delayed refusals wait per worker, each with a timer and a connection; past that a refusal is sent immediately
 * and closes its connection. Chosen: with `refusalDelayMs` that is 330 refusals a second; fewer would pace less, more
 * would hold more connections.
 */
export const delayedRefusalsPerWorkerMax = 1_000
/**
 * A refusal waits this long if another one was sent without delay within the same time: several frameworks repeat a
 * failed call without a pause. [ref]
 */
export const refusalDelayMs = 3_000

// Updates (protocol.md §4)
/**
 * An update may nest this deep, including its outer object. Chosen: deeper ones break the JSON parsers of clients at
 * every poll, and real updates stay far below it.
 */
export const updateNestingMax = 64
/** An ordering key may have this many bytes. Chosen: several UUIDs fit; a webhook keeps the key of each lane in memory. */
export const orderingKeyBytesMax = 256
/** Memory for loaded updates begins with a chunk of this size and grows, so that a bot with one short update costs little. */
export const windowChunkBytesMin = 1 * kib
/**
 * Chunks grow up to this size, at which they are allocated as shared memory for the compression thread. Chosen: 64 such
 * chunks are the largest response; larger ones would keep more memory alive for a single update.
 */
export const windowChunkBytesMax = 64 * kib
/**
 * A chunk up to this size is kept when the window becomes empty, as most windows do all the time, so that the next update
 * needs no new one.
 */
export const windowChunkBytesKept = 2 * kib
/**
 * A window keeps up to this many removed entries in its middle, or as many as it has live ones, before it is compacted:
 * so compaction is rare and removes at least half.
 */
export const windowHolesMax = 256
/**
 * A queue keeps at most this many pushed bytes in memory, two of the largest responses; older or further updates are read
 * from disk when they are needed.
 */
export const queueWindowBytesMax = 8 * mib
/**
 * A queue that nobody has read for this long keeps no pushed updates in memory. It is longer than any poll waits (50 s),
 * so a bot that polls reads from memory.
 */
export const queueUnreadAfterMs = 60_000
/** One read of a queue that is too long for memory returns this many updates: five getUpdates responses. */
export const queuePageUpdates = 500
/**
 * One read of a queue that is too long for memory returns at most this many bytes: two of the largest getUpdates
 * responses.
 */
export const queuePageBytes = 8 * mib
/** One read of ids alone returns this many; each takes 40 bytes in memory, so this is 200 KB. */
export const queuePageIds = 5_000
/**
 * The `ttl` of an update is at most a year. Chosen: no update is useful for longer, and a point in time that is given by
 * mistake is far above and refused.
 */
export const ttlSMax = 365 * 86_400
/**
 * Expired updates and old idempotency keys are removed this often. An expired update is never sent, but it uses memory
 * and disk for up to this long.
 */
export const expirySweepPeriodMs = 60_000
/** The sweep lets other work run after this time, so that it does not delay requests noticeably. */
export const expirySweepSliceMs = 10
/**
 * The sweep reads at most this many expiry records together. Chosen: fewer would need more reads, more would only take
 * more memory; all reads together see every record.
 */
export const expiryBucketsPerReadMax = 500
/**
 * A sweep remembers this many queues that it has handled. Past that it may read one twice, which costs time and nothing
 * else.
 */
export const expirySweptQueuesMax = 10_000
/**
 * The header line of a pair may have this many bytes. An ordering key and an idempotency key of the largest size, all
 * escaped, take about 2,300.
 */
export const pairHeaderBytesMax = 4 * kib
/** An idempotency key may have this many characters: room for more than two UUIDs. Keys are stored only as hashes. */
export const idempotencyKeyLengthMax = 128
/** An idempotency key stands for its update for this long: 24 hours, as docs/guarantees.md promises. */
export const idempotencyLifeMs = 86_400_000
/**
 * One queue may have this many idempotency keys per day. They are not in memory; each takes some 60 bytes on disk for up
 * to two days, so this is 120 MB.
 */
export const idempotencyKeysPerDayMax = 1_000_000
/** Old idempotency keys are deleted in slices of this many, which take 2 to 3 ms. */
export const idempotencySweepKeys = 1_000
/**
 * The deletion of old keys pauses this long after each slice, so that ten million keys take two minutes and a quarter of
 * a worker.
 */
export const idempotencySweepPauseMs = 10

// Dead letters
/**
 * A dead letter is kept for a week. Chosen: long enough for an operator to notice a failed endpoint and replay its
 * updates.
 */
export const deadLetterLifeMs = 7 * 86_400_000
/**
 * A queue keeps this many dead letters; past that the oldest are removed. This is enough to see what is wrong and to
 * replay an afternoon of a small bot; the index takes 24 KB of memory per queue with this many.
 */
export const deadLettersMax = 1_000
/**
 * A queue keeps dead deadLetters of this many bytes; past that the oldest are removed. Chosen: `deadLettersMax` deadLetters of 16
 * KiB each, more than usual ones; so 1,000 bots whose endpoints all fail take 16 GB of disk at most.
 */
export const deadLetterBytesMax = 16 * mib
/** One read of dead letters from disk returns at most this many, since their texts are in memory. */
export const deadLettersPerRead = 200
/** One read of dead letters returns at most this many bytes, or a single longer letter. */
export const deadLetterBytesPerRead = 1 * mib

// Compressed answers
/**
 * This many responses wait for the compression thread. One takes 0.5 to 5 ms, so with more the wait would be longer than
 * sending the response uncompressed.
 */
export const compressPendingMax = 32
/**
 * The compression thread ends after this idle time. It costs 5 to 10 MB, and 30 ms to start, so it is kept between the
 * polls of a backlog.
 */
export const compressIdleMs = 60_000

// Updates checked in a thread
/** The shared memory for updates on their way to the checking thread begins with this size; most workers need no more. */
export const checkScratchBytesMin = 256 * kib
/**
 * Shared memory up to this size is kept for later updates: twice what all streams of a worker have under way
 * (`streamsWeightMax`).
 */
export const checkScratchBytesMax = 16 * mib
/**
 * This many updates wait for the checking thread: at 1 to 2 ms each for the largest, the last one waits a tenth of a
 * second. Further ones are checked in place.
 */
export const checkPendingMax = 64
/** The checking thread ends after this idle time, for the same reason as the compression thread (`compressIdleMs`). */
export const checkIdleMs = 60_000

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
 * (docs/benchmarks.md, connect-poll), so a full queue is empty after little more than a second.
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
 * A request may take this long to arrive completely. Chosen: 4 MiB in 60 s is 70 kB/s; a shorter time fails slow uploads,
 * a longer one holds memory longer for clients that stall.
 */
export const requestTimeoutMs = 60_000
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
/** The bytes of a refused client are read and dropped for this long, so that it receives the response and no reset. */
export const refusedLingerMs = 2_000
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
/** Delayed refusals may hold this share of the connections that a worker may have, so that most remain for requests. */
export const heldRefusalsShare = 1 / 8
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
 * One connection gets this many pipelined responses in one turn of the event loop, which take some 3 ms; calls with the
 * admin key have no such bound. The libraries that bots are written with do not pipeline at all.
 */
export const pipelinedPerTurnMax = 128
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
/** The path of a Unix socket may have this many bytes: the kernel's field (sun_path) has 108, with the closing zero. */
export const listenPathBytesMax = 107
/**
 * Connections are checked for late headers and requests this often. Node's default of 30 s would turn a limit of 10 s
 * into 40 s.
 */
export const connectionsCheckMs = 1_000

// Bots in memory
/**
 * A bot leaves memory after this idle time. It is longer than any request takes to arrive, so no request is left with a
 * queue that was dropped.
 */
export const botIdleMs = 2 * requestTimeoutMs
/** Idle bots are searched for this often: an eighth of `botIdleMs`, so that they leave memory soon after it. */
export const botSweepPeriodMs = 15_000
/** Each sweep checks at most this many bots, so that a worker with many of them spreads the work over several sweeps. */
export const botSweepCountMax = 20_000
/** A sweep checks this many bots in one turn of the event loop: dropping 20,000 in one turn took 120 ms, so this is 3 ms. */
export const botSweepSliceMax = 500
/** A start begins this many webhooks in one turn of the event loop, since each reads its queue and looks up a name. */
export const webhooksStartedMax = 20
/** One call reads this many bots from disk, because three records of each are in memory together. */
export const botLoadCountMax = 500

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

// Budgets of event-loop time (loop-budget.ts)
/**
 * A bot or a client address may use this share of a worker's time for work beyond usual calls, so that nine others can do
 * the same.
 */
export const loopBudgetShare = 1 / 10
/** A bot or a client address may use this much time without a wait: five bodies of the most expensive kind. */
export const loopBudgetBurstMs = 100
/** A debt is at most this high, so that it is paid after ten seconds whatever was done. */
export const loopDebtMsMax = loopBudgetBurstMs + 10_000 * loopBudgetShare
/** This many debtors are remembered, which takes 2 MB. */
export const loopDebtorsMax = 10_000
/**
 * A call with a valid token may take this long without a charge. A usual one takes 0.1 ms, one that returns 4 MB of
 * updates takes 2 ms.
 */
export const loopCostFreeMs = 2
/**
 * Parsing a body of this size takes less than `loopCostFreeMs`, so a call whose body is no larger never waits for its
 * client address.
 */
export const loopFreeBodyBytes = 16 * kib
/** The CPU time is read at most this often; a reading takes 1 us. */
export const loopCpuReadingMs = 1
/**
 * A refusal on the private listener is charged this much: its work is spread over several turns of the event loop, so it
 * is not measured.
 */
export const privateRefusalCostMs = 0.1
/**
 * This many requests wait for one debtor to have paid; further ones get 429. Chosen: enough for the parallel connections
 * of one client; with `budgetSpacingMs` cheap ones pass within a third of a second.
 */
export const budgetWaitersPerDebtorMax = 16
/**
 * This many requests wait in a worker for all debtors together. Chosen: 62 debtors with full lines; each waiting request
 * holds a connection.
 */
export const budgetWaitersMax = 1_000
/** This many of the waiting requests may hold their body in memory, usually up to a mebibyte each. */
export const budgetBodiesMax = 32
/** Waiting requests of one debtor start this far apart, because the cost of one is known only a moment later. */
export const budgetSpacingMs = 20
/**
 * A request that has waited this long is refused: a debt is paid within ten seconds (`loopDebtMsMax`), so a longer wait
 * means that others keep adding to it.
 */
export const budgetWaitMsMax = 10_000

// Life of the process (protocol.md §10)
/**
 * When the server ends, requests and deliveries may take this long to finish, as docs/operations.md promises. Chosen:
 * with less, more deliveries are cut and repeated; with more, a shutdown may exceed the 30 s after which Kubernetes kills
 * a process.
 */
export const drainMs = 10_000
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
/** A worker that leaves checks this often whether anything is under way: short, because requests wait during that time. */
export const leaveCheckPeriodMs = 5
/** A worker that has not closed its shards after this time hangs and is killed: `leaveRequestsMs`, and 3 s for closing. */
export const leaveMs = 5_000
/** A replaced worker waits at least this long, because a connection may still be in the backlog of its peer socket. */
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
/** A command may have this many bytes: commands are single words, so longer input is not from the command line. */
export const commandBytesMax = 64
/** A command waits this long for the primary's reply: the primary replies immediately unless it hangs. */
export const commandResponseMs = 5_000
/**
 * A second signal within this time belongs to the same key press: npm sends on a signal that the terminal has sent to all
 * processes already.
 */
export const signalEchoMs = 50

// setWebhook (protocol.md §6)
/** A bot may call setWebhook with a url once in this time. [ref] */
export const setWebhookPeriodMs = 1_000
/**
 * A handshake or delivery within this time spares a repeated setWebhook its verification. Chosen: bots that restart in a
 * loop repeat the call every few seconds.
 */
export const webhookTrustMs = 60_000

// The private API (protocol.md §9)
/**
 * A page of a list has at most this many entries. Chosen: 100,000 bots take 100 calls; a larger page would hold more
 * records in memory.
 */
export const listedPerPageMax = 1_000
/**
 * An old token may stay valid this long beside a new one: a week is long enough to roll a new token out and short enough
 * for a leaked one to end.
 */
export const tokenOverlapSMax = 7 * 86_400
/** A pushed update may have this many bytes of braces and white space around the text that is stored. */
export const updateSlackBytes = 1024
/** This many pairs of one NDJSON stream may wait for their results; past that the stream is not read. */
export const streamPairsMax = 8_192
/**
 * The pairs of one stream that wait for their results may have this many bytes: 16 updates of the largest default size.
 * Past that the stream is not read.
 */
export const streamBytesMax = 8 * mib
/** The buffer for the beginning of a line has this size at first and doubles up to the longest line; usual pairs fit. */
export const streamCarryBytesMin = 1 * kib
/**
 * An owner that is being replaced may end its response without a result. After this many such responses in a row the
 * pairs are refused.
 */
export const emptyAnswersMax = 3
/**
 * A stream that sends nothing for this long is ended between pairs; one whose results are not read is cut. Chosen:
 * producers with rare events keep their stream for ten minutes, and a dead one is noticed.
 */
export const streamIdleMs = 600_000
/**
 * A connection without traffic for this long during a request is cut, for example because its client does not read a
 * response: 4 MB would be held for it. It is longer than any response takes (`upstreamResponseTimeoutMs`), by 30 s.
 */
export const silentBotConnectionMs = 330_000
/** The same for the private listener: a minute longer than `streamIdleMs`, so that idle streams end in order first. */
export const silentPrivateConnectionMs = streamIdleMs + 60_000
/** The pairs of all streams of a worker that wait for results may have this weight: about 10,000 pairs of 300 bytes. */
export const streamsWeightMax = 8 * mib
/** A pair weighs this many bytes in addition to its own: the objects that represent it until its result is there. */
export const pairWeight = 512
/**
 * One turn of the event loop handles pairs of this weight from all streams together: 600 pairs of 300 bytes, which take 5
 * ms.
 */
export const streamsTurnWeight = 512 * kib
/** Pairs of one stream are handled in slices of this many, so that other streams have their turn in between. */
export const streamSlicePairs = 256
/** The beginning of a pair over this size takes one of the places for long lines, so that usual pairs never wait for one. */
export const streamCarryBytesFree = 128 * kib
/**
 * Long pairs whose end has not arrived may have this many bytes in all streams of a worker; a place counts as the longest
 * pair, so there are 128 by default.
 */
export const longLinesBytesMax = 64 * mib
/**
 * A stream that holds a place for a long line and sends nothing for this long is ended, so that stalled producers do not
 * keep the places.
 */
export const longLineIdleMs = 60_000

// Shared memory: sizes of fixed tables in the mapped file
/** The server may have this many workers: the shared memory has tables of this size, and each worker needs a shard. */
export const workersMax = 256
/**
 * The server may have this many shards: the shared memory has a table of this size, and 4,096 slots still give each shard
 * 16.
 */
export const shardsMax = 256
/**
 * A worker has this many metric slots, which its successive processes use in turn: the worker, its successor, and
 * `retiringWorkersMax` replaced ones.
 */
export const slotsPerWorker = 4
/**
 * A slot has room for this many metrics. There are fewer than 50; later versions append theirs, and their positions are
 * fixed by then.
 */
export const metricsMax = 128

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
 * A request that was lost with its owner is repeated after this time: a killed process still accepts connections while
 * the kernel tears it down.
 */
export const peerRepeatDelayMs = 100
/**
 * A request waits this long for a worker that is not there, as connections do (`handOffWaitMs`): clients give up after 5
 * s.
 */
export const peerConnectWaitMs = 4_000
/**
 * A pair of a stream whose owner was lost is sent again this often: once to the successor, and once more because the
 * killed process may still have taken the first. A pair that has ended two processes must not end all. If the owner hung,
 * the pair is not sent again.
 */
export const pairRepeatsMax = 2
/**
 * An open stream waits this often, for `peerConnectWaitMs` each, for an owner that cannot be reached: 20 s, below the 30
 * s after which postbote/client takes a silent stream for dead. On a busy machine a worker starts in 10 s.
 */
export const ownerWaitsMax = 5
/**
 * An idle connection to a peer is closed after this time: well below `keepAliveTimeoutMs`, so that the owner never closes
 * one that is about to be used.
 */
export const peerFreeSocketTimeoutMs = 20_000
/** This many idle connections are kept to each socket of a peer: the default of node:http's Agent. */
export const peerFreeSocketsMax = 256
/** The buffer for responses of peers has this size, one per worker: a read of the system returns no more. */
export const peerReadBytes = 64 * kib
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
/** A request may be forwarded this often: it may meet a shard that moves, but more hops are a loop. */
export const forwardHopsMax = 3
/** The path of a socket between workers must be shorter than this: sun_path holds 108 bytes on Linux and 104 elsewhere. */
export const socketPathBytesMax = 100
/** The longest name of a socket in the run directory, which the check of the directory's path adds. */
export const socketNameBytesMax = 24

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
 * A native batch that holds no more than this many bytes is reused for the next write. A larger one is freed after its
 * write, because every shard keeps a batch.
 */
export const levelBatchBytesKeptMax = 4 * mib
/**
 * One visit to the thread pool reads at most this many bytes ahead: turning them into buffers blocks the event loop for
 * less than 1 ms.
 */
export const rangeReadBytesMax = 256 * kib
/**
 * A database that another process still has open is tried again after this time. Chosen: 100 attempts within
 * `storeLockWaitMs`.
 */
export const levelLockRetryMs = 50
/** A shard's directory may be held this long by a predecessor that was killed; after that the opening fails. */
export const storeLockWaitMs = 5_000
/**
 * A group for which no caller waits may wait this long for further operations, so that confirms and deletions share a
 * sync. It bounds what a crash may deliver again (docs/operations.md).
 */
export const groupLingerMs = 20
/**
 * A group is closed at this cost, since its encoding and the work after its sync block the event loop: 40 ms for 10,000
 * updates. The throughput is the same with 1,000, 2,000, 4,000 and 10,000.
 */
export const groupCostMax = 2_000
/**
 * This many bytes of an update add 1 to its cost, because they are copied and summed. Chosen, not measured: with less,
 * groups of large updates become small; with more, they block longer.
 */
export const groupCostBytes = 2 * kib
/**
 * One operation removes this many updates from a queue, in one turn of the event loop; further ones need further
 * operations.
 */
export const removedPerOperationMax = 1_000
/** One write deletes this many dead records; a group with more operations deletes as many as it stores. */
export const reclaimedPerWriteMax = 1_000
/**
 * Dead records are deleted in a write of their own if no group has been written for this long. Chosen: under load every
 * group takes some along, so this is for idle shards.
 */
export const reclaimIdleMs = 100
/**
 * A poisoned shard tests its disk this often; pushes are refused until the test succeeds, so the outage lasts at most
 * this much longer than the failure.
 */
export const shardProbePeriodMs = 1_000
/** Dead records are searched and deleted in batches of this size; groups are written in between. */
export const leftoversPerWriteMax = 1_000
/** One read of a queue that is recounted after damage returns this many updates. */
export const recountPageUpdates = 1_000
/** One read of a recount returns at most this many bytes, all of them in memory: two of the largest getUpdates responses. */
export const recountPageBytes = 8 * mib
/**
 * A recount skips this many ids, more than a lost log can have held: LevelDB writes 4 MiB to a log, and an update takes
 * over 40 bytes there.
 */
export const recountSkippedIds = 1_000_000
/**
 * A shard may assign this many ids before it must record again, synced, how far it has come: a synced write per million
 * ids costs next to nothing.
 */
export const idsReservedAhead = 1_000_000
/** This many damaged records are named and copied in one life of a shard; each may be an update of 512 KiB. */
export const damagedRecordsKeptMax = 1_000
/** This many bots or queues are recounted between two reads of the list, so that the list is never in memory as a whole. */
export const countedPerReadMax = 500
/**
 * This many bytes of a shard's files are checked in one turn of the event loop: unpacking and decoding them takes some 5
 * ms.
 */
export const shardReadTurnBytes = 64 * kib
/** A repair writes this many records in one batch; a few batches are in memory. */
export const rescueBatchRecords = 1_000
/** A repair writes a batch when it has this many bytes, so that large updates do not fill the memory. */
export const rescueBatchBytes = mib
/**
 * The report of a repair lists this many ranges of missing ids per queue. Chosen: enough to see where the damage is; a
 * line stays readable.
 */
export const lostRangesMax = 5
/**
 * This many expiry minutes are remembered per queue, so that a bucket is written once and not per update. Chosen: updates
 * of one type expire in one or two minutes; forgetting costs one small record.
 */
export const expiryBucketsRememberedMax = 64

/**
 * This many bytes at the end of LevelDB's log of events are read: they contain its last compaction, which may write a few
 * hundred lines of 120 bytes.
 */
export const eventLogBytesRead = 256 * kib
/** A shard over which this many processes in a row have died is set aside: a single death may have had another reason. */
export const deathsBeforeAside = 2
/**
 * Deaths of a worker that are further apart than this do not count as a row. Chosen: a compaction that meets the same
 * damage again does so within minutes of a start.
 */
export const crashMemoryMs = 600_000
/**
 * /readyz and the log name this many damaged places of a shard; `postbote verify` names all. Chosen: enough to judge the
 * damage, and the log line stays short.
 */
export const damagesNamedMax = 16
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
/** A client may try again after this time if the shard of its bot is set aside: an operator must repair the shard first. */
export const brokenShardRetryAfterS = 60
/** Webhooks of a shard that could not be read are started again after this time, which doubles after each failure. */
export const webhookStartRetryMsMin = 1_000
/** The time between these attempts grows to this: each attempt reads all webhooks of the shard. */
export const webhookStartRetryMsMax = 300_000

// Data directory
/** An admin key has at least this many characters: 16 random visible ones have 104 bits and cannot be guessed. */
export const adminKeyLengthMin = 16

// Options
/**
 * An error message shows this many characters of an option's invalid value. Chosen: enough to recognize the value; a
 * pasted file does not fill the log.
 */
export const optionShownLengthMax = 100

// Disk space
/**
 * The free space of the disk is read this often. In one second the fastest measured ingest (134,000 updates of 300 bytes)
 * stores some 40 MB, far less than the reserve of 256 MiB.
 */
export const diskCheckPeriodMs = 1_000
/**
 * A probe of the disk writes this many bytes: when a database is opened, it writes its logs as tables of up to two of
 * LevelDB's write buffers. With less space the opening fails, too, and a shard that could be read is closed.
 */
export const diskProbeBytes = 8 * mib

// Webhooks (protocol.md §6, 8)
/**
 * A webhook url may have this many characters. Chosen: usual urls are far shorter; the url is in memory and on disk for
 * every webhook.
 */
export const webhookUrlLengthMax = 2_048
/** A secret_token may have this many characters. [ref] */
export const webhookSecretLengthMax = 256
/**
 * This many addresses of a webhook's name are used, and as many TLS sessions kept. Chosen: a usual name has a few; a name
 * server may send hundreds.
 */
export const webhookAddressesMax = 32
/** Resolved addresses are used this long, plus up to 10 % so that look-ups spread. [ref] */
export const webhookResolvedForMs = 30 * 60_000
/** The addresses of this many webhooks are kept per worker: 5 MB with one or two addresses each, 50 MB if each had 32. */
export const webhookAddressBookMax = 20_000
/** A name server has this long for its first response, and twice as long after each further attempt. */
export const nameServerTimeoutMs = 1_000
/**
 * A name server is asked this often: with the times above a look-up takes 6 to 8 s at most, so that one lost datagram
 * does not fail it.
 */
export const nameServerTries = 3
/**
 * This many names are looked up together: their 64 datagrams fit into any socket's buffer. Of 600 sent together most were
 * lost.
 */
export const lookupsPerTurnMax = 32
/** The next look-ups start after this time, so that 10,000 names take 6 s. */
export const lookupTurnMs = 20
/**
 * When the addresses of one family (IPv4 or IPv6) are known, those of the other are waited for this long: as long as a
 * name server's first attempt.
 */
export const secondFamilyWaitMs = 1_000
/** After a failed background look-up the last addresses stay in use, and the next look-up comes this much later. */
export const webhookResolveRetryMs = 60_000
/**
 * A connection to a webhook, with its TLS handshake, may take this long. Chosen: a lost SYN is repeated after 1, 3 and 7
 * s, so three losses are survived.
 */
export const webhookConnectTimeoutMs = 10_000
/**
 * Writing a delivery, and receiving its complete response, may take this long: frameworks such as aiogram hold a request
 * for up to 55 s and rely on 60 s.
 */
export const webhookResponseTimeoutMs = 60_000
/**
 * An idle connection to a webhook is kept this long: more than the 60 s of most servers, so that the other side closes it
 * first.
 */
export const webhookKeepAliveMs = 75_000
/**
 * TCP checks after this silence whether an endpoint is still there, so that a machine that has vanished does not hold a
 * connection until the response times out. Chosen: as long as a response may take.
 */
export const webhookTcpKeepAliveMs = 60_000
/**
 * This many bytes of a response's body are read before the connection is closed instead: the body is not used, and a
 * short one keeps the connection usable.
 */
export const webhookResponseBytesMax = 64 * kib
/**
 * Each piece of that body counts as at least this many bytes: a body in chunks of one byte would take 10 ms of a worker
 * per response.
 */
export const webhookResponsePieceBytesMin = 64
/**
 * A response, including its framing, may have this many bytes: a chunk extension, or the zeros before a chunk's size, may
 * go on forever, and took half a worker for as long as a response may take. This is twice what a reply and 60 interim
 * responses may have.
 */
export const webhookResponseRawBytesMax = 4 * mib
/**
 * A delivery accepts this many interim responses (1xx), one per second of its timeout. An endless series of them took
 * half a worker.
 */
export const webhookInterimResponsesMax = 60
/** A proxy's response to CONNECT may have this many bytes, far more than the status line and few headers of a usual one. */
export const webhookProxyResponseBytesMax = 16 * kib
/** A Retry-After of a webhook counts up to this many seconds. [ref] */
export const webhookRetryAfterSMax = 3_600
/** The delay between attempts never exceeds a cap that is drawn at random each time, from this value. [ref] */
export const webhookRetryCapMsMin = 60_000
/** The cap is drawn up to this value: the random range spreads the retries of many keys. [ref] */
export const webhookRetryCapMsMax = 120_000
/**
 * A dispatcher holds this many updates of one bot, or twice max_connections if that is more, so that every connection has
 * its next update ready.
 */
export const webhookWindowUpdatesMax = 1_000
/**
 * These updates may have this many bytes: the first updates of eight keys at the largest size. If fewer keys hold updates
 * than there may be connections, each key still gets its first one.
 */
export const webhookLoadedBytesMax = 4 * mib
/**
 * This many ordering keys of one bot are known at a time, nearly all of them waiting for a retry. There are never more
 * than pending updates, 100,000 by default. A key takes 224 bytes, so 100,000 failing keys take 22 MB. With a lower
 * bound, new keys would wait for the failing ones.
 */
export const webhookLanesMax = 1_000_000
/** One read from the queue returns this many updates: more would block the event loop, fewer would cost more calls. */
export const webhookReadUpdatesMax = 200
/**
 * One read from disk returns at most this many bytes, because updates that do not fit beside the loaded ones are read
 * again.
 */
export const webhookPageBytes = 1 * mib
/** This many pages are read in one turn of the event loop if the queue has them in memory; then other work runs. */
export const webhookPagesPerTurn = 8
/**
 * The dispatcher pauses this long after a page without a usable update, which took about 1 ms: 100,000 updates of one key
 * are passed in 2 s.
 */
export const webhookFruitlessReadPauseMs = 3
/**
 * A queue whose shard cannot be read is read again after this time, as often as a poisoned shard tests its disk
 * (`shardProbePeriodMs`).
 */
export const webhookReadRetryMs = 1_000
/**
 * A queue of waiting keys has at most this many empty places at its head, or as many as it has items, before it is
 * copied. Chosen: so copying takes constant time per item, and a short queue is never copied.
 */
export const fifoSlackMax = 512
/** The text of an error is cut to this many characters, because the endpoint decides what it says. */
export const webhookErrorLengthMax = 256

// TLS to webhooks: what a hostile endpoint sends is computed on the event loop
/**
 * The certificates of a handshake may have this many bytes. Reading them takes about 1 ms per KiB; a usual chain has 3 to
 * 6 KiB. OpenSSL's own bound is 100 KiB.
 */
export const webhookCertificatesBytesMax = 24 * kib
/**
 * A handshake may have this many certificates; a usual chain has 2 to 4. Verifying one with a P-521 key, the most
 * expensive that is accepted, takes 3 to 6 ms.
 */
export const webhookCertificatesMax = 8
/**
 * An RSA key may have this many bits: verifying a signature of this key with the longest exponent that is accepted takes
 * 2 ms. Authorities use 4,096 bits.
 */
export const webhookCertificateRsaBitsMax = 8_192
/**
 * A connection may receive this many tickets for resumption. Servers send about two; each costs 50 us or more here, and a
 * few bytes to send.
 */
export const webhookTlsSessionsMax = 16
/**
 * A larger session is not kept, because up to `webhookAddressesMax` of them stay with each webhook. A ticket contains
 * certificates at the most.
 */
export const webhookTlsSessionBytesMax = 16 * kib

// Replies in answers of webhooks (`--upstream`)
/** A webhook's response that may name a method is read up to this size: as many parameters as a call may have. */
export const webhookReplyBytesMax = parameterBytesMax
/**
 * The replies in a worker, being read or waiting for the upstream server, may have this many bytes; further ones are
 * dropped.
 */
export const webhookRepliesBytesMax = 64 * mib
/** A worker holds this many replies: at 16 connections and 50 ms per call they take three seconds. */
export const webhookRepliesMax = 1_000
/** One bot may have this many of these replies, a tenth, so that its flood does not displace those of others. */
export const webhookRepliesPerBotMax = 100
/**
 * Replies use this many connections to the upstream server. Chosen: at 50 ms per call that is 320 replies a second per
 * worker; more would load the upstream server more.
 */
export const webhookReplyConnectionsMax = 16
/** One bot may use this many of these connections, a quarter, so that its slow calls leave connections for others. */
export const webhookReplyConnectionsPerBotMax = 4
/** A reply must be done this long after the webhook's response, including its wait; a later reply confuses users. */
export const webhookReplyTimeoutMs = 60_000

// The upstream server (`--upstream`)
/** A worker passes on this many calls to the upstream server at a time; further ones wait. */
export const upstreamConnectionsMax = 256
/**
 * One bot may have this many of these calls, an eighth, so that its hanging calls leave room for others: enough for
 * hundreds of calls a second.
 */
export const upstreamCallsPerBotMax = 32
/** A connection to the upstream server may take this long, as one to a webhook (`webhookConnectTimeoutMs`). */
export const upstreamConnectTimeoutMs = 10_000
/** With an upstream server, a call may take this long to arrive: 50 MB, the most that an upload may have, at 85 KB/s. */
export const uploadTimeoutMs = 600_000
/**
 * The upstream server may take this long between the last byte of a call and its response, because it processes files in
 * that time, and as long within the response.
 */
export const upstreamResponseTimeoutMs = 300_000

// Signed deliveries
/**
 * This many keys of a bot sign at a time: one of each type, and those that they replace. Each key makes the request
 * longer.
 */
export const signingKeysMax = 4
/**
 * An old signing key may sign this long beside a new one, as with tokens (`tokenOverlapSMax`): a week is enough to bring
 * a new key to every receiver.
 */
export const signingKeyOverlapSMax = 7 * 86_400

// Attempts and health of a webhook
/** This many attempts of a webhook are kept for its operator; they take 4 KB with their texts. */
export const webhookAttemptsKept = 50
/** The attempts of this many webhooks are kept per worker: 40 MB if all of them are busy and failing. */
export const webhookAttemptLogsMax = 10_000
/** A failure that is longer ago says nothing about the health of a webhook now, unless nothing has succeeded since. */
export const webhookHealthRecentMs = 15 * 60_000
/**
 * This many failures without a success in between are no accident. Chosen: fewer may be a restart of the endpoint; more
 * would report a failing webhook later.
 */
export const webhookFailingMin = 3

// The flood gates [ref]
/** A webhook with a success within this time may open connections fast; otherwise slowly. [ref] */
export const webhookRecentSuccessMs = 10_000
/** A webhook that works may open this many connections per `webhookFastOpeningsMs`. [ref] */
export const webhookFastOpeningsMax = 10
/** The period of `webhookFastOpeningsMax`. [ref] */
export const webhookFastOpeningsMs = 500
/** A webhook that does not work may open one connection in this time. [ref] */
export const webhookSlowOpeningMs = 2_000
/**
 * A webhook that does not work may have this many connections, each for another ordering key, so that one hanging key
 * does not hold up the rest. The reference allows one.
 */
export const webhookSlowConnectionsMax = 4
/**
 * This many attempts of one webhook may fail in a row before its attempts are slowed down: every key fails twice before
 * it waits, so this is a hundred keys.
 */
export const webhookFailuresInARowMax = 200
/**
 * After that, this many failing attempts are made per second. An attempt takes about 0.1 ms, so this is 1 % of a worker;
 * an endpoint that answers 500 immediately would otherwise get 7,000 per second. At this pace 9,000 failing keys are
 * retried every 90 s.
 */
export const webhookFailuresPerSecond = 100
/**
 * A webhook that the server-wide gate turned away waits this long before it asks again. Chosen: as long as a period of
 * the flood gate (`webhookFastOpeningsMs`).
 */
export const webhookServerGateRetryMs = 500
/** A connection younger than this does not give way to another webhook, so that opening it was worth the cost. */
export const webhookTurnMs = 1_000
/** A webhook that gave up a connection leaves the place to others for this long: two of their attempts. */
export const webhookYieldMs = 2 * webhookServerGateRetryMs
/** A worker begins this many connections to webhooks in one turn of the event loop: some 5 ms with the work that follows. */
export const webhookOpeningsPerTurn = 8
/**
 * The thread that checks addresses ends after this idle time. Chosen: setWebhook calls and look-ups come in groups; a
 * thread takes 5 to 10 MB.
 */
export const addressPoolIdleMs = 30_000

// The client for producers (postbote/client)
/**
 * A longer Retry-After is reported to the caller instead of waited for. Chosen: a caller expects its call to end within a
 * minute or so.
 */
export const clientRetryAfterSMax = 60
/**
 * A client may have this many single calls under way, as many as a stream has pairs by default; a stream takes more at
 * less cost.
 */
export const clientCallsMax = 16_384
/** The response to a single call may have this many bytes, far more than a result or an error takes. */
export const clientResponseBytesMax = 1 * mib
/** A line of the response to a stream may have this many characters: a result has 50, an error a few hundred. */
export const clientResultLengthMax = 64 * kib
/** Pairs are passed to the connection in pieces of about this size, which is what a worker reads at a time. */
export const clientPieceLength = 64 * kib
/**
 * Past this many times the bounds of `ready`, a push is refused instead of kept: this is for callers that never await
 * `ready`.
 */
export const clientHardBoundFactor = 2
