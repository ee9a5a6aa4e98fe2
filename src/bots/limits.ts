/** The fixed bounds of bots and their polls, each with its reason. src/limits.ts explains [ref] and "Chosen". */

// Bot API requests (protocol.md §3)
/** A token may have this many characters. [ref] */
export const tokenLengthMax = 80

// Bot ids (protocol.md §2): exact in a JavaScript number
/** Random ids are drawn from this many: all from botIdMin to 9,999,999,999, so that an id has at most ten digits. */
export const randomBotIdsCount = 9_999_999_900
/**
 * A registration draws at most this many ids until one is free and belongs to this worker. That is enough for 256 workers
 * with a `--filter`; a draw takes 2 us.
 */
export const randomBotIdTriesMax = 10_000

// getUpdates (protocol.md §5) [ref]
/**
 * This many delayed conflicts wait per bot; past that the oldest is sent. Each holds a connection, which its client would keep
 * open anyway. Chosen: so many connections that repeat refused calls at once cause 85 calls a second, 1 % of a worker.
 */
export const delayedRefusalsPerBotMax = 256

// Updates (protocol.md §4)
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
 * The deletion of old keys pauses this long after each slice, so that ten million keys take two minutes and a quarter of
 * a worker.
 */
export const idempotencySweepPauseMs = 10

// Bots in memory
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

// setWebhook (protocol.md §6)
/** A bot may call setWebhook with a url once in this time. [ref] */
export const setWebhookPeriodMs = 1_000
/**
 * A handshake or delivery within this time spares a repeated setWebhook its verification. Chosen: bots that restart in a
 * loop repeat the call every few seconds.
 */
export const webhookTrustMs = 60_000

/**
 * A setWebhook has updates that wait for a retry tried at once, this often at most. Chosen: short for somebody who repairs an
 * endpoint, and a bot that calls setWebhook in a loop causes no more attempts than failures that have just begun.
 */
export const setWebhookRetryPeriodMs = 10_000

/**
 * What the health of a webhook depends on is stored when it begins or ceases to fail, this often at most. Chosen: an endpoint
 * that fails and recovers all the time causes few writes.
 */
export const healthStoredPeriodMs = 10_000
/**
 * It is stored again if the stored failure is older. Chosen: a third of the time for which a failure makes a webhook
 * degraded, so that it is degraded after a restart, too.
 */
export const storedFailureAgeMsMax = 5 * 60_000

// Questions about all bots
/**
 * The fleet index of a shard is filled with this many records in one turn of the event loop. With 500, a collection of young
 * objects found so many alive that V8 enlarged their space: 20 MB more in each worker, at the same CPU time.
 */
export const fleetFilledPerReadMax = 100
/** If a shard cannot be read for its index, the next try is after this time. Until then, lists name it as missing. */
export const fleetFillRetryMs = 5_000
/** A question about all bots waits this long for shards that were just opened; the index of 25,000 bots takes about a second. */
export const fleetFillWaitMs = 3_000
/** The gauges of all bots are computed this often: more often than Prometheus usually asks, and 30,000 bots take 10 ms. */
export const fleetGaugesPeriodMs = 5_000
/** A question about all bots looks at this many of them in one turn of the event loop, which takes 1 ms. */
export const fleetRowsPerTurnMax = 2_000
/**
 * Before a question is answered, the oldest updates of this many queues are read, and the dead letters of as many
 * counted. Only queues that have changed since the last time need that. The values of further ones stay as they were.
 */
export const fleetReadsMax = 500
/**
 * The gauges read the oldest updates of only this many queues of a shard from disk each time. After a start all are unknown,
 * and each is in a block of its own: with 10,000,000 updates of 300,000 bots, 500 at a time mapped 110 MB more within 40 s.
 */
export const fleetGaugeReadsMax = 100
/** Of one queue, this many dead letters are counted. Chosen: twice what a queue keeps. */
export const fleetDeadLettersMax = 2_000
/** A bot is stuck if nothing leaves its queue for this long while its oldest update is older. */
export const stuckAfterMs = 60_000
