/**
 * How long each step of a planned move took, as the logs of the nodes say it. Nobody has the shard from the beginning of the
 * first step to the end of the last one:
 *
 *   closing   the giver ends what is under way, and closes the shard
 *   row       it changes the row
 *   claim     until the taker has read the row and begins
 *   opening   the taker connects, claims, and reads
 */
import type { Server } from '../support/server/server.ts'

export interface ShardMove {
  readonly shard: number
  readonly closingMs: number
  readonly rowMs: number
  readonly claimMs: number
  readonly openingMs: number
  /** All of them. */
  readonly allMs: number
}

interface LogLine {
  readonly time: number
  readonly msg: string
  readonly shard: number
  readonly tookMs: number
  readonly closingMs: number
}

const gave = 'a shard was handed over'
const opened = 'a shard was opened'

export class MoveTimeline {
  readonly #servers = new Set<Server>()
  #sinceMs = 0

  /** Reads its log, also after its end. */
  add(server: Server): void {
    this.#servers.add(server)
  }

  /** Lists the moves from now on. */
  begin(): void {
    this.#sinceMs = Date.now()
  }

  /** Returns the moves that are over, the longest first. */
  moves(): readonly ShardMove[] {
    const lines = [...this.#servers].flatMap(linesOf).filter(({ time }) => time >= this.#sinceMs)
    const openings = lines.filter(({ msg }) => msg === opened)
    return lines
      .filter(({ msg }) => msg === gave)
      .flatMap((given) => {
        const next = openings
          .filter(({ shard, time }) => shard === given.shard && time >= given.time)
          .toSorted((a, b) => a.time - b.time)
        return next.slice(0, 1).map((taken) => moveOf(given, taken))
      })
      .toSorted((a, b) => b.allMs - a.allMs)
  }
}

function moveOf(given: LogLine, taken: LogLine): ShardMove {
  const { shard, closingMs, tookMs: rowMs } = given
  const openingMs = taken.tookMs
  const claimMs = Math.max(0, taken.time - openingMs - given.time)
  return {
    shard,
    closingMs,
    rowMs,
    claimMs,
    openingMs,
    allMs: closingMs + rowMs + claimMs + openingMs,
  }
}

function linesOf(server: Server): readonly LogLine[] {
  return server
    .output()
    .split('\n')
    .filter((line) => line.includes(gave) || line.includes(opened))
    .map((line) => {
      const { time, ...rest }: Omit<LogLine, 'time'> & { time: string | number } = JSON.parse(line)
      return { ...rest, time: new Date(time).getTime() }
    })
}
