/** The bounds by which `postbote doctor` judges. */
import { mib } from '../../limits.ts'

/** The oldest version of Node.js that is tested, as in package.json. */
export const nodeVersionMin = [20, 19] as const
/** With fewer descriptors a worker refuses connections that a handful of bots may open. Chosen. */
export const descriptorsMin = 1_024
/** What docs/run/operations.md advises. */
export const descriptorsAdvised = 65_536
/** How often the doctor writes and syncs, and how much: a record of one small update, as a push does. */
export const syncsMeasured = 20
export const syncBytes = 4_096
/** A sync that takes longer makes single pushes slow: each waits for one. Chosen: ten times that of a usual SSD. */
export const syncSlowMs = 10
/** Below this many times the reserve of `--disk-reserve`, the disk counts as nearly full. Chosen. */
export const reserveTimesAdvised = 4
/** A time of a file may be ahead of the clock by so much: file systems round. Chosen. */
export const clockSlackMs = 2_000
/** The doctor waits this long for a program of this machine, and for a connection to a proxy. Chosen. */
export const answerMsMax = 5_000
/** A start takes this much on the disk besides the logs of its shards: the file that its processes share has 21 MiB. */
export const startBytesMin = 24 * mib
