/** The fixed bounds of the client for producers (postbote/client) that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */
import { mib } from '../../src/kit/limits.ts'

/**
 * A client that has never reached its server reports that within 3 s, because the address is wrong, or nobody listens there. An
 * attempt of it may take the first time, the last one begins within the second, and ends with the third. A restart of a server
 * that was reached may take longer.
 */
export const firstConnectMs = 2_000
export const firstContactMs = 2_500
export const firstReportMs = 2_900
/** The response to a single call may have this many bytes, far more than a result or an error takes. */
export const clientResponseBytesMax = 1 * mib
