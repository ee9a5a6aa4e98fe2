/**
 * Points in time, as people give them to commands. Days and hours are those of UTC, as in all that commands print,
 * and what they print can be given again.
 *
 *     10m   2h   3d   90s ago          before now
 *     now   today   yesterday          the beginning of the day
 *     yesterday 14:00   today 09:30
 *     14:00                            the last time that it was so late
 *     2026-11-23   2026-11-23 08:15    ISO 8601, in UTC unless a zone follows, as in 2026-11-23T08:15:00+02:00
 *     1795259014                       Unix seconds
 */
import { type Clock, utcMs, utcText } from '../kit/clock.ts'
import { type Kind, refused } from './config-values.ts'
import { durationMs } from './duration.ts'

const secondMs = 1_000
const dayMs = 86_400_000

/** The first time that is taken: nothing of a bot is older, and a lower number is more likely no point in time. */
const firstMs = utcMs([2000, 0, 1])
/** A time may be so long after now. Chosen: whoever names a later one has mistyped it, and nothing would be selected. */
const aheadMsMax = 366 * dayMs

/**
 * A point in time, in whole Unix seconds.
 *
 * @param clock - tells what is before now
 * @param latest - how late it may be
 */
export function timePoint(
  clock: Pick<Clock, 'nowMs'>,
  latest: 'now' | 'in a year' = 'in a year',
): Kind<number> {
  const aheadMs = latest === 'now' ? 0 : aheadMsMax
  const problemOf = (text: string): string | undefined => {
    const ms = msOf(text, clock.nowMs())
    return ms === undefined ? undefined : outside(text, ms, clock.nowMs() + aheadMs)
  }
  return {
    expected: 'a UTC time: 2h ago, 14:00, 2026-11-23 08:15 or Unix seconds',
    placeholder: 'TIME',
    parse(text) {
      const ms = msOf(text, clock.nowMs())
      if (ms === undefined || problemOf(text) !== undefined) return refused
      return Math.floor(ms / secondMs)
    },
    whyRefused: problemOf,
  }
}

/** Returns what a time was taken for, if that cannot be meant. 0 is before all. */
function outside(text: string, ms: number, untilMs: number): string | undefined {
  const isMeant = (each: number): boolean => each >= firstMs && each <= untilMs
  if (ms === 0 || isMeant(ms)) return undefined
  const digits = /^\d+$/.test(text) ? text : ''
  const unit = digits.length < 13 ? undefined : finerUnits.find(([most]) => digits.length <= most)
  if (unit !== undefined) {
    const [, name, ofSecond] = unit
    const seconds = Math.floor(Number(digits) / ofSecond)
    const advice = isMeant(seconds * secondMs) ? `: did you mean ${seconds}?` : ''
    return `which looks like ${name}${advice}`
  }
  if (Math.abs(ms) > farMs) return 'which is too far from now'
  const taken = `which is ${utcText(ms)}`
  if (ms > untilMs) return `${taken}, and that is still to come`
  return digits === ''
    ? `${taken}, before any bot`
    : `${taken} in Unix seconds: did you mean ${digits}s, which is before now?`
}

/** The last year of four digits. */
const farMs = utcMs([9999, 11, 31])

/** By the most digits that a time of these years has. */
const finerUnits = [
  [14, 'milliseconds', 1e3],
  [17, 'microseconds', 1e6],
  [20, 'nanoseconds', 1e9],
] as const

/** Returns the time that is meant, in milliseconds; undefined if the text is none. */
function msOf(given: string, nowMs: number): number | undefined {
  const text = given.trim().toLowerCase()
  if (text === 'now') return nowMs
  if (/^\d{1,20}$/.test(text)) return Number(text) * secondMs
  const agoMs = durationMs(text.replace(/ ago$/, ''))
  return agoMs === undefined ? (dayWordMs(text, nowMs) ?? isoMs(text)) : nowMs - agoMs
}

const dayWord =
  /^(?:(?<word>today|yesterday)(?: (?=\d)|$))?(?:(?<hours>[01]?\d|2[0-3]):(?<minutes>[0-5]\d)(?::(?<seconds>[0-5]\d))?)?$/

/** Of `today`, `yesterday 14:00` and `14:00`. */
function dayWordMs(text: string, nowMs: number): number | undefined {
  const parts = text === '' ? undefined : dayWord.exec(text)?.groups
  if (parts === undefined) return undefined
  const todayMs = Math.floor(nowMs / dayMs) * dayMs
  const ms = todayMs + ofDayMs(parts)
  const isDayBefore = parts['word'] === undefined ? ms > nowMs : parts['word'] === 'yesterday'
  return isDayBefore ? ms - dayMs : ms
}

/** Of hours, minutes and seconds, which may be absent. */
function ofDayMs({ hours = '0', minutes = '0', seconds = '0' }: Parts): number {
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * secondMs
}

type Parts = Readonly<Record<string, string | undefined>>

const iso =
  /^(?<date>(?<year>[1-9]\d{3})-(?<month>\d{2})-(?<day>\d{2}))(?:[t ](?<hours>[01]\d|2[0-3]):(?<minutes>[0-5]\d)(?::(?<seconds>[0-5]\d)(?:[.,]\d{1,9})?)?(?: ?(?:z|utc|(?<zone>[+-]\d{2}:?(?:\d{2})?)))?)?$/

/** Of ISO 8601, with a blank or a T. */
function isoMs(text: string): number | undefined {
  const parts = iso.exec(text)?.groups
  if (parts === undefined) return undefined
  const { date = '', year, month, day, zone } = parts
  const midnightMs = utcMs([Number(year), Number(month) - 1, Number(day)])
  // A date that does not exist, such as February 30, becomes another one.
  if (!utcText(midnightMs).startsWith(date)) return undefined
  return midnightMs + ofDayMs(parts) - zoneMs(zone)
}

function zoneMs(zone = '+00'): number {
  const ms = ofDayMs({ hours: zone.slice(1, 3), minutes: zone.slice(3).replace(':', '') || '0' })
  return zone.startsWith('-') ? -ms : ms
}
