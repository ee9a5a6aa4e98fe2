/** How numbers and sentences are shown, and numbers read from fields. Null and undefined are a dash: the server does not know the value. */
import { otherZone, type ShownZone, shownZone } from './browser-clock.ts'

type Shown = number | null | undefined

const none = '–'
const counts = new Intl.NumberFormat('en')

/** For example `12,345`. */
export function formatCount(count: Shown): string {
  return typeof count === 'number' ? counts.format(count) : none
}

/** For example `1 update` or, of a count that has not ended, `more than 12,345 updates`. */
export function formatUpdates(count: number, isComplete: boolean): string {
  const updates = `${formatCount(count)} ${count === 1 ? 'update' : 'updates'}`
  return isComplete ? updates : `more than ${updates}`
}

/** For example `0.4` or `1,234`. */
export function formatRate(perSecond: Shown): string {
  if (typeof perSecond !== 'number') return none
  return perSecond < 10 ? perSecond.toFixed(1) : counts.format(Math.round(perSecond))
}

/** For example `42 s`, `3 min`, `5 h` or `2 d`. */
export function formatAge(seconds: Shown): string {
  if (typeof seconds !== 'number') return none
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800
    ? `${Math.floor(seconds / 3_600)} h`
    : `${Math.floor(seconds / 86_400)} d`
}

/** An older update is late. Chosen: as the server, which calls a bot `behind` if it does not catch up then. */
const lateAfterS = 120

/** Whether the oldest update of a bot has waited for too long. */
export function isLate(oldestAgeS: Shown): boolean {
  return (oldestAgeS ?? 0) > lateAfterS
}

/** For example `0.4 ms`, `812 ms`, `1.2 s`, `42 s` or `54 min`. */
export function formatMs(ms: Shown): string {
  if (typeof ms !== 'number') return none
  if (ms < 10 && !Number.isInteger(ms)) return `${ms.toFixed(1)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${Number((ms / 1_000).toFixed(1))} s`
  return formatAge(ms / 1_000)
}

/** For example `3 min ago`, `in 41 s` or `now`. */
export function formatAgo(unixSeconds: number, nowS: number): string {
  const agoS = nowS - unixSeconds
  if (Math.abs(agoS) < 1) return 'now'
  return agoS > 0 ? `${formatAge(agoS)} ago` : `in ${formatAge(-agoS)}`
}

/** For example `512 B`, `3.4 KiB`, `12 MiB` or `20 GiB`. */
export function formatBytes(bytes: Shown): string {
  if (typeof bytes !== 'number') return none
  if (bytes < 1_024) return `${bytes} B`
  let value = bytes / 1_024
  let unit = 0
  for (; value >= 1_024 && unit < largeUnits.length - 1; unit++) value /= 1_024
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${largeUnits[unit]}`
}

const largeUnits = ['KiB', 'MiB', 'GiB', 'TiB']

/** The time of day of a moment in Unix seconds, to the second. */
export function formatTime(unixSeconds: Shown): string {
  return typeof unixSeconds === 'number'
    ? formatMoment(unixSeconds, { timeStyle: 'medium' }, shownZone())
    : none
}

/** The date and time of day of a moment in Unix seconds, to the second, with the zone that the reader has chosen. */
export function formatExact(unixSeconds: number, zone = shownZone()): string {
  return formatMoment(unixSeconds, { dateStyle: 'medium', timeStyle: 'long' }, zone)
}

/** A moment in the zone that the reader has chosen and, below, in the other one: what stands under the pointer. */
export function formatBoth(unixSeconds: number): string {
  const both = [formatExact(unixSeconds), formatExact(unixSeconds, otherZone())]
  return [...new Set(both)].join('\n')
}

function formatMoment(
  unixSeconds: number,
  parts: Intl.DateTimeFormatOptions,
  zone: ShownZone,
): string {
  const named = zone === 'utc' ? { ...parts, timeZone: 'UTC' } : parts
  return new Intl.DateTimeFormat('en-GB', named).format(unixSeconds * 1_000)
}

/** For example `shard 3` or `shards 0, 1, 2`. */
export function shardsText(shards: readonly number[]): string {
  return `${shards.length === 1 ? 'shard' : 'shards'} ${shards.join(', ')}`
}

/** A unit with its size, the smallest first. */
export type Unit = readonly [name: string, size: number]

export const durationUnits = [
  ['seconds', 1],
  ['minutes', 60],
  ['hours', 3_600],
  ['days', 86_400],
] as const satisfies readonly Unit[]

export const sizeUnits = [
  ['bytes', 1],
  ['KiB', 1_024],
  ['MiB', 1_048_576],
  ['GiB', 1_073_741_824],
] as const satisfies readonly Unit[]

/** Returns the number that a text is, or the text, whose digits none may be lost of: the server says what is wrong with it. */
export function wholeNumberOr(text: string): number | string {
  return /^\d{1,15}$/.test(text) ? Number(text) : text
}

/** The server says what is wrong with a text that is no number. */
export function amountOf(text: string, size: number): number | string | null {
  if (text === '') return null
  return /^\d+(?:\.\d+)?$/.test(text) ? Math.round(Number(text) * size) : text
}

/** Returns a number in the largest unit in which it is whole, and the size of that unit. */
export function amountIn(
  amount: number | null,
  units: readonly Unit[],
): readonly [count: number, size: number] | undefined {
  if (amount === null) return undefined
  const size = units.findLast(([, each]) => amount % each === 0)?.[1] ?? 1
  return [amount / size, size]
}

/** Makes a sentence of a text without a capital and an end. */
export function asSentence(text: string): string {
  if (text === '') return text
  const sentence = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}
