/**
 * Every fixed bound of the server, with its reason. Bounds an operator may change are options (config.ts).
 * A number marked [ref] is the reference server's.
 */

const kib = 1024
const mib = 1024 * kib

// Bot API requests (protocol.md §3)
export const parameterBytesMax = 1 * mib
export const certificateRequestBytesMax = 4 * mib
export const certificateBytesMax = 3 * mib
/** Certificates in one upload: a chain has three or four. */
export const certificatesMax = 16
/**
 * Of one of them, as PEM, and of all: one with a hundred names has 10 KiB. To parse one that is made to be slow (400 parts of
 * a name) takes 1 ms; the time grows with the square of its size, 62 KiB take 4 ms and 171 KiB 132 ms.
 */
export const certificateBlockBytesMax = 16 * kib
export const certificateBlocksBytesMax = 64 * kib
/** Parameters of one call, in its query or its body, and parts of multipart: no method has more than ten. */
export const parametersMax = 1_000
/** Values in a JSON body, nested ones too: JSON.parse takes up to 2 us for one, which is an object with a new key. */
export const jsonValuesMax = 4_000
/** Levels of a JSON body. [ref] */
export const jsonNestingMax = 100
/** Of a part of multipart: clients send one to three lines with a name and a file name. */
export const partHeadBytesMax = 16 * kib
export const partHeaderLinesMax = 16
export const partHeaderParametersMax = 16
/**
 * What a compressed body of parameters may unpack to, by its own size. JSON and forms are compressed 3 to 20 times;
 * the 1,000 times that gzip can do make an attack cheap.
 */
export const bodyGrowthMax = 100
/** So much any body may unpack to: a short text of one character is compressed even more. */
export const bodyGrowthFreeBytes = 64 * kib
/** Of the text of allowed_updates: all 22 names are 400 characters. A longer one is as one that is not JSON. */
export const allowedUpdatesLengthMax = 16 * kib
export const headerBytesMax = 64 * kib
export const tokenLengthMax = 80
/**
 * How much of a refused body is still read, so that a client that sends all of it before it looks at the answer gets
 * the answer and keeps its connection.
 */
export const refusedBodyBytesMax = 8 * mib
/** What each piece of it counts for at least: 8 MiB in pieces of one byte would take a worker over ten seconds otherwise. */
export const refusedPieceBytesMin = 64
/** Pieces that are read of a body nobody wants: 50 MB come in 1,000. In pieces of one byte each costs a worker 2 us. */
export const unwantedPiecesMax = 131_072
/** Pieces of a body after which their sender is charged for them; a body of 4 MiB usually has 64. */
export const bodyPiecesChargedAtOnce = 1_024
/** What Node's parser takes for a piece of one byte: 2.4 to 3.9 s for 900,000. */
export const bodyPieceCostMs = 0.003
/** RFC 2046 allows 70; searching for a far longer one could be made slow. */
export const boundaryLengthMax = 256

/** Of a call of the private API that is no push: names, settings and ids. */
export const privateBodyBytesMax = 64 * kib

// Bodies that arrive in pieces
/** First size of the memory that such a body is gathered in; it doubles. */
export const growingBodyBytesMin = 4 * kib
/** A body that holds no more is not counted: its connection costs as much. Most bodies are smaller. */
export const uncountedBodyBytes = 4 * kib
/**
 * Memory of all bodies that a worker holds and cannot use yet, of each of its listeners: 16 of the largest, 64 of the
 * longest parameters. Whoever asks for more gets 503.
 */
export const heldBodiesBytesMax = 64 * mib
/** One client address's share of it (an IPv6 /64 is one), so that three addresses leave room for others. */
export const heldBodiesShareBytesMax = 16 * mib
/**
 * The share of an address that many clients may stand behind: a Unix socket, or a private or loopback address, without
 * an X-Real-Ip. That is how a reverse proxy looks that does not say whom it speaks for, and all its clients share this;
 * the rest remains for addresses that are known. A body that another worker forwards is not counted at all by the owner
 * of its bot: the worker that read it from its client has counted it, until the answer is there. Producers have the admin
 * key and share the whole budget of the private listener.
 */
export const heldBodiesCrowdShareBytesMax = 48 * mib
/** Whoever finds no room is asked to come back then. A body of 4 MiB takes less to arrive at 10 Mbit/s. */
export const bodyRetryAfterS = 5

// Bot ids (protocol.md §2): exact in a JavaScript number
export const botIdMin = 100
export const botIdMax = 2 ** 52 - 1
/** Random ids are drawn from botIdMin to 9,999,999,999: at most ten digits. */
export const randomBotIdsCount = 9_999_999_900
/** Draws until one is free and this owner's: enough for 256 workers behind a filter; 2 us each. */
export const randomBotIdTriesMax = 10_000

// Update ids (protocol.md §4): clients hold them in 32 bits [ref]
export const updateIdFirstMin = 2_000_001
export const updateIdFirstMax = 2 ** 27 - 1
export const updateIdRenumber = 2_147_000_000
export const updateIdMax = 2 ** 31 - 2
/** An offset further below the oldest update than this means "from the oldest". [ref] */
export const offsetBehindMax = 100_000

// getUpdates (protocol.md §5) [ref]
export const pollLimitMax = 100
export const pollTimeoutSMax = 50
export const answerBytesMax = 1 << 22
/** What the envelope `,{"update_id":2147483646,...}` of one update is counted as. [ref] */
export const updateEnvelopeBytes = 50
/** A call that repeats an offset so soon has handled nothing since: it waits at least this long, [ref] */
export const pollRepeatedWithinMs = 3_000
export const pollRepeatedTimeoutMs = 3_000
/** and so soon gets a single update. [ref] */
export const pollHastyWithinMs = 500
/** A waiting poll is answered so long after the last push, for others to join it, */
export const pollPauseAfterLastMs = 1
/** and so long after the first at most. */
export const pollPauseAfterFirstMs = 2
export const delayedRefusalsPerBotMax = 8
export const delayedRefusalsPerWorkerMax = 1_000
export const refusalDelayMs = 3_000

// Updates (protocol.md §4)
export const updateNestingMax = 64
export const orderingKeyBytesMax = 256
/** Memory for loaded updates is taken in chunks, small ones first, so that a bot with one short update costs little. */
export const windowChunkBytesMin = 1 * kib
export const windowChunkBytesMax = 64 * kib
/** A chunk up to this size is kept for the next update when the window runs empty, as most do all the time. */
export const windowChunkBytesKept = 2 * kib
/** Removed entries in the middle of a window are put up with up to this many, or as many as are alive. */
export const windowHolesMax = 256
/** More than this of one queue is not kept just because it was pushed; it is read when it is wanted. */
export const queueWindowBytesMax = 8 * mib
/** Longer than any poll waits: what is pushed in between is still given from memory. */
export const queueUnreadAfterMs = 60_000
/** One read of a queue that is too deep for memory: five answers of getUpdates. */
export const queuePageUpdates = 500
/** Of large updates: two answers. */
export const queuePageBytes = 8 * mib
/** Ids alone: 40 bytes each in memory. */
export const queuePageIds = 5_000
export const ttlSMax = 365 * 86_400
/** An update leaves memory and disk at most so long after its expiry; it is never sent after it. */
export const expirySweepPeriodMs = 60_000
/** The sweep then gives other work its turn. */
export const expirySweepSliceMs = 10
export const expiryBucketsPerReadMax = 500
/** Queues a sweep remembers having seen to; more than these it may read twice. */
export const expirySweptQueuesMax = 10_000
export const pairHeaderBytesMax = 4 * kib
/** Long enough for two UUIDs with room to spare; keys are only kept as hashes. */
export const idempotencyKeyLengthMax = 128
/** How long a key stands for its update. */
export const idempotencyLifeMs = 86_400_000
/** Of one queue. They are not in memory; each takes some 60 bytes on disk for up to two days. */
export const idempotencyKeysPerDayMax = 1_000_000
/** Old keys are deleted so many at a time, */
export const idempotencySweepKeys = 1_000
/** with so long a pause between: a slice takes 2 to 3 ms, so that ten million take two minutes and a quarter of a worker. */
export const idempotencySweepPauseMs = 10

// Dead letters
export const deadLetterLifeMs = 7 * 86_400_000
/**
 * Kept of one queue; past either bound the oldest go. Enough to see what is wrong and to replay an afternoon of a
 * small bot; 24 KB of memory for those of which there are as many.
 */
export const deadLettersMax = 1_000
export const deadLetterBytesMax = 16 * mib
/** One read of letters from disk; their texts are in memory meanwhile. */
export const deadLettersPerRead = 200
export const deadLetterBytesPerRead = 1 * mib

// Compressed answers
/** One thread takes 0.5 to 5 ms an answer: past this many an answer would wait longer than its bytes take. */
export const compressPendingMax = 32
/** A thread costs 5 to 10 MB and some 30 ms to start: kept between the polls of a backlog, not for ever. */
export const compressIdleMs = 60_000

// Updates checked in a thread
/** Shared memory for updates on their way to the thread; most need no more. */
export const checkScratchBytesMin = 256 * kib
/** Kept to be used again: twice what all streams of a worker have under way. */
export const checkScratchBytesMax = 16 * mib
/** At 1 to 2 ms each for the largest, one waits a tenth of a second at most; more than these are checked in place. */
export const checkPendingMax = 64
/** As for compressing: such a thread is kept between the updates of a busy minute, not for ever. */
export const checkIdleMs = 60_000

// Connections
export const requestLineBytesMax = 8 * kib
export const requestLineWaitMs = 10_000
export const handOffWaitMs = 4_000
export const handOffQueueMax = 4_096
export const headersTimeoutMs = 10_000
export const keepAliveTimeoutMs = 80_000
export const requestTimeoutMs = 60_000
/** First bytes held for connections that wait for one worker; 4,096 ordinary requests are 2 MiB. */
export const handOffQueueBytesMax = 32 * mib
/**
 * Connections whose request line is awaited; each may hold 8 KiB, so this is 128 MiB at the very worst. Past it the oldest
 * is given up for the newest: a line takes one round trip, so only 16,384 new connections in one could crowd out a client.
 */
export const requestLineWaitersMax = 16_384
/** How long the bytes of a refused client are read and thrown away, so that it sees the answer and no reset. */
export const refusedLingerMs = 2_000
/** Turned away and not closed yet, by the connections that may be open; 1,024 at most. */
export const lingeringShare = 1 / 8
export const lingeringMax = 1_024
/** Of the connections that the primary may hold, those that one worker does not take: it is not to keep others out. */
export const handOffShare = 1 / 2
/** Of the connections that a process may hold, those that connections of bots leave to the private listener, */
export const privatePlacesShare = 1 / 8
/** and so many at most: far more than producers and probes keep open at a worker. */
export const privatePlacesMax = 256
/**
 * Of the connections that a process may hold, what one client address may hold before its connections give way before
 * those of others. An eighth, so that at most seven addresses are over it at a time.
 */
export const clientPlacesShare = 1 / 8
/** Of the connections that a worker may hold, those that may wait for the time of their refusal. */
export const heldRefusalsShare = 1 / 8
/**
 * Connections on the way to one worker: as many as one turn of the event loop may bring, and few enough that they fit
 * into the buffer of a socket (212,992 bytes; a small packet counts for about 1 KiB there).
 */
export const handOffsInFlightMax = 64
/** The request line and the last piece that was read of it (64 KiB), with the client's address. */
export const connectionPacketBytesMax = requestLineBytesMax + 72 * kib
/** A worker without a free descriptor cannot take a connection: the next try comes after this. */
export const handOffRetryMs = 50
export const listenBacklog = 4_096
/**
 * Requests of one connection to the bot API that are answered in one turn of the event loop, each before the answer to the
 * one before is out: some 3 ms. Nothing that bots are written with pipelines at all.
 */
export const pipelinedPerTurnMax = 128
/** Of a process's descriptors; the rest is for the store, webhooks and other workers. */
export const connectionDescriptorsShare = 0.75
/** What a worker with four shards has open by itself, and a few files more. */
export const otherDescriptorsMin = 64
/** Where there are hardly any descriptors. */
export const connectionsMin = 16
/** What may happen thousands of times a second is logged once in this time, with its number. */
export const rareWarningPeriodMs = 10_000
/** The kernel's field for a Unix socket path holds 108 bytes with the closing zero. */
export const listenPathBytesMax = 107
/** Node looks for late headers and requests only this often (its default of 30 s would turn 10 s into 40 s). */
export const connectionsCheckMs = 1_000

// Bots in memory
/** Longer than any request may take to arrive, so that none is left with a queue that was dropped. */
export const botIdleMs = 2 * requestTimeoutMs
/** Idle bots are looked for so often, */
export const botSweepPeriodMs = 15_000
/** among so many at a time, */
export const botSweepCountMax = 20_000
/** so many in one turn of the event loop: dropping 20,000 in one took 120 ms. */
export const botSweepSliceMax = 500
/** Webhooks that a start brings to life in one turn: each reads, and looks a name up. */
export const webhooksStartedMax = 20
/** Bots read from disk by one call: three records each are in memory at once. */
export const botLoadCountMax = 500

// The event loop
/** A hold may be so much longer than it is shown. An idle worker spends 0.2 % of a core on it, with 10 ms 0.3 %. */
export const loopDelayResolutionMs = 20
/** Values are taken so often, */
export const loopDelayPeriodMs = 10_000
/** and the worst of so many is shown: a minute of them. */
export const loopDelayPeriodsShown = 6

// Budgets of event-loop time (loop-budget.ts)
/** What a bot or a client address may use up of a worker's time, besides usual calls, */
export const loopBudgetShare = 1 / 10
/** and so much at once: five bodies of the most expensive kind. */
export const loopBudgetBurstMs = 100
/** Whatever was done, it has been paid for after ten seconds. */
export const loopDebtMsMax = loopBudgetBurstMs + 10_000 * loopBudgetShare
/** Debtors that are known; 2 MB. */
export const loopDebtorsMax = 10_000
/** What a call with a valid token may cost without being charged. A usual one takes 0.1 ms, one of 4 MB of updates 2 ms. */
export const loopCostFreeMs = 2
/** Parsing a body of this size costs less than that, so a call with one never waits for its client address. */
export const loopFreeBodyBytes = 16 * kib
/** CPU time is read so often at most; a reading takes 1 us. */
export const loopCpuReadingMs = 1
/** What a refusal of the private listener is charged: its work is spread over several turns, so it is not measured. */
export const privateRefusalCostMs = 0.1
/** Requests that wait for one debtor to have paid, */
export const budgetWaitersPerDebtorMax = 16
/** those of a worker, */
export const budgetWaitersMax = 1_000
/** those among them that hold their body in memory, a mebibyte as a rule, */
export const budgetBodiesMax = 32
/** how far apart they are let go, since what one costs is known a moment later, */
export const budgetSpacingMs = 20
/** and how long one waits before it is refused instead. */
export const budgetWaitMsMax = 10_000

// Life of the process (protocol.md §10)
export const drainMs = 10_000
/**
 * A reload: so long requests that have begun may take before the shards change hands, served as ever;
 * no body takes longer to arrive.
 */
export const settleRequestsMs = requestTimeoutMs
/** And deliveries that have been sent off, while no new ones are. */
export const settleDeliveriesMs = 10_000
/** Both, and the requests once more. */
export const settleMs = settleRequestsMs + 3 * settleDeliveriesMs
/** What is still under way as the shards are closed: with their opening less than the 4 s that new requests wait. */
export const leaveRequestsMs = 2_000
export const leaveDeliveriesMs = 1_000
/** How often a worker that leaves looks whether anything is under way. */
export const leaveLookMs = 5
/** A worker that has not closed its shards after this hangs, and is killed. */
export const leaveMs = 5_000
/** A connection may still lie in the backlog of the worker that was replaced. */
export const retireGraceMs = 1_000
/** So long a replaced worker goes on with its connections: longer than an idle one is kept. */
export const retireMs = 90_000
/** And then with the polls that wait on them. */
export const retireAnswersMs = 55_000
/** Replaced workers of one place that have not ended yet; with two more beside them they have four metric slots. */
export const retiringWorkersMax = 2
/** Commands are single words; whoever sends more is no command line of ours. */
export const commandBytesMax = 64
/** The primary answers at once, unless it hangs. */
export const commandAnswerMs = 5_000
/** A signal that comes again so soon is the same key press: npm sends on what the terminal sent to all already. */
export const signalEchoMs = 50

// setWebhook (protocol.md §6)
/** One setWebhook with a url per bot in this time. */
export const setWebhookPeriodMs = 1_000
/** A handshake or delivery this young spares a repeated setWebhook its verification. */
export const webhookTrustMs = 60_000

// The private API (protocol.md §9)
export const listedPerPageMax = 1_000
/** A week: long enough to roll a new token out, short enough that a leaked one ends. */
export const tokenOverlapSMax = 7 * 86_400
/** Braces and white space around an update's stored text. */
export const updateSlackBytes = 1024
/** Pairs of one NDJSON stream whose results are not written yet; past it nothing more is read. */
export const streamPairsMax = 8_192
/** Bytes of those pairs. */
export const streamBytesMax = 8 * mib
/** First size of the buffer for the beginning of a line; it doubles up to the longest line. */
export const streamCarryBytesMin = 1 * kib
/** An owner may end its answer before the first one when it is being replaced, but not for ever. */
export const emptyAnswersMax = 3
/** A stream with nothing to read for so long is ended between pairs, one whose results are not read is cut. */
export const streamIdleMs = 600_000
/**
 * A connection on which nothing moves for so long is cut, be it that its client does not read its answer: 4 MB would be
 * held for it otherwise. Longer than what an answer may be waited for.
 */
export const silentBotConnectionMs = 330_000
export const silentPrivateConnectionMs = streamIdleMs + 60_000
/** Pairs of all streams of a worker that wait for their results, by weight: about 10,000 of 300 B. */
export const streamsWeightMax = 8 * mib
/** What a pair weighs beside its bytes: the objects that stand for it until it is answered. */
export const pairWeight = 512
/** What one turn of the event loop takes from all streams together: 600 pairs of 300 B, 5 ms. */
export const streamsTurnWeight = 512 * kib
/** What it takes from one stream at a time, so that others come in between. */
export const streamSlicePairs = 256
/** The beginning of a pair over this size takes one of the places for long lines. */
export const streamCarryBytesFree = 128 * kib
/** Bytes of pairs whose end has not come, in all streams of a worker; a place is worth the longest pair. */
export const longLinesBytesMax = 64 * mib
/** A stream that holds such a place and sends nothing for so long is ended. */
export const longLineIdleMs = 60_000

// Shared memory: sizes of fixed tables in the mapped file
export const workersMax = 256
export const shardsMax = 256
/** Metric slots of a worker, which its successive processes have in turn. */
export const slotsPerWorker = 4
/** Room for metrics that later versions append; their places are fixed by then. */
export const metricsMax = 128

// The creation flood gate and the pacing of refusals, per client address (protocol.md §2) [ref]
export const clientAddressesMax = 131_072
export const creationsPerMinuteMax = 20
export const creationsPerHourMax = 600
/** When as many addresses as places have come, 8 % of them have been replaced too early; 12 % at 8, 6 % at 32. */
export const clientTableProbeWindow = 16
/** Tries to take a place, or to count in it, that other processes change at the same moment. */
export const clientTableClaimAttemptsMax = 4
export const clientTableCountAttemptsMax = 16

// Shards
/** 65,536 numbers in a Map are 3 MiB. */
export const shardSlotsRememberedMax = 65_536

// Forwarding to the owner
export const peerConnectRetryMs = 50
/** Between a request that was lost with its owner and its repetition. */
export const peerRepeatDelayMs = 100
export const peerConnectWaitMs = 4_000
/**
 * How often a pair of a stream is sent again whose owner was lost: once to the successor, and once more because the
 * killed process may still have taken the first. What has ended two processes must not end all. Never where the owner hung.
 */
export const pairRepeatsMax = 2
/**
 * How often, for peerConnectWaitMs each, an open stream waits for an owner that cannot be reached: 20 s in all, below
 * the 30 s after which postbote/client takes a silent stream for dead. A worker of a busy machine starts in ten.
 */
export const ownerWaitsMax = 5
/** Well below keepAliveTimeoutMs, so that an idle connection is never closed by the owner as it is used. */
export const peerFreeSocketTimeoutMs = 20_000
export const peerFreeSocketsMax = 256
/** One buffer a worker, for what other workers answer: a read of the system gives no more at a time. */
export const peerReadBytes = 64 * kib
/** Shorter messages go out in one piece with their head: copying them costs less than a second write. */
export const shortAnswerBytesMax = 16 * kib - 1
/** Forwarded bodies are held to be sent again; the largest is a setWebhook with its certificate. */
export const forwardedBodyBytesMax = certificateRequestBytesMax + 64 * kib
/**
 * So many calls of one connection wait for earlier ones before nothing more is read from it; those that were read with
 * them come on top, 64 KiB at a time.
 */
export const pipelinedWaitingMax = 64
/** A request may meet a shard that moves; more hops than this are a loop. */
export const forwardHopsMax = 3
/** sun_path holds 108 bytes on Linux and 104 elsewhere. */
export const socketPathBytesMax = 100
/** The longest name a socket in the run directory may have. */
export const socketNameBytesMax = 24

// Control and supervision
export const controlCallMs = 5_000
/** Opening shards may have to recover logs; past this a worker is taken for stuck. */
export const workerStartMs = 120_000
export const workerRestartDelaysMs: readonly number[] = [0, 250, 500, 1_000]
/** A worker that lived this long is restarted at once again. */
export const workerSettledMs = 10_000
/** A worker is asked so often whether it still answers. */
export const workerAskPeriodMs = 5_000
/** One that does not for so long hangs: no collection of garbage and no busy machine takes it, */
export const workerHangMs = 30_000
/** unless this process stood still as well; then the answer to another question comes at once. */
export const workerHangSurelyMs = 5_000
/** What closing may take on top of draining, before a worker is killed. */
export const closeMarginMs = 3_000
/** After 'exit' a worker's channel is at its end unless a grandchild holds it open; this is for that case. */
export const workerChannelEndMs = 1_000

// Store
/** A native batch that grew past this is given up after its write: every shard keeps one. */
export const levelBatchBytesKeptMax = 4 * mib
/** Read ahead by one visit to the thread pool; turning it into buffers holds the event loop for under 1 ms. */
export const rangeReadBytesMax = 256 * kib
/** Between two tries to open a database that another process still has open. */
export const levelLockRetryMs = 50
/** How long a shard's directory may still be held by a predecessor that was killed. */
export const storeLockWaitMs = 5_000
/** How long a group may wait that nobody waits for. */
export const groupLingerMs = 20
/**
 * A group is cut at so much work: its encoding and what follows its sync hold the event loop, 10,000 updates for 40 ms.
 * As many updates a second go through with 1,000, 2,000, 4,000 and 10,000.
 */
export const groupCostMax = 2_000
/** So many bytes of an update count as one more: they are copied and summed up. A guess, not measured. */
export const groupCostBytes = 2 * kib
/** Updates taken out of a queue by one operation, and in one go: further ones follow in others. */
export const removedPerOperationMax = 1_000
/** Dead records that one write takes along; a group takes as many as it stores where that is more. */
export const reclaimedPerWriteMax = 1_000
/** So long after dead records came up they are deleted in a write of their own, if no group came by. */
export const reclaimIdleMs = 100
/** A poisoned shard tries its disk so often: pushes are refused for as long as it takes. */
export const shardProbePeriodMs = 1_000
/** Dead records are looked for and deleted in batches of this size; between them groups are written. */
export const leftoversPerWriteMax = 1_000
/** One read of a queue that is counted anew after damage; so much of it is in memory at a time. */
export const recountPageUpdates = 1_000
export const recountPageBytes = 8 * mib
/** More ids than a lost log can have held: LevelDB writes 4 MiB to one, an update takes over 40 bytes of it. */
export const recountSkippedIds = 1_000_000
/** Ids that a shard may give before it must write down again, synced, how far it has come. */
export const idsReservedAhead = 1_000_000
/** Damaged records that are remembered as named, and copied, in one life of a shard; each may be an update of 512 KiB. */
export const damagedRecordsKeptMax = 1_000
/** Bots or queues counted anew between two reads of the list. */
export const countedPerReadMax = 500
/** Bytes of a shard's files that are checked in one turn of the event loop: unpacked and decoded within some 5 ms. */
export const shardReadTurnBytes = 64 * kib
/** A repair writes so much at once; it holds a few of these in memory. */
export const rescueBatchRecords = 1_000
export const rescueBatchBytes = mib
/** Ranges of missing ids that the report of a repair lists of one queue. */
export const lostRangesMax = 5
/** Expiry minutes remembered per queue, so that a bucket is written once and not per update. */
export const expiryBucketsRememberedMax = 64

/** Of the end of LevelDB's log of events: its last compaction, which may write a few hundred lines of 120 bytes. */
export const eventLogBytesRead = 256 * kib
/** A shard over which two processes in a row have died is set aside: one death may have had another reason. */
export const deathsBeforeAside = 2
/** Deaths of a worker that are further apart than this are no row. */
export const crashMemoryMs = 600_000
/** Damaged places of one shard that /readyz and the log name; `postbote verify` names all of them. */
export const damagesNamedMax = 16
/** What the check of a shard takes of the disk in the background: at 50 MB a second of CPU, 8 % of a worker. */
export const backgroundCheckBytesPerS = 4 * mib
/** And on request: half a worker's CPU at most. */
export const requestedCheckBytesPerS = 24 * mib
/** Between two tries to open a shard late, where something else than damage kept it from being opened. */
export const lateOpeningRetryMs = 1_000
/** When a client may try a bot again whose shard is set aside: an operator has to repair it first. */
export const brokenShardRetryAfterS = 60
/** Webhooks of a shard that could not be read are started again after so long, doubled each time, */
export const webhookStartRetryMsMin = 1_000
/** up to this: each time all webhooks of the shard are read. */
export const webhookStartRetryMsMax = 300_000

// Data directory
export const adminKeyLengthMin = 16

// Options
/** Of a value that cannot be used, in the message that says so. */
export const optionShownLengthMax = 100

// Disk space
export const diskCheckPeriodMs = 1_000
/**
 * Opening a database again writes its logs as tables: two of LevelDB's write buffers. With less room than that the
 * open fails too, and a shard that could at least be read is closed.
 */
export const diskProbeBytes = 8 * mib

// Webhooks (protocol.md §6, 8)
export const webhookUrlLengthMax = 2_048
export const webhookSecretLengthMax = 256
export const webhookAddressesMax = 32
export const webhookResolvedForMs = 30 * 60_000
/** Webhooks of a worker whose addresses are kept: 5 MB with one or two addresses each, 50 MB if each had 32. */
export const webhookAddressBookMax = 20_000
/** So long a name server has for its first answer, twice as long for the next try. */
export const nameServerTimeoutMs = 1_000
export const nameServerTries = 3
/** Names asked for in one turn: their 64 datagrams fit into any socket's buffer, 600 at once lost most. */
export const lookupsPerTurnMax = 32
export const lookupTurnMs = 20
/** With the addresses of one family at hand, those of the other are waited for so long. */
export const secondFamilyWaitMs = 1_000
/** After a failed background look-up the last addresses stay in use and the next try comes this much later. */
export const webhookResolveRetryMs = 60_000
export const webhookConnectTimeoutMs = 10_000
/** For writing the request and for the complete answer. */
export const webhookAnswerTimeoutMs = 60_000
/** Above the 60 s that most servers keep an idle connection, so that the other side ends it first. */
export const webhookKeepAliveMs = 75_000
/** TCP asks so late whether an endpoint is still there that says nothing. */
export const webhookTcpKeepAliveMs = 60_000
/** What is read of an answer's body before the connection is closed instead; the body is of no use. */
export const webhookAnswerBytesMax = 64 * kib
/**
 * What each piece of it counts for at least: a body in chunks of one byte would take 10 ms of a worker for each answer
 * otherwise.
 */
export const webhookAnswerPieceBytesMin = 64
/**
 * Of an answer with all that frames it: one chunk's extension, or the zeros before its size, may go on for ever, and took
 * half a worker for as long as an answer may take. Twice what a reply in an answer and 60 interim answers may have.
 */
export const webhookAnswerRawBytesMax = 4 * mib
/** Interim answers (1xx) to one delivery: one a second. An endless row of them took half a worker. */
export const webhookInterimAnswersMax = 60
/** What a proxy's answer to CONNECT may take. */
export const webhookProxyAnswerBytesMax = 16 * kib
export const webhookRetryAfterSMax = 3_600
export const webhookRetryCapMsMin = 60_000
export const webhookRetryCapMsMax = 120_000
/** Updates of one bot a dispatcher holds loaded; at least twice max_connections where that is more. */
export const webhookWindowUpdatesMax = 1_000
/**
 * Bytes of those: the first updates of eight keys at the largest size. Where fewer keys hold updates than there may be
 * connections, each still gets its first one in.
 */
export const webhookLoadedBytesMax = 4 * mib
/**
 * Ordering keys of one bot that are known at a time, nearly all of them waiting for a retry. Never more than it has
 * updates pending, 100,000 unless the operator says otherwise: a key takes 224 bytes, so these take 22 MB where all of
 * them fail and no two have the same key. At a lower bound new keys would wait for the failing ones.
 */
export const webhookLanesMax = 1_000_000
/** One read from the queue; a longer one would hold the event loop, a shorter one cost more calls. */
export const webhookReadUpdatesMax = 200
/** Of large updates: what is read and does not fit beside what is loaded is read again. */
export const webhookPageBytes = 1 * mib
/** Such reads taken in one go where the queue has them in memory; then other work gets its turn. */
export const webhookPagesPerTurn = 8
/** After a page of which nothing could be used; it took about 1 ms. 100,000 updates of one key are passed in 2 s. */
export const webhookFruitlessReadPauseMs = 3
/** Between two tries to read a queue whose shard cannot be read. */
export const webhookReadRetryMs = 1_000
/** Empty places at the head of a line of waiting keys before it is copied together. */
export const fifoSlackMax = 512
/** Texts of errors come from the other side. */
export const webhookErrorLengthMax = 256

// TLS to webhooks: what a hostile endpoint sends is computed on the event loop
/**
 * All certificates of a handshake. To read them takes about 1 ms per KiB; a usual chain has 3 to 6 KiB. OpenSSL's own bound
 * is 100 KiB.
 */
export const webhookCertificatesBytesMax = 24 * kib
/** A usual chain has 2 to 4. To verify one with a key on P-521, the dearest that is accepted, takes 3 to 6 ms. */
export const webhookCertificatesMax = 8
/** A signature takes 2 ms with such a key and the longest exponent that is accepted. Authorities have 4,096 bits. */
export const webhookCertificateRsaBitsMax = 8_192
/** Tickets for resumption on one connection. Servers send two or so; each costs 50 us and more, and a few bytes to send. */
export const webhookTlsSessionsMax = 16
/** A larger session is not kept: up to 32 of them stay with each webhook. A ticket holds certificates at the most. */
export const webhookTlsSessionBytesMax = 16 * kib

// Replies in answers of webhooks (`--upstream`)
/** What is read of an answer that may name a method: as much as a call may have (protocol.md §3). */
export const webhookReplyBytesMax = parameterBytesMax
/** Bytes of such answers in a worker, being read or waiting for the upstream server; with more they are lost. */
export const webhookRepliesBytesMax = 64 * mib
/** And their number: at 16 connections and 50 ms a call, three seconds' worth. */
export const webhookRepliesMax = 1_000
/** One bot's share, so that its flood of replies costs others none. */
export const webhookRepliesPerBotMax = 100
export const webhookReplyConnectionsMax = 16
/** One bot's share of them. */
export const webhookReplyConnectionsPerBotMax = 4
/** From the webhook's answer to the upstream's, all waiting included; a reply that comes later confuses people. */
export const webhookReplyTimeoutMs = 60_000

// The upstream server (`--upstream`)
/** Calls that a worker passes on at a time; further ones wait. */
export const upstreamConnectionsMax = 256
/** One bot's share of them, so that hanging calls of it leave room for others: enough for hundreds of calls a second. */
export const upstreamCallsPerBotMax = 32
export const upstreamConnectTimeoutMs = 10_000
/** How long a call may take to arrive as a whole: 50 MB, the most an upload may have, at 85 KB/s. */
export const uploadTimeoutMs = 600_000
/** Between the last byte of a call and the answer (files are processed meanwhile), and within the answer. */
export const upstreamAnswerTimeoutMs = 300_000

// Signed deliveries
/** Keys of one bot that sign at a time: a key of each type, and what they replace. Each makes the request longer. */
export const signingKeysMax = 4
/** As for tokens: a week is enough to bring a new key to every receiver. */
export const signingKeyOverlapSMax = 7 * 86_400

// Attempts and health of a webhook
/** Attempts kept of a webhook, for its operator; 4 KB with their texts. */
export const webhookAttemptsKept = 50
/** Webhooks of a worker whose attempts are kept: 40 MB, if all of them were busy and failing. */
export const webhookAttemptLogsMax = 10_000
/** A failure that is longer ago says nothing about how a webhook is now, unless nothing has succeeded since. */
export const webhookHealthRecentMs = 15 * 60_000
/** So many failures without a success between them are no accident any more. */
export const webhookFailingMin = 3

// The flood gates [ref]
export const webhookRecentSuccessMs = 10_000
export const webhookFastOpeningsMax = 10
export const webhookFastOpeningsMs = 500
export const webhookSlowOpeningMs = 2_000
export const webhookSlowConnectionsMax = 4
/**
 * Failed attempts of one webhook that nothing holds up, if none succeeds between them: every key fails twice before it
 * waits, so a hundred keys.
 */
export const webhookFailuresInARowMax = 200
/**
 * Behind those. An attempt takes about 0.1 ms of a worker, so this is 1 % of it; an endpoint that answers 500 at once
 * would be asked 7,000 times a second otherwise. 9,000 failing keys have their retries every 90 s at this pace.
 */
export const webhookFailuresPerSecond = 100
/** How long a webhook waits that the server-wide gate turned away. */
export const webhookServerGateRetryMs = 500
/** A connection younger than this is not given up for another webhook: opening it should have been worth it. */
export const webhookTurnMs = 1_000
/** How long a webhook that gave one up leaves the place to others: two of their tries. */
export const webhookYieldMs = 2 * webhookServerGateRetryMs
/** Connections to webhooks that a worker begins in one turn of the event loop: some 5 ms with what follows. */
export const webhookOpeningsPerTurn = 8
/** The thread that judges addresses ends when it has had nothing to do for so long. */
export const addressPoolIdleMs = 30_000

// The client for producers (postbote/client)
/** A longer Retry-After is told to the caller instead of waited for. */
export const clientRetryAfterSMax = 60
/** Single calls of one client that wait for their answers; a stream takes more at less cost. */
export const clientCallsMax = 16_384
/** Of an answer to a single call. */
export const clientAnswerBytesMax = 1 * mib
/** Of one line of the answer to a stream: a result has 50 bytes, an error a few hundred. */
export const clientResultLengthMax = 64 * kib
/** Pairs are given to the connection in pieces of about this size. */
export const clientPieceLength = 64 * kib
/** Past so many times what `ready` waits at, a push is refused instead of kept: for who never awaits `ready`. */
export const clientHardBoundFactor = 2
