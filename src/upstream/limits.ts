/** The fixed bounds of the upstream server (`--upstream`), each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { mib } from '../limits.ts'

// Replies in answers of webhooks (`--upstream`)
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
/**
 * The upstream server may take this long between the last byte of a call and its response, because it processes files in
 * that time, and as long within the response.
 */
export const upstreamResponseTimeoutMs = 300_000
