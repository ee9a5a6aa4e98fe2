/** The keys of the private API: listed, created, rotated and revoked. A key is shown once, until the reader leaves the page. */
import { actLabels } from '../frame/act-labels.ts'
import { actButton } from '../frame/act.ts'
import { isTrouble } from '../frame/api-client.ts'
import { secretField } from '../elements/copy-text.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { buttonsElement, cardElement, type Child, element } from '../elements/element.ts'
import { errorText, statusLine } from '../elements/messages.ts'
import { formatCount } from '../elements/format.ts'
import { keyForm } from './key-form.ts'
import { overlapField } from '../elements/fields.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import type { IssuedKeyShape, KeyChangeShape, KeyShape } from '../frame/shapes.ts'
import { botNameText, timeElement } from '../elements/page-part.ts'
import { botHash } from '../frame/page-route.ts'
import { botNames } from './bot-names.ts'
import { arriving } from '../elements/waiting.ts'

/** For the last use of each key. */
const pauseMs = 5_000
/** Chosen: a key of a platform may be for a thousand bots, and all of their ids are under the pointer. */
const botsNamedMax = 3

interface ListedKey extends KeyShape {
  /** The usernames of the first of its bots, as far as they are known. */
  readonly names: readonly (string | undefined)[]
}

export function keysView(context: PageContext): PageView {
  const { api, atEnd, clock, poll } = context
  const result = statusLine('note')
  const issued = secretField('The key (copy it now: it is not shown again)')
  const none = noKeys()
  const named = botNames(context)

  /** The names are read before the list is shown, so that it does not jump. */
  async function withBots(keys: readonly KeyShape[]): Promise<readonly ListedKey[]> {
    const names = await named(keys.flatMap(firstBots))
    return keys.map((key) => ({ ...key, names: firstBots(key).map((id) => names.get(id)) }))
  }

  async function refresh(): Promise<void> {
    try {
      const keys = await withBots((await api.call('listKeys', {})).keys)
      arrived()
      none.hidden = keys.length > 0
      table.show(keys)
    } catch (error) {
      if (!isTrouble(error)) result.say(errorText(error))
    }
  }

  const buttonsOf = (key: KeyShape): HTMLElement =>
    keyButtons(context, key, {
      onRotated: (rotated) => result.say(show(rotated)),
      onRevoked: () => {
        issued.show(undefined)
        result.say('')
        return refresh()
      },
    })

  const actions = { title: 'Actions', isPlain: true, cell: buttonsOf, style: 'actions' }
  const table = dataTable('Keys', [...columnsOf(clock), actions])

  function show(key: IssuedKeyShape): string {
    issued.show(key.key)
    void refresh()
    return withDelay(`Copy the key ${key.name} now: it cannot be shown again.`, key)
  }

  atEnd(() => issued.show(undefined))
  // The form waits for the list, so that it does not jump.
  const listed = cardElement(
    'Keys of this server',
    element('p', { class: 'faint lead' }, about),
    result.root,
    issued.root,
    none,
    table.root,
  )
  const arrived = arriving(context, listed)
  poll(pauseMs, refresh)
  const root = element(
    'div',
    {},
    element('div', { class: 'heading' }, element('h1', {}, 'Keys')),
    listed,
    keyForm(context, (key) => result.say(show(key))),
  )
  return { title: 'Keys', root }
}

interface KeyActs {
  readonly onRotated: (key: IssuedKeyShape) => void
  readonly onRevoked: () => Promise<void>
}

function keyButtons(
  context: PageContext,
  { name, key_id }: KeyShape,
  { onRotated, onRevoked }: KeyActs,
): HTMLElement {
  let overlap = overlapField('The old secret')
  return buttonsElement(
    actButton(context, 'rotateKey', {
      label: actLabels.rotateKey,
      of: name,
      question: () => {
        overlap = overlapField('The old secret')
        return {
          title: `Rotate the key ${name}?`,
          text: 'It gets a new secret. Its programs need that before the old one ends.',
          fields: overlap.root,
        }
      },
      input: () => ({ key_id, body: { overlap: overlap.seconds() } }),
      after: onRotated,
    }),
    actButton(context, 'revokeKey', {
      label: actLabels.revokeKey,
      of: name,
      question: () => ({
        title: `Revoke the key ${name}?`,
        text: 'It and all keys that it has created end, with their streams and sessions, and cannot be restored.',
      }),
      input: () => ({ key_id }),
      said: (change) => withDelay(`The key ${name} is revoked.`, change),
      after: onRevoked,
    }),
  )
}

const about = 'The admin key is not listed. It may do everything, and it can revoke all keys.'

function noKeys(): HTMLElement {
  return emptyState({
    title: 'There is no key beside the admin key.',
    text: 'Give each program a key that may do only what it needs, here or in a terminal:',
    command: 'postbote keys create shop --scopes push',
    isHidden: true,
  })
}

function columnsOf(clock: PageContext['clock']): readonly Column<ListedKey>[] {
  return [
    { title: 'Name', isPlain: true, cell: nameOf, isHead: true },
    { title: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
    { title: 'Bots', style: 'wrap', cell: botsOf, hint: ({ bots }) => bots?.join(', ') ?? '' },
    { title: 'Limits', cell: limitsOf },
    { title: 'Expires', cell: ({ expires }) => timeElement(clock, expires, 'never') },
    { title: 'Last used', cell: (key) => timeElement(clock, key.last_used, 'never') },
  ]
}

function withDelay(text: string, { unreached_workers: unreached = 0 }: KeyChangeShape): string {
  const delay = `${unreached} workers did not respond and take the change within seconds after they do.`
  return unreached > 0 ? `${text} ${delay}` : text
}

/** The id is below the name: a column of its own would leave no room for the buttons. */
function nameOf({ name, key_id: id }: KeyShape): readonly Child[] {
  return [name, element('div', { class: 'faint' }, id)]
}

/** Those that the list names. */
function firstBots({ bots }: Pick<KeyShape, 'bots'>): readonly number[] {
  return bots?.slice(0, botsNamedMax) ?? []
}

function botsOf({ bots, names }: ListedKey): readonly Child[] {
  if (bots === null) return ['all']
  const links = firstBots({ bots }).map((id, nth) => {
    const href = botHash({ botId: `${id}`, isTest: false })
    return element('div', {}, element('a', { href }, botNameText(id, names[nth])))
  })
  const others = bots.length - links.length
  return others === 0 ? links : [...links, `and ${formatCount(others)} more`]
}

function limitsOf(key: KeyShape): Child | readonly Child[] {
  const limits = [
    key.updates_per_second === null ? [] : [`${formatCount(key.updates_per_second)} updates/s`],
    key.requests_per_second === null ? [] : [`${formatCount(key.requests_per_second)} requests/s`],
  ].flat()
  return limits.length === 0 ? 'none' : limits.map((limit) => element('div', {}, limit))
}
