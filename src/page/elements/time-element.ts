/** A moment as people say it, such as `3 min ago`, with the exact one under the pointer. */
import { type BrowserClock, isoTimeOf } from './browser-clock.ts'
import { element, setElementText } from './element.ts'
import { formatAgo, formatExact } from './format.ts'

/**
 * Makes the element of a moment.
 *
 * @param unixSeconds - the moment; null or undefined if there is none
 * @param none - stands in its place then
 */
export function timeElement(
  clock: Pick<BrowserClock, 'nowMs'>,
  unixSeconds: number | null | undefined,
  none = '–',
): HTMLElement | string {
  if (typeof unixSeconds !== 'number') return none
  const text = formatAgo(unixSeconds, clock.nowMs() / 1_000)
  const attributes = {
    datetime: isoTimeOf(unixSeconds),
    title: formatExact(unixSeconds),
    'data-at': unixSeconds,
  }
  return element('time', attributes, text)
}

/** Says all moments below an element anew: they are further away now. */
export function refreshTimes(clock: Pick<BrowserClock, 'nowMs'>, root: ParentNode): void {
  const nowS = clock.nowMs() / 1_000
  for (const time of root.querySelectorAll('time')) {
    setElementText(time, formatAgo(Number(time.dataset['at']), nowS))
  }
}
