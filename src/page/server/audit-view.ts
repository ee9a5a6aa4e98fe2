/** The calls that changed something, the last ones first. */
import { changeText } from '../../api/change-text.ts'
import { badgeElement, botLink, factList, timeElement } from '../elements/page-part.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import {
  buttonElement,
  buttonsElement,
  cardElement,
  type Child,
  element,
} from '../elements/element.ts'
import { changingCalls, type PageInput } from '../frame/page-calls.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import { fillField, searchField } from '../elements/fields.ts'
import type { RecordedCallShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'
import { waitingFor } from '../elements/waiting.ts'

const pauseMs = 5_000
const perPage = 100

interface AuditRow extends RecordedCallShape {
  /** The name of the key that it was about, if the server or another call tells it. */
  readonly on_key_name?: string | undefined
}

export function auditView({ api, clock, poll, query, keepQuery }: PageContext): PageView {
  /** The page begins after this call; undefined: with the last one. */
  let before: string | undefined
  let lastId: string | undefined
  const result = statusLine('error note', 'alert')
  const waiting = waitingFor()
  const none = emptyState({
    title: 'No such call.',
    text: 'Each call that changes a bot, a queue or a key is recorded, whoever makes it.',
    isHidden: true,
  })
  const filters = auditFilters(query, () => ask())
  const first = buttonElement('First page', () => turn(undefined), { style: 'quiet' })
  const next = buttonElement('Next page', () => turn(lastId), { style: 'quiet' })
  const table = dataTable('Audit', columnsOf(clock), {
    more: { keyOf: ({ id }) => id, detailOf: detailsOf },
  })
  const withKeys = keyNamer(api)

  async function refresh(): Promise<string> {
    const selection = filters.selection()
    // The field says why nothing is asked.
    if (selection === undefined) {
      waiting.done()
      table.show([])
      return ''
    }
    const { calls } = await api.call('listAudit', {
      query: { ...selection, before, limit: perPage },
    })
    waiting.done()
    none.hidden = calls.length > 0
    first.hidden = before === undefined
    next.hidden = calls.length < perPage
    lastId = calls.at(-1)?.id
    table.show(await withKeys(calls))
    return ''
  }

  function ask(): void {
    keepQuery(filters.address())
    turn(undefined)
  }

  function turn(to: string | undefined): void {
    before = to
    hurry()
  }

  const hurry = poll(pauseMs, () => refresh().then(result.say), waiting)
  const controls = [...filters.fields, buttonsElement(first, next)]
  const root = element(
    'div',
    {},
    element('div', { class: 'heading' }, element('h1', {}, 'Audit')),
    cardElement(
      'What was changed',
      element('div', { class: 'controls' }, ...controls),
      result.root,
      waiting.root,
      none,
      table.root,
    ),
  )
  return { title: 'Audit', root }
}

/** Names the keys that calls were about. Those of keys that have ended are remembered, or told by their own calls. */
function keyNamer(
  api: PageContext['api'],
): (calls: readonly RecordedCallShape[]) => Promise<readonly AuditRow[]> {
  const names = new Map<string, string | undefined>()
  return async (calls) => {
    for (const { key_id: id, key_name: name } of calls)
      if (id !== null && name !== null) names.set(id, name)
    const unknown = calls.flatMap(({ on_key: key }) =>
      key === null || names.has(key) ? [] : [key],
    )
    if (unknown.length > 0) {
      const { keys } = await api.call('listKeys', {})
      for (const key of unknown) names.set(key, undefined)
      for (const { key_id: id, name } of keys) names.set(id, name)
    }
    return calls.map((call) => ({ ...call, on_key_name: names.get(call.on_key ?? '') }))
  }
}

interface AuditFilters {
  readonly fields: readonly HTMLElement[]
  /** Returns what is selected; undefined if a field has what can select nothing, and says so. */
  readonly selection: () => NonNullable<PageInput<'listAudit'>['query']> | undefined
  /** What the address keeps of them. */
  readonly address: () => Readonly<Record<string, string>>
}

function auditFilters(query: URLSearchParams, onchange: () => void): AuditFilters {
  const {
    root,
    input: bot,
    note,
  } = searchField({
    label: 'Bot',
    placeholder: 'Id of a bot',
    value: query.get('bot'),
    onchange,
  })
  const asked = query.get('operation') ?? ''
  const operation = element(
    'select',
    { onchange },
    element('option', { value: '' }, 'All calls'),
    // A link may name one that a later version has.
    ...[...new Set([...changingCalls, ...(asked === '' ? [] : [asked])])]
      .toSorted()
      .map((each) => element('option', { value: each }, each)),
  )
  fillField(operation, asked)
  const {
    root: ofKey,
    input: key,
    note: noteOfKey,
  } = searchField({ label: 'Key', placeholder: 'id, or admin', value: query.get('key'), onchange })
  const address = (): Readonly<Record<'bot' | 'operation' | 'key', string>> => ({
    bot: bot.value.trim(),
    operation: operation.value,
    key: key.value.trim(),
  })
  return {
    fields: [root, element('label', {}, 'Call', operation), ofKey],
    selection() {
      const chosen = address()
      const isWrong = !/^\d{0,16}$/.test(chosen.bot)
      const isWrongKey = !/^(?:admin|[0-9a-f]{16})?$/.test(chosen.key)
      noteOfKey(
        isWrongKey ? 'A key is found by its id, which the page of keys has, or by admin.' : '',
        isWrongKey,
      )
      note(
        isWrong
          ? 'A bot is found by its id in digits, the part of its token before the colon.'
          : '',
        isWrong,
      )
      if (isWrong || isWrongKey) return undefined
      return {
        bot: chosen.bot === '' ? undefined : Number(chosen.bot),
        operation: chosen.operation || undefined,
        key: chosen.key || undefined,
      }
    },
    address,
  }
}

function columnsOf(clock: PageContext['clock']): readonly Column<AuditRow>[] {
  return [
    { title: 'Time', isPlain: true, cell: ({ time }) => timeElement(clock, time) },
    { title: 'Key', cell: keyOf },
    { title: 'Call', cell: ({ operation }) => operation },
    { title: 'About', cell: aboutOf, hint: aboutHint, style: 'wrap' },
    { title: 'Changes', isPlain: true, cell: changesOf, style: 'wrap' },
    {
      title: 'Result',
      style: 'state',
      isPlain: true,
      cell: ({ result }) => badgeElement(result, result === 'ok' ? 'healthy' : 'failing'),
    },
  ]
}

/** What a log or another list knows a call by. */
function detailsOf({ call, request_id: request, key_id: key, on_key: on }: AuditRow): Child {
  const facts = factList()
  facts.show([
    ['Call', call],
    ['Request', request],
    ...(key === null ? [] : [['Key', key] as const]),
    ...(on === null ? [] : [['About key', on] as const]),
  ])
  return facts.root
}

/** A key that has ended has no name any more. */
function keyOf({ key_id: id, key_name: name }: RecordedCallShape): string {
  return id === null ? 'admin key' : (name ?? id)
}

/** Each change is a line, in which no arrow breaks. A server of an earlier version tells none. */
function changesOf({ changes = [] }: RecordedCallShape): HTMLElement | string {
  if (changes.length === 0) return '–'
  return element(
    'div',
    {},
    ...changes.map((each) => element('div', {}, changeText(each).replace(' -> ', ' → '))),
  )
}

/** The bot, and the key that a call about keys was about. */
function aboutOf(call: AuditRow): readonly Child[] {
  const { bot_id: id, bot_ids: ids, on_key: key, on_key_name: name } = call
  const bots = ids.length === 0 ? undefined : `${ids.length} bots`
  const bot = id === null ? bots : botLink(id, call)
  if (key === null) return [bot ?? '–']
  const text = name === undefined ? `key ${key}` : `key “${name}”`
  return bot === undefined ? [text] : [bot, ` ${text}`]
}

function aboutHint({ bot_ids: ids, on_key: key }: AuditRow): string {
  return [...ids, ...(key === null ? [] : [key])].join(', ')
}
