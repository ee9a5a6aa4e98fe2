/**
 * Turns a line of the log into one for people, for a log that goes to a terminal:
 *
 *     04:13:31.102 WARN   worker exited  worker=1 code=134
 *
 * Anywhere else, a line stays JSON for programs. Pure.
 */
import { harmless } from './text-table.ts'

interface LogLine {
  readonly level: number
  readonly time: string
  readonly pid: number
  readonly msg?: string
}

const levels: ReadonlyMap<number, string> = new Map([
  [10, 'TRACE'],
  [20, 'DEBUG'],
  [30, 'INFO'],
  [40, 'WARN'],
  [50, 'ERROR'],
  [60, 'FATAL'],
])
const yellow = 33
const red = 31

/**
 * Returns the line.
 *
 * @param json - a line of the log, as JSON
 * @param hasColors - whether warnings and errors stand out
 */
export function readableLine(json: string, hasColors: boolean): string {
  const { level, time, pid: _pid, msg = '', ...details }: LogLine = JSON.parse(json)
  const fields = Object.entries(details).map(([name, value]) => `${name}=${valueText(value)}`)
  const name = (levels.get(level) ?? `${level}`).padEnd(5)
  const color = level >= 50 ? red : yellow
  const shownLevel = hasColors && level >= 40 ? `\u001b[${color}m${name}\u001b[0m` : name
  // The date is on the terminal, and the time is UTC, as in the JSON.
  return `${time.slice(11, 23)} ${shownLevel}  ${harmless([msg, ...fields].join('  '))}\n`
}

/** A stack stays on its line: what a client sent may be in it. */
function valueText(value: unknown): string {
  return typeof value === 'string' && /^[\w./:@+-]+$/.test(value) ? value : JSON.stringify(value)
}
