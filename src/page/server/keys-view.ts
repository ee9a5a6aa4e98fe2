/** The keys of the private API: listed, made, rotated and revoked. A key is shown once, until the reader leaves the page. */
import { isTrouble } from '../frame/api-client.ts'
import { secretField } from '../elements/copy-text.ts'
import type { Question } from '../elements/confirm-dialog.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { buttonElement, buttonsElement, cardElement, element } from '../elements/element.ts'
import { errorText, statusLine } from '../elements/messages.ts'
import { formatCount } from '../elements/format.ts'
import { keyForm } from './key-form.ts'
import { overlapField } from '../elements/fields.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import type { IssuedKeyShape, KeyChangeShape, KeyShape } from '../frame/shapes.ts'
import { timeElement } from '../elements/page-part.ts'

/** For the last use of each key. */
const pauseMs = 5_000

export function keysView(context: PageContext): PageView {
  const { api, ask, atEnd, clock, poll, toast } = context
  const result = statusLine('note')
  const issued = secretField('The key, which is shown only now')
  const overlap = overlapField('After a rotation, the old secret stays valid')
  const none = noKeys()
  const actions = { title: 'Actions', cell: buttonsOf, style: 'actions' }
  const table = dataTable('Keys', [...columnsOf(clock), actions])
  const controls = element('div', { class: 'controls', hidden: true }, overlap.root)

  async function refresh(): Promise<void> {
    try {
      const { keys } = await api.call('listKeys', {})
      listed.classList.remove('arriving')
      controls.hidden = keys.length === 0
      none.hidden = keys.length > 0
      table.show(keys)
    } catch (error) {
      if (!isTrouble(error)) result.say(errorText(error))
    }
  }

  function buttonsOf(key: KeyShape): HTMLElement {
    return buttonsElement(
      buttonElement('Rotate', () => rotate(key), { of: key.name, style: 'small' }),
      buttonElement('Revoke', () => revoke(key), { of: key.name, style: 'danger small' }),
    )
  }

  function rotate({ name, key_id }: KeyShape): void {
    const body = { overlap: overlap.seconds() }
    result.run(async () => {
      const isWanted = await ask(rotateQuestion(name, body.overlap))
      return isWanted ? show(await api.call('rotateKey', { key_id, body })) : ''
    })
  }

  function revoke({ name, key_id }: KeyShape): void {
    result.run(async () => {
      const isWanted = await ask(revokeQuestion(name))
      if (!isWanted) return ''
      const change = await api.call('revokeKey', { key_id })
      issued.show(undefined)
      void refresh()
      toast(withDelay(`The key ${name} is revoked.`, change))
      return ''
    })
  }

  function show(key: IssuedKeyShape): string {
    issued.show(key.key)
    void refresh()
    return withDelay(`Copy the key ${key.name} now: it cannot be shown again.`, key)
  }

  poll(pauseMs, refresh)
  atEnd(() => issued.show(undefined))
  // The form waits for the list, so that it does not jump.
  const listed = cardElement(
    'Keys of this server',
    element('p', { class: 'faint lead' }, about),
    result.root,
    issued.root,
    controls,
    none,
    table.root,
  )
  listed.classList.add('arriving')
  const root = element(
    'div',
    {},
    element('div', { class: 'heading' }, element('h1', {}, 'Keys')),
    listed,
    keyForm(context, (key) => result.say(show(key))),
  )
  return { title: 'Keys', root }
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

function columnsOf(clock: PageContext['clock']): readonly Column<KeyShape>[] {
  return [
    { title: 'Name', cell: ({ name }) => name, style: 'wrap', isHead: true },
    { title: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
    {
      title: 'Bots',
      cell: ({ bots }) => (bots === null ? 'all' : bots.join(', ')),
      style: 'wrap wide',
    },
    { title: 'Limits', cell: limitsText, style: 'wide' },
    { title: 'Expires', cell: ({ expires }) => timeElement(clock, expires, 'never') },
    { title: 'Last used', cell: (key) => timeElement(clock, key.last_used, 'never') },
    { title: 'Id', cell: (key) => key.key_id, style: 'wide' },
  ]
}

function rotateQuestion(name: string, overlapS: number): Question {
  return {
    title: `Give the key ${name} a new secret?`,
    text:
      overlapS === 0
        ? 'The old secret ends at once.'
        : 'Give the new secret to its programs before the old one ends.',
    action: 'Rotate the key',
    isDanger: overlapS === 0,
  }
}

function revokeQuestion(name: string): Question {
  return {
    title: `Revoke the key ${name}?`,
    text: 'It and all keys that it has made end, with their streams and sessions, and cannot be restored.',
    action: 'Revoke the key',
    isDanger: true,
  }
}

function withDelay(text: string, { unreached_workers: unreached = 0 }: KeyChangeShape): string {
  const delay = `${unreached} workers did not respond and take the change within seconds after they do.`
  return unreached > 0 ? `${text} ${delay}` : text
}

function limitsText(key: KeyShape): string {
  const limits = [
    key.updates_per_second === null ? [] : [`${formatCount(key.updates_per_second)} updates/s`],
    key.requests_per_second === null ? [] : [`${formatCount(key.requests_per_second)} requests/s`],
  ].flat()
  return limits.length === 0 ? 'none' : limits.join(', ')
}
