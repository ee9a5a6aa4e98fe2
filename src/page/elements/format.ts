/** How numbers are shown. Null and undefined are a dash: the server does not know the value. */

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

/** For example `3 min ago`, `in 41 s` or `now`. */
export function formatAgo(unixSeconds: number, nowS: number): string {
  const agoS = nowS - unixSeconds
  if (Math.abs(agoS) < 1) return 'now'
  return agoS > 0 ? `${formatAge(agoS)} ago` : `in ${formatAge(-agoS)}`
}

/** For example `512 B`, `3.4 KiB` or `12 MiB`. */
export function formatBytes(bytes: Shown): string {
  if (typeof bytes !== 'number') return none
  if (bytes < 1_024) return `${bytes} B`
  const [value, unit] =
    bytes < 1_048_576 ? [bytes / 1_024, 'KiB'] : ([bytes / 1_048_576, 'MiB'] as const)
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`
}

/** The time of day of a moment in Unix seconds, to the second. */
export function formatTime(unixSeconds: Shown): string {
  return typeof unixSeconds === 'number'
    ? new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' }).format(unixSeconds * 1_000)
    : none
}

/** The date and time of day of a moment in Unix seconds, to the second. */
export function formatExact(unixSeconds: number): string {
  const parts = { dateStyle: 'medium', timeStyle: 'long' } as const
  return new Intl.DateTimeFormat('en-GB', parts).format(unixSeconds * 1_000)
}

/** For example `shard 3` or `shards 0, 1, 2`. */
export function shardsText(shards: readonly number[]): string {
  return `${shards.length === 1 ? 'shard' : 'shards'} ${shards.join(', ')}`
}
