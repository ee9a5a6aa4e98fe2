/**
 * The fields that select updates of a queue: by what became of them, their type, whose they are, and when they were pushed.
 * The address keeps them, so that a link shows the same.
 */
import { unixSecondsOf } from '../elements/browser-clock.ts'
import { element } from '../elements/element.ts'
import type { PageInput } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import { fillField, type SearchField, searchField } from '../elements/fields.ts'
import { whoseUpdates } from './whose-updates.ts'

type Query = NonNullable<PageInput<'listUpdates'>['query']>
export type UpdateSelection = Pick<
  Query,
  'state' | 'type' | 'user' | 'ordering_key' | 'since' | 'until'
>
type UpdateState = NonNullable<Query['state']>

/** How good each state is, as the style knows it. The compiler knows when one is missing. */
export const updateTones: Readonly<Record<UpdateState, string>> = {
  pending: 'polling',
  delivered: 'healthy',
  confirmed: 'healthy',
  dropped: 'idle',
  expired: 'degraded',
  dead: 'failing',
}
const stateNames = Object.keys(updateTones).filter(
  (name): name is UpdateState => name in updateTones,
)
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
  /** Returns what is selected; undefined if a field has what can select nothing, and says so. */
  readonly selection: () => UpdateSelection | undefined
  /** The field for a chat, a user or an ordering key. */
  readonly whose: HTMLInputElement
  /** What the address keeps of them. */
  readonly address: () => Readonly<Record<string, string>>
}

/** @param onChange - the reader wants others */
export function updateFilters(
  { api, clock, may, query: asked }: Pick<PageContext, 'api' | 'clock' | 'may' | 'query'>,
  onChange: () => void,
): UpdateFilters {
  const changed = (): void => {
    showTimes()
    showWhose(key)
    onChange()
  }
  // A link to the owner's page cannot ask for the types, so its reader is not offered a choice.
  const hasTypes = may('read')
  const state = choice([['', 'Any state'], ...stateNames.map(twice)], changed)
  // The server knows the types. Until it has told them, only the one that the address names can be chosen.
  const type = choice([], changed)
  type.className = 'types'
  const showTypes = (names: readonly string[]): void => {
    const chosen = type.value
    type.replaceChildren(...optionsOf([['', 'Any type'], ...names.map(twice)]))
    type.value = names.includes(chosen) ? chosen : ''
  }
  const span = choice(spans, changed)
  const [from, to] = [timeField(changed), timeField(changed)]
  const key = searchField({
    label: 'Chat, user or key',
    placeholder: '7003 or chat.id=7003',
    value: asked.get('ordering_key'),
    onchange: changed,
  })
  const [times, ends] = [element('label', {}, 'From', from), element('label', {}, 'Until', to)]
  const askedType = (hasTypes && asked.get('type')) || ''
  showTypes(askedType === '' ? [] : [askedType])
  const kept = { state, type, pushed: span, from, until: to }
  for (const [name, field] of Object.entries(kept)) fillField(field, asked.get(name))
  function showTimes(): void {
    times.hidden = span.value !== between
    ends.hidden = times.hidden
  }
  showTimes()
  showWhose(key)
  // A page without the list shows all types, and the poll of the panel says that the server is in trouble.
  if (hasTypes) {
    api.call('listUpdateTypes', {}).then(
      ({ types }) => showTypes(types.map((each) => each.type)),
      () => undefined,
    )
  }
  return {
    fields: [
      element('label', {}, 'State', state),
      ...(hasTypes ? [element('label', {}, 'Type', type)] : []),
      element('label', {}, 'Pushed', span),
      times,
      ends,
      key.root,
    ],
    selection() {
      const { user, ordering_key: orderingKey, isWrong } = whoseUpdates(key.input.value)
      if (isWrong === true) return undefined
      return {
        state: stateNames.find((each) => each === state.value),
        type: type.value || undefined,
        ...(user === undefined ? {} : { user }),
        ordering_key: orderingKey,
        ...timesOf(span.value, { nowS: clock.nowMs() / 1_000, from: from.value, to: to.value }),
      }
    },
    whose: key.input,
    address: () => ({
      ...Object.fromEntries(Object.entries(kept).map(([name, { value }]) => [name, value])),
      ordering_key: key.input.value.trim(),
    }),
  }
}

/** Says beside the field what is meant, or that nothing can be. */
function showWhose({ input, note }: SearchField): void {
  const whose = whoseUpdates(input.value)
  note(whose.note ?? '', whose.isWrong)
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
  return element('select', { onchange }, ...optionsOf(options))
}

function optionsOf(
  options: readonly (readonly [value: string, text: string])[],
): HTMLOptionElement[] {
  return options.map(([value, text]) => element('option', { value }, text))
}
