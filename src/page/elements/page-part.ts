/** A part of the page that shows data, and the smallest things that are shown: a state, facts, a moment, a link to an update. */
import { element, setElementText, type Child } from './element.ts'
import { type BrowserClock, isoTimeOf } from './browser-clock.ts'
import { formatAge, formatAgo, formatBoth, isLate } from './format.ts'
import type { BotQueueName } from '../frame/page-calls.ts'
import { botHash } from '../frame/page-route.ts'

/** A part of the page that shows data, each time that it is read. */
export interface PagePart<Data> {
  readonly root: HTMLElement
  readonly show: (data: Data) => void
}

/**
 * Makes a state in one word. The style gives each word a color and a sign, so that nobody needs to tell colors apart.
 *
 * @param state - how the style knows the word, if it is another one
 */
export function badgeElement(word: string, state = word): HTMLElement {
  return element('span', { class: `badge ${state}` }, word)
}

/** Makes a state that changes. */
export function badge(): PagePart<string> {
  const root = badgeElement('')
  const show = (word: string): void => {
    root.className = `badge ${word}`
    setElementText(root, word)
  }
  return { root, show }
}

/** Shows for how long the oldest update of a bot, or of all, has waited, in a color if that is too long. */
export function showOldest(place: HTMLElement, ageS: number | null | undefined): void {
  setElementText(place, formatAge(ageS))
  place.classList.toggle('degraded', isLate(ageS))
}

/** Makes a text a link, or a plain text where nothing is behind it, such as a count of none. */
export function linkTo(link: HTMLAnchorElement, href: string | undefined): void {
  if (href === undefined) link.removeAttribute('href')
  else link.href = href
}

/** Facts with their values, in the order in which they are shown. */
export type Facts = readonly (readonly [fact: string, value: Child])[]

/** Makes an empty list of facts. */
export function factList(): PagePart<Facts> {
  const root = element('dl', { class: 'facts' })
  const show = (facts: Facts): void =>
    root.replaceChildren(
      ...facts.flatMap(([fact, value]) => [element('dt', {}, fact), element('dd', {}, value)]),
    )
  return { root, show }
}

/**
 * Makes the element of a moment as people say it, such as `3 min ago`, with the exact one under the pointer.
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
    title: formatBoth(unixSeconds),
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

/** Names a bot in a list: by its username if that is known, and its id. */
export function botNameText(id: number, username: string | undefined): string {
  return username === undefined ? `${id}` : `@${username} ${id}`
}

/** Returns a link to the page of a bot, with its username if that is known. */
export function botLink(
  id: number,
  { username, test = false }: { readonly username?: string | undefined; readonly test?: boolean },
): HTMLElement {
  const name = botNameText(id, username)
  const href = botHash({ botId: `${id}`, isTest: test })
  return element('a', { href, class: 'row-link' }, test ? `${name}, /test/` : name)
}

/** Makes a link to the page of an update; a dash if its id is not known. */
export function updateLink(queue: BotQueueName, id: number | null | undefined): Child {
  if (typeof id !== 'number') return '–'
  return element('a', { href: botHash(queue, 'updates', id) }, `${id}`)
}
