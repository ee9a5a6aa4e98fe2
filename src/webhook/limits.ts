/** The fixed bounds of webhooks, each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { kib, mib, parameterBytesMax } from '../limits.ts'

// Bot API requests (protocol.md §3)
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

// Webhooks (protocol.md §6, 8)
/**
 * A webhook url may have this many characters. Chosen: usual urls are far shorter; the url is in memory and on disk for
 * every webhook.
 */
export const webhookUrlLengthMax = 2_048
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
 * its next updates ready: 25 with 40 connections. A single ordering key gets 275, which is more than a page
 * (`webhookReadUpdatesMax`); with 25 each page was read eight times, and a delivery took 2.5 times the CPU.
 */
export const webhookWindowUpdatesMax = 2_000
/**
 * These updates may have this many bytes: the first updates of eight keys at the largest size. If fewer keys hold updates
 * than there may be connections, each key still gets its first one.
 */
export const webhookLoadedBytesMax = 4 * mib
/**
 * These updates may have this many bytes while the webhooks of the worker hold as much as they may together. Chosen: a page of
 * usual updates still fits, so only large ones are read again more often.
 */
export const webhookTightBytesMax = 256 * kib
/**
 * This many ordering keys of one bot are known at a time, nearly all of them waiting for a retry. There are never more
 * than pending updates, 100,000 by default. A key takes 224 bytes, so 100,000 failing keys take 22 MB. With a lower
 * bound, new keys would wait for the failing ones.
 */
export const webhookLanesMax = 1_000_000
/** One read from the queue returns this many updates: more would block the event loop, fewer would cost more calls. */
export const webhookReadUpdatesMax = 200
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

// Signed deliveries
/**
 * This many keys of a bot sign at a time: one of each type, and those that they replace. Each key makes the request
 * longer.
 */
export const signingKeysMax = 4

// Attempts and health of a webhook
/**
 * The attempts of this many webhooks are kept per worker: 66 MB if all of them are busy and failing, of which 26 MB are
 * for their last hour (`deliveryHistoryMinutes`).
 */
export const webhookAttemptLogsMax = 10_000
/** The outcomes and response times of this many minutes are kept: 2,640 bytes for each webhook with deliveries. */
export const deliveryHistoryMinutes = 60
/** A failure that is longer ago says nothing about the health of a webhook now, unless nothing has succeeded since. */
export const webhookHealthRecentMs = 15 * 60_000
/**
 * This many failures without a success in between are no accident. Chosen: fewer may be a restart of the endpoint; more
 * would report a failing webhook later.
 */
export const webhookFailingMin = 3
/**
 * An endpoint that has taken nothing while a delivery has waited this long for its response does not respond. Chosen: few
 * endpoints need so long, and an operator sees it 50 s before the attempt fails.
 */
export const webhookSilentMs = 10_000
/** Nobody polls a queue if the last call was longer ago. Chosen: bots poll again within seconds, and a poll waits up to 50 s. */
export const unpolledAfterMs = 60_000

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

// The operator's limit (rate-gate.ts) and the pace of an endpoint (endpoint-pace.ts)
/**
 * A webhook whose rate is limited may save up the deliveries of this time, because timers fire some milliseconds late.
 * They are taken from the rate: it is 1 % lower.
 */
export const webhookRateBurstMs = 10
/**
 * The attempts of this time are judged together. Chosen: a shorter time makes false falls more frequent; with a longer one
 * the good keys among thousands of failing ones get their updates later than they could.
 */
export const webhookPaceStepMs = 500
/**
 * The first pace that is limited, and the lowest one while something is taken. Chosen: nearly any endpoint can take it, and
 * 200 updates that are taken among thousands that fail come within 3 s.
 */
export const webhookCarefulPerSecond = 20
/**
 * The pace of an endpoint that takes nothing, but answers for itself, falls no lower. Chosen: a good key is found in 0.2 s,
 * and 10 attempts cost 15 to 20 ms of a worker, so an outage that is answered with 500 costs 2 % of it. With half as many, a
 * good key among 4,000 that fail is not found in time.
 */
export const webhookPaceRejectedPerSecond = 10
/**
 * The pace of an endpoint whose failures all say that it is sick falls no lower. Chosen: the end of an outage is noticed
 * within a second, and an endpoint that is overloaded by what it refuses, too, recovers.
 */
export const webhookPaceSickPerSecond = 1
/**
 * From half of the pace at which the endpoint fell over, this many steps, 40 s, lead to it again. Chosen: fewer mean more
 * falls, more mean less use of what the endpoint can take.
 */
export const webhookPaceClimbSteps = 80
/** The pace opens when it has held back nothing for this long. Chosen: a key that fails has four attempts in this time. */
export const webhookPaceCalmMs = 10_000
/** The pace opens above this, which is more than one webhook can get from a worker. */
export const webhookPaceMaxPerSecond = 10_000
