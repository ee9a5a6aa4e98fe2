/** The fixed bounds of the upstream server (`--upstream`) that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */

/** A connection to the upstream server may take this long, as one to a webhook (`webhookConnectTimeoutMs`). */
export const upstreamConnectTimeoutMs = 10_000
