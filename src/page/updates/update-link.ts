import type { BotQueueName } from '../bot/bot-queue-name.ts'
import type { Child } from '../elements/element.ts'
import { element } from '../elements/element.ts'
import { botHash } from '../frame/page-route.ts'

/** Makes a link to the page of an update; a dash if its id is not known. */
export function updateLink(queue: BotQueueName, id: number | null | undefined): Child {
  if (typeof id !== 'number') return '–'
  return element('a', { href: botHash(queue, 'updates', id) }, `${id}`)
}
