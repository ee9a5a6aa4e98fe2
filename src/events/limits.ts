/** The fixed bounds of operator events, each with its reason. */

/** The log keeps this many events. Chosen: an outage of thousands of webhooks fits; an event takes some 300 bytes. */
export const eventsKeptMax = 10_000
/** A page of events for one reader has at most this many: some 60 KB over the process channel. */
export const eventsPerPageMax = 200
/**
 * An event that repeats is reported once in this time, with the sum of its counts. Chosen: an operator does nothing sooner,
 * and a webhook that fails and recovers all the time makes 60 events an hour.
 */
export const eventQuietMs = 60_000
/** The first dead letters of a bot wait this long for others. Chosen: updates that expire together become one event. */
export const eventGatherMs = 5_000
/** Events that are due are sent to the primary this often. */
export const eventFlushMs = 250
/** A worker remembers this many events that may repeat. Chosen: as many as the log keeps. */
export const eventKeysMax = eventsKeptMax
/**
 * A worker sends this many events at a time, and the rest with the next batch. Chosen: an outage of all webhooks may take some seconds to
 * report, and the primary handles 800 a second without effort.
 */
export const eventsPerBatchMax = 200
/** A reason in an event has at most this many characters; errors of webhooks are as long as their endpoints like. */
export const eventReasonLengthMax = 300
/**
 * A file of events has this many lines before the other one takes its turn. Half of them may be positions, so one full file
 * has all events that are kept.
 */
export const eventFileLinesMax = 2 * eventsKeptMax
/** Lines that wait for a disk that does not write; past that the oldest are left out of the file. */
export const eventLinesWaitingMax = eventsKeptMax
/** A disk that does not take events is reported once in this time. */
export const eventFileWarningMs = 60_000
/**
 * A stored id above this is damage, because ids begin with the time in milliseconds: that of the year 5138. Ids that follow
 * such a one would soon be too long for the position of a reader (private-api/follow/event-position.ts).
 */
export const eventIdMax = 1e14
