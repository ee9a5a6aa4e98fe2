/** The keys of the private API: listed, made, rotated and revoked. A key is shown once, until the reader leaves the page. */
import { isTrouble } from './api-client.ts'
import { type Column, dataTable } from './data-table.ts'
import { buttonElement, cardElement, element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'
import { formatCount, formatDate } from './format.ts'
import { keyForm } from './key-form.ts'
import type { PageContext, PageView } from './page-context.ts'
import type { PagePart } from './page-part.ts'
import type { IssuedKeyShape, KeyChangeShape, KeyShape } from './shapes.ts'
import { statusLine } from './status-line.ts'

/** For the last use of each key. */
const pauseMs = 5_000
const overlaps = [
  [0, 'not at all'],
  [3_600, 'for an hour'],
  [86_400, 'for a day'],
  [604_800, 'for a week'],
] as const

const columns: readonly Column<KeyShape>[] = [
  { title: 'Name', cell: ({ name }) => name, style: 'wrap', isHead: true },
  { title: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
  { title: 'Bots', cell: ({ bots }) => (bots === null ? 'all' : bots.join(', ')), style: 'wrap' },
  { title: 'Limits', cell: limitsText },
  { title: 'Expires', cell: ({ expires }) => dateText(expires) },
  { title: 'Last used', cell: (key) => dateText(key.last_used) },
  { title: 'Id', cell: (key) => key.key_id },
]

export function keysView(context: PageContext): PageView {
  const { api, atEnd, poll } = context
  const result = statusLine('note')
  const issued = issuedField()
  const overlap = element('select', {}, ...overlaps.map(optionOf))
  const table = dataTable('Keys', [
    ...columns,
    { title: 'Actions', cell: buttonsOf, style: 'actions' },
  ])
  const overlapLabel = element('label', {}, 'After a rotation, the old secret stays valid', overlap)
  const list = element('div', {}, element('div', { class: 'controls' }, overlapLabel), table.root)
  list.hidden = true

  async function refresh(): Promise<void> {
    try {
      const { keys } = await api.call('listKeys', {})
      list.hidden = keys.length === 0
      table.show(keys)
    } catch (error) {
      if (!isTrouble(error)) result.say(errorText(error))
    }
  }

  function buttonsOf(key: KeyShape): readonly HTMLElement[] {
    return [
      buttonElement('Rotate', () => rotate(key), key.name),
      buttonElement('Revoke', () => revoke(key), key.name),
    ]
  }

  function rotate({ name, key_id }: KeyShape): void {
    const body = { overlap: Number(overlap.value) }
    const end = body.overlap === 0 ? ' The old secret ends at once.' : ''
    if (!confirm(`Give the key ${name} a new secret?${end}`)) return
    result.run(async () => show(await api.call('rotateKey', { key_id, body })))
  }

  function revoke({ name, key_id }: KeyShape): void {
    const question = `Revoke the key ${name}? It and all keys that it has made end, with their streams and sessions, and cannot be restored.`
    if (!confirm(question)) return
    result.run(async () => {
      const change = await api.call('revokeKey', { key_id })
      issued.show(undefined)
      void refresh()
      return withDelay(`The key ${name} is revoked.`, change)
    })
  }

  function show(key: IssuedKeyShape): string {
    issued.show(key.key)
    void refresh()
    return withDelay(`Copy the key ${key.name} now: it cannot be shown again.`, key)
  }

  poll(pauseMs, refresh)
  atEnd(() => issued.show(undefined))
  const about = 'The admin key is not listed. It may do everything, and it can revoke all keys.'
  const root = element(
    'div',
    {},
    element('p', {}, element('a', { href: '#/' }, 'All bots')),
    element('h1', {}, 'Keys'),
    cardElement(
      'Keys of this server',
      element('p', { class: 'faint' }, about),
      result.root,
      issued.root,
      list,
    ),
    keyForm(context, (key) => result.say(show(key))),
  )
  return { title: 'Keys', root }
}

function optionOf([seconds, text]: (typeof overlaps)[number]): HTMLElement {
  return element('option', { value: seconds }, text)
}

/** Shows a key, selected, to be copied. */
function issuedField(): PagePart<string | undefined> {
  const field = element('input', { readonly: true, size: 66, spellcheck: 'false' })
  const copy = buttonElement('Copy', () => void copyKey())
  const label = element('label', {}, 'The key, which is shown only now', field)
  const root = element('div', { hidden: true, class: 'note controls' }, label, copy)

  /** Without TLS, a page of another machine has no clipboard, but the old way still works there. */
  async function copyKey(): Promise<void> {
    field.select()
    const isCopied = await navigator.clipboard
      ?.writeText(field.value)
      .then(() => true)
      .catch(() => document.execCommand('copy'))
    const done = isCopied ?? document.execCommand('copy')
    setElementText(copy, done ? 'Copied' : 'Copy it with the keyboard')
  }

  const show = (key: string | undefined): void => {
    // As a property, because an attribute would be in the source of the page.
    field.value = key ?? ''
    root.hidden = key === undefined
    setElementText(copy, 'Copy')
    if (key === undefined) return
    field.focus()
    field.select()
  }
  return { root, show }
}

function withDelay(text: string, { unreached_workers: unreached = 0 }: KeyChangeShape): string {
  const delay = `${unreached} workers did not respond and take the change within seconds after they do.`
  return unreached > 0 ? `${text} ${delay}` : text
}

function dateText(unixSeconds: number | null): string {
  return unixSeconds === null ? 'never' : formatDate(unixSeconds)
}

function limitsText(key: KeyShape): string {
  const limits = [
    key.updates_per_second === null ? [] : [`${formatCount(key.updates_per_second)} updates/s`],
    key.requests_per_second === null ? [] : [`${formatCount(key.requests_per_second)} requests/s`],
  ].flat()
  return limits.length === 0 ? 'none' : limits.join(', ')
}
