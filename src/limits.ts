/**
 * Every fixed bound of the server, with its reason. Bounds an operator may change are options (config.ts).
 * A number marked [ref] is the reference server's.
 */

const kib = 1024
const mib = 1024 * kib

// Bot API requests (SPEC 3)
export const parameterBytesMax = 1 * mib
export const certificateRequestBytesMax = 4 * mib
export const certificateBytesMax = 3 * mib
export const headerBytesMax = 64 * kib
export const tokenLengthMax = 80

// Bot ids (SPEC 2): exact in a JavaScript number
export const botIdMin = 100
export const botIdMax = 2 ** 52 - 1

// Update ids (SPEC 4): clients hold them in 32 bits [ref]
export const updateIdFirstMin = 2_000_001
export const updateIdFirstMax = 2 ** 27 - 1
export const updateIdRenumber = 2_147_000_000
export const updateIdMax = 2 ** 31 - 2
/** An offset further below the oldest update than this means "from the oldest". [ref] */
export const offsetBehindMax = 100_000

// getUpdates (SPEC 5) [ref]
export const pollLimitMax = 100
export const pollTimeoutSMax = 50
export const answerBytesMax = 1 << 22
/** What the envelope `,{"update_id":2147483646,...}` of one update is counted as. [ref] */
export const updateEnvelopeBytes = 50
export const delayedRefusalsPerBotMax = 8
export const delayedRefusalsPerWorkerMax = 1_000
export const refusalDelayMs = 3_000

// Updates (SPEC 4)
export const updateNestingMax = 64
export const orderingKeyBytesMax = 256
export const ttlSMax = 365 * 86_400
export const pairHeaderBytesMax = 4 * kib

// Connections (ARCHITECTURE 3)
export const requestLineBytesMax = 8 * kib
export const requestLineWaitMs = 10_000
export const handOffWaitMs = 4_000
export const handOffQueueMax = 4_096
export const headersTimeoutMs = 10_000
export const keepAliveTimeoutMs = 80_000
export const requestTimeoutMs = 60_000

// Life of the process (SPEC 10)
export const drainMs = 10_000

// Webhooks (SPEC 6, 8)
export const webhookUrlLengthMax = 2_048
export const webhookSecretLengthMax = 256
export const webhookAddressesMax = 32
export const webhookResolvedForMs = 30 * 60_000
/** After a failed background look-up the last addresses stay in use and the next try comes this much later. */
export const webhookResolveRetryMs = 60_000
export const webhookConnectTimeoutMs = 10_000
/** For writing the request and for the complete answer. */
export const webhookAnswerTimeoutMs = 60_000
/** Above the 60 s that most servers keep an idle connection, so that the other side ends it first. */
export const webhookKeepAliveMs = 75_000
/** What is read of an answer's body before the connection is closed instead; the body is of no use. */
export const webhookAnswerBytesMax = 64 * kib
/** What a proxy's answer to CONNECT may take. */
export const webhookProxyAnswerBytesMax = 16 * kib
export const webhookRetryAfterSMax = 3_600
export const webhookRetryCapMsMin = 60_000
export const webhookRetryCapMsMax = 120_000
/** Updates of one bot a dispatcher holds loaded; at least twice max_connections where that is more. */
export const webhookWindowUpdatesMax = 1_000
/** Ordering keys of one bot that are known at a time, nearly all of them waiting for a retry. About 4 MB. */
export const webhookLanesMax = 10_000
/** One read from the queue; a longer one would hold the event loop, a shorter one cost more calls. */
export const webhookReadUpdatesMax = 128
/** Texts of errors come from the other side. */
export const webhookErrorLengthMax = 256
// The flood gates [ref]
export const webhookRecentSuccessMs = 10_000
export const webhookFastOpeningsMax = 10
export const webhookFastOpeningsMs = 500
export const webhookSlowOpeningMs = 2_000
export const webhookSlowConnectionsMax = 4
/** How long a webhook waits that the server-wide gate turned away. */
export const webhookServerGateRetryMs = 500
