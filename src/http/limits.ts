/** The fixed bounds of HTTP bodies and budgets, each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { kib, mib } from '../limits.ts'

// Bot API requests (protocol.md §3)
/** A multipart part may have this many header lines: clients send one to three. */
export const partHeaderLinesMax = 16
/** A header of a multipart part may have this many parameters: clients send a name and a file name. */
export const partHeaderParametersMax = 16
/**
 * Any compressed body may unpack to this many bytes, because short text of one repeated character is compressed more than
 * `bodyGrowthMax` times.
 */
export const bodyGrowthFreeBytes = 64 * kib
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
 * costs a worker 2 us, so this is 0.07 s.
 */
export const unwantedPiecesMax = 32_768
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
 * A piece of a body below this size is gathered with the next ones and charged. Chosen: the same as for a refused body
 * (`refusedPieceBytesMin`); a pair of a stream, which some producers send as a piece, is larger.
 */
export const smallPieceBytes = 64
/**
 * A multipart boundary may have this many characters. RFC 2046 allows 70; a search for a far longer one could be made
 * slow.
 */
export const boundaryLengthMax = 256

// Bodies that arrive in pieces
/** The memory for a body in several pieces begins with this many bytes and doubles; most bodies fit. */
export const growingBodyBytesMin = 4 * kib
/**
 * A body that holds no more than this many bytes is not counted, because its connection takes as much. Most bodies are
 * smaller.
 */
export const uncountedBodyBytes = 4 * kib

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
 * This many connections wait for one key to have paid for its pieces. Chosen: half of `budgetWaitersMax`, which leaves room for
 * others; no producer that is not hostile sends pieces of some bytes on this many.
 */
export const budgetWaitersPerKeyMax = 500
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
