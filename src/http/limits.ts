/** The fixed bounds of HTTP bodies and budgets that several files use, each with its reason. src/limits.ts explains [ref] and "Chosen". */

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
