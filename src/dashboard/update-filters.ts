/**
 * The fields that select updates of a queue: by what became of them, their type, their ordering key, and when they were pushed.
 * The address keeps them, so that a link shows the same.
 */
import { unixSecondsOf } from './browser-clock.ts'
import { element } from './element.ts'
import type { PageInput } from './page-calls.ts'
import type { PageContext } from './page-context.ts'
import { searchField } from './search-field.ts'

type Query = NonNullable<PageInput<'listUpdates'>['query']>
export type UpdateSelection = Pick<Query, 'state' | 'type' | 'ordering_key' | 'since' | 'until'>
type UpdateState = NonNullable<Query['state']>
type UpdateType = NonNullable<Query['type']>

/** How good each state is, as the style knows it. The compiler knows when one is missing. */
export const updateTones: Readonly<Record<UpdateState, string>> = {
  pending: 'polling',
  delivered: 'healthy',
  confirmed: 'healthy',
  dropped: 'idle',
  expired: 'degraded',
  dead: 'failing',
}
/** The compiler knows when one is missing. */
const types: Readonly<Record<UpdateType, true>> = {
  message: true,
  edited_message: true,
  channel_post: true,
  edited_channel_post: true,
  business_message: true,
  edited_business_message: true,
  deleted_business_messages: true,
  callback_query: true,
  inline_query: true,
  chosen_inline_result: true,
  chat_join_request: true,
  chat_member: true,
  my_chat_member: true,
  shipping_query: true,
  pre_checkout_query: true,
  poll: true,
  poll_answer: true,
  business_connection: true,
  chat_boost: true,
  removed_chat_boost: true,
  message_reaction_count: true,
  message_reaction: true,
}
const stateNames = Object.keys(updateTones).filter(
  (name): name is UpdateState => name in updateTones,
)
const typeNames = Object.keys(types).filter((name): name is UpdateType => name in types)
const between = 'between'
const spans = [
  ['', 'at any time'],
  ['3600', 'in the last hour'],
  ['86400', 'in the last day'],
  ['604800', 'in the last week'],
  [between, 'between …'],
] as const

export interface UpdateFilters {
  /** The fields, for a row of controls. */
  readonly fields: readonly HTMLElement[]
  readonly selection: () => UpdateSelection
  /** What the address keeps of them. */
  readonly address: () => Readonly<Record<string, string>>
}

/** @param onChange - the reader wants others */
export function updateFilters(
  { clock, query: asked }: Pick<PageContext, 'clock' | 'query'>,
  onChange: () => void,
): UpdateFilters {
  const changed = (): void => {
    showTimes()
    onChange()
  }
  const state = choice([['', 'Any state'], ...stateNames.map(twice)], changed)
  const type = choice([['', 'Any type'], ...typeNames.map(twice)], changed)
  const span = choice(spans, changed)
  const [from, to] = [timeField(changed), timeField(changed)]
  const key = searchField({
    label: 'Ordering key',
    placeholder: 'chat.id=42',
    value: asked.get('ordering_key'),
    onchange: changed,
  })
  const times = element('label', {}, 'From', from)
  const ends = element('label', {}, 'Until', to)
  const kept = { state, type, pushed: span, from, until: to }
  for (const [name, field] of Object.entries(kept)) field.value = asked.get(name) ?? ''
  function showTimes(): void {
    times.hidden = span.value !== between
    ends.hidden = times.hidden
  }
  showTimes()
  return {
    fields: [
      element('label', {}, 'State', state),
      element('label', {}, 'Type', type),
      element('label', {}, 'Pushed', span),
      times,
      ends,
      key.root,
    ],
    selection: () => ({
      state: stateNames.find((each) => each === state.value),
      type: typeNames.find((each) => each === type.value),
      ordering_key: key.input.value || undefined,
      ...timesOf(span.value, { nowS: clock.nowMs() / 1_000, from: from.value, to: to.value }),
    }),
    address: () => ({
      ...Object.fromEntries(Object.entries(kept).map(([name, { value }]) => [name, value])),
      ordering_key: key.input.value,
    }),
  }
}

interface Times {
  readonly nowS: number
  /** As their fields have them. */
  readonly from: string
  readonly to: string
}

function timesOf(
  span: string,
  { nowS, from, to }: Times,
): Pick<UpdateSelection, 'since' | 'until'> {
  if (span === between) return { since: unixSecondsOf(from), until: unixSecondsOf(to) }
  return { since: span === '' ? undefined : Math.floor(nowS) - Number(span) }
}

function twice<Name extends string>(name: Name): readonly [Name, Name] {
  return [name, name]
}

function timeField(onchange: () => void): HTMLInputElement {
  return element('input', { type: 'datetime-local', step: 1, onchange })
}

function choice(
  options: readonly (readonly [value: string, text: string])[],
  onchange: () => void,
): HTMLSelectElement {
  return element(
    'select',
    { onchange },
    ...options.map(([value, text]) => element('option', { value }, text)),
  )
}
