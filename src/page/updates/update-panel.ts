/** One update: what became of it, step by step, its payload, and what can be done with it. */
import { actLabels } from '../frame/act-labels.ts'
import { updateIn } from '../../api/update-in.ts'
import { waitText } from '../../api/wait-text.ts'
import { isTrouble } from '../frame/api-client.ts'
import { attemptFacts } from '../bot/attempts-panel.ts'
import {
  badgeElement,
  factList,
  type PagePart,
  timeElement,
  updateLink,
} from '../elements/page-part.ts'
import { actOnQueue } from '../elements/state-head.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { copyText } from '../elements/copy-text.ts'
import { buttonElement, buttonsElement, element, setElementText } from '../elements/element.ts'
import { errorText, statusLine } from '../elements/messages.ts'
import { formatAgo, formatBytes, formatCount, formatExact } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import type { ResultShape, WholeUpdateShape } from '../frame/shapes.ts'
import { readableUpdate } from './readable-update.ts'
import { updateTones } from './update-filters.ts'
import { waitingFor } from '../elements/waiting.ts'

const pauseMs = 3_000

/** An update with its text as it was pushed. */
interface ShownUpdate extends WholeUpdateShape {
  readonly text: string
}

export function updatePanel(
  context: PageContext,
  queue: BotQueueName,
  updateId: number,
): HTMLElement {
  const { api, may, poll } = context
  const input = { ...ofQueue(queue, {}), update_id: updateId }
  const result = statusLine('error note', 'alert')
  const waiting = waitingFor()
  const place = element('div', {}, waiting.root)
  const title = element('h2', {}, `Update ${updateId}`)
  const wait = waitLine(context, queue)
  let update: ShownUpdate | undefined
  let shown = ''
  const acts = updateActs(context, { queue, updateId, updateOf: () => update })
  const run = (act: () => Promise<string>) => () => result.run(act)
  const again = buttonElement(actLabels.replayUpdate, run(acts.sendAgain), { style: 'primary' })
  const copy = buttonElement('Copy as curl', run(acts.copyAsCurl))
  const drop = buttonElement(actLabels.dropUpdate, run(acts.drop), { style: 'danger' })
  const deliver = buttonElement(actLabels.retryBot, run(acts.deliverNow))
  // The command needs a key, which the holder of a link to the owner's page does not have.
  copy.hidden = !may('read')
  again.hidden = true
  deliver.hidden = true
  drop.hidden = !may('manage')
  poll(
    pauseMs,
    async () => {
      try {
        const { text, value } = await api.read('getUpdate', input)
        update = { ...value, text: updateIn(text) }
        waiting.done()
        if (text !== shown) place.replaceChildren(wait.root, ...partsOf(context, queue, update))
        shown = text
        wait.show(update)
        // What waits for its retry can be tried at once.
        const isRetried = update.state === 'pending' && attemptsOf(update) > 0
        deliver.hidden = !may('manage') || !isRetried
        again.hidden = !mayPushAgain(context, update)
        result.say('')
      } catch (error) {
        if (isTrouble(error)) throw error
        waiting.done()
        update = undefined
        shown = ''
        place.replaceChildren()
        result.say(errorText(error))
      } finally {
        for (const button of [again, copy, drop, deliver]) button.disabled = update === undefined
      }
    },
    waiting,
  )
  const back = element('a', { href: botHash(queue, 'updates') }, 'All updates')
  const head = element(
    'div',
    { class: 'heading' },
    title,
    buttonsElement(deliver, copy, again, drop),
  )
  return element(
    'section',
    { class: 'card' },
    element('p', { class: 'crumbs' }, back),
    head,
    result.root,
    place,
  )
}

/** Says why an update waits, with a link to the one that it waits behind. */
function waitLine({ clock }: PageContext, queue: BotQueueName): PagePart<ShownUpdate> {
  const root = element('p', { class: 'lead-sentence', hidden: true })
  const next = element('span')
  let said = ''
  const show = (update: ShownUpdate): void => {
    const wait = waitText(update)
    root.hidden = wait === undefined
    if (wait === undefined) return
    const { before, behind, after, nextAttempt } = wait
    const text = `${before}${behind ?? ''}${after}`
    if (text !== said) {
      const link = behind === undefined ? undefined : updateLink(queue, behind)
      root.replaceChildren(...[before, link, after, next, '.'].filter((part) => part !== undefined))
    }
    said = text
    // What is due now is no longer in the past.
    const nowS = clock.nowMs() / 1_000
    const due = nextAttempt === undefined ? undefined : Math.max(nextAttempt, nowS)
    setElementText(next, due === undefined ? '' : `; next attempt ${formatAgo(due, nowS)}`)
  }
  return { root, show }
}

/** Of one that waits, the server knows the last attempts only, or how often it has failed since its start. */
function attemptsOf({ update_id: id, attempts, latest_attempts, waits_for }: ShownUpdate): number {
  const failures = waits_for?.update_id === id ? waits_for.failures : 0
  return attempts ?? Math.max(failures, latest_attempts.length)
}

function partsOf(
  context: PageContext,
  queue: BotQueueName,
  update: ShownUpdate,
): readonly HTMLElement[] {
  const { latest_attempts: attempts } = update
  const facts = factList()
  facts.show([
    ['Type', update.type],
    ['Ordering key', keyText(update)],
    ['Size', formatBytes(update.bytes)],
    ['Attempts', formatCount(attemptsOf(update))],
    ['Last error', update.last_error ?? attempts[0]?.error ?? 'none'],
    ...(update.traceparent === undefined ? [] : ([['Trace', update.traceparent]] as const)),
  ])
  const payload = readableUpdate(update.text)
  return [
    element(
      'div',
      { class: 'pair' },
      element('div', {}, facts.root),
      element('ol', { class: 'timeline' }, ...timelineOf(context, queue, update)),
    ),
    element('pre', { tabindex: 0, 'aria-label': 'Payload' }, payload),
  ]
}

/** The key as it is stored, and before it whose it is. */
function keyText({ ordering_key: key, subject = null }: WholeUpdateShape): string {
  return subject === null ? key || '–' : `${subject} (${key})`
}

/** From the push on, through each attempt that is known, to how it left. */
function timelineOf(
  { clock }: PageContext,
  queue: BotQueueName,
  update: ShownUpdate,
): readonly HTMLElement[] {
  const { accepted, left, state, latest_attempts: attempts } = update
  const step = (at: number, ...what: readonly (Node | string)[]): HTMLElement =>
    element('li', {}, element('div', {}, ...what), timeElement(clock, at))
  const tried = attempts.toReversed().map((attempt) => {
    const isGood = attempt.error === null
    const word = attempt.status === null ? (isGood ? 'delivered' : 'failed') : `${attempt.status}`
    const more = element('details', {}, element('summary', {}, attempt.error ?? 'delivered'))
    more.append(attemptFacts(attempt, queue))
    return step(attempt.time, badgeElement(word, isGood ? 'healthy' : 'failing'), more)
  })
  const end = badgeElement(state, updateTones[state])
  const last = left === null ? element('li', {}, element('div', {}, end)) : step(left, end)
  return [step(accepted, badgeElement('accepted', 'idle')), ...tried, last]
}

interface UpdateActs {
  readonly sendAgain: () => Promise<string>
  readonly copyAsCurl: () => Promise<string>
  readonly deliverNow: () => Promise<string>
  readonly drop: () => Promise<string>
}

interface ActedOn {
  readonly queue: BotQueueName
  readonly updateId: number
  readonly updateOf: () => ShownUpdate | undefined
}

function updateActs(context: PageContext, { queue, updateId, updateOf }: ActedOn): UpdateActs {
  const { api, ask, toast } = context
  return {
    async deliverNow() {
      await actOnQueue(context, queue, { retryBot: updateOf()?.ordering_key })
      return ''
    },
    async sendAgain() {
      const update = updateOf()
      if (update === undefined) return ''
      const isWanted = await ask({
        title: `Deliver update ${updateId} again?`,
        text: 'It gets a new id, after everything that is pending. The bot gets its contents once more.',
        action: actLabels.replayUpdate,
      })
      if (!isWanted) return ''
      const pushed = await pushAgain(context, queue, update)
      if (!('update_id' in pushed)) return 'The bot does not want updates of this type.'
      toast(['It is delivered again as update ', updateLink(queue, pushed.update_id), '.'])
      location.hash = botHash(queue, 'updates', pushed.update_id)
      return ''
    },
    async copyAsCurl() {
      const update = updateOf()
      if (update === undefined) return ''
      const field = element('textarea', {}, curlOf(queue, update))
      document.body.append(field)
      const isCopied = await copyText(field)
      field.remove()
      toast(isCopied ? 'Copied. Set $KEY to a key of scope push.' : 'The browser did not copy it.')
      return ''
    },
    async drop() {
      const isWanted = await ask({
        title: `Drop update ${updateId}?`,
        text: `It was pushed on ${formatExact(updateOf()?.accepted ?? 0)}. What is dropped cannot be restored.`,
        action: 'Drop it',
        isDanger: true,
      })
      if (!isWanted) return ''
      await api.call('dropUpdate', { ...ofQueue(queue, {}), update_id: updateId })
      toast(`Update ${updateId} is dropped.`)
      location.hash = botHash(queue, 'updates')
      return ''
    },
  }
}

/** What waits is delivered anyway, or at once with `Deliver now`. */
function mayPushAgain({ may }: PageContext, { state }: WholeUpdateShape): boolean {
  return state !== 'pending' && (may('push') || may('replay'))
}

/** The server pushes what it has kept itself; for a key that only pushes, it is pushed from here. */
async function pushAgain(
  { api, may }: PageContext,
  queue: BotQueueName,
  { update_id: id, text, ordering_key: key }: ShownUpdate,
): Promise<ResultShape<'pushUpdate'>> {
  if (may('replay')) {
    return api.call('replayUpdate', { ...ofQueue(queue, {}), update_id: id })
  }
  return api.call('pushUpdate', ofQueue(queue, { ordering_key: key }), { raw: text })
}

/** The push that would push the update again. The key is not in it: a shell has it in a variable. */
function curlOf({ botId, isTest }: BotQueueName, update: ShownUpdate): string {
  const query = new URLSearchParams({ ordering_key: update.ordering_key })
  if (isTest) query.set('test', 'true')
  const target = `${location.origin}/v1/bots/${botId}/updates?${query.toString()}`
  const body = update.text.replaceAll("'", String.raw`'\''`)
  return `curl -H "Authorization: Bearer $KEY" --data-binary '${body}' '${target}'`
}
