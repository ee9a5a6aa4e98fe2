/** The fixed bounds of HTTP requests, their bodies and budgets that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */
import { kib } from '../kit/limits.ts'

/**
 * The sender of a body is charged each time this many pieces have arrived: a body of 4 MiB usually has 64, so usual
 * bodies are never charged for pieces.
 */
export const bodyPiecesPerCharge = 1_024
/**
 * A call with a valid token may take this long without a charge. A usual one takes 0.1 ms, one that returns 4 MB of
 * updates takes 2 ms.
 */
export const loopCostFreeMs = 2

/**
 * The head of a request or a forwarded response may have this many bytes. Chosen: four times Node's default, for clients
 * that send long parameters in the address; a connection may hold this much before its token is checked.
 */
export const headerBytesMax = 64 * kib

/**
 * One connection gets this many pipelined responses in one turn of the event loop, which take some 2 ms; a key gets as many
 * on all its connections, and the rest in later turns. A client over its budget of event-loop time gets one. The libraries
 * that bots are written with do not pipeline at all.
 */
export const pipelinedPerTurnMax = 64

/**
 * Connections are checked for late headers and requests this often. Node's default of 30 s would turn a limit of 10 s
 * into 40 s.
 */
export const connectionsCheckMs = 1_000
