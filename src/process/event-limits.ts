/** The fixed bounds of operator events that several files use, each with its reason. */

/** The log keeps this many events. Chosen: an outage of thousands of webhooks fits; an event takes some 300 bytes. */
export const eventsKeptMax = 10_000
/** A page of events for one reader has at most this many: some 60 KB over the process channel. */
export const eventsPerPageMax = 200
