/** The form that makes a key of the private API. */
import { actLabels } from '../frame/act-labels.ts'
import { BotPicker } from './bot-picker.ts'
import { callForm } from '../elements/call-form.ts'
import { cardElement, element } from '../elements/element.ts'
import { durationChoice, fieldElement, textField } from '../elements/fields.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { IssuedKeyShape } from '../frame/shapes.ts'

const scopes = [
  ['push', 'push: push updates'],
  ['read', 'read: read bots, updates and metrics'],
  ['manage', 'manage: change bots and their settings'],
  ['all', 'all: all of this, keys and backups'],
] as const
/** Chosen: what a program or a person is given a key for. */
const lives = [
  [0, 'for ever'],
  [86_400, '1 day'],
  [30 * 86_400, '30 days'],
  [365 * 86_400, '1 year'],
] as const

export function keyForm(
  context: PageContext,
  onIssued: (key: IssuedKeyShape) => void,
): HTMLElement {
  const { api, clock } = context
  const bots = new BotPicker(context, 'Its bots')
  const life = durationChoice('The key is valid for', lives, 0)
  const create = async (): Promise<string> => {
    const expires =
      life.seconds() === 0 ? undefined : Math.floor(clock.nowMs() / 1_000) + life.seconds()
    const wanted = { ...wantedKey(new FormData(form.root), bots.ids()), expires }
    const issued = await api.call('createKey', {}, { raw: JSON.stringify(wanted) })
    form.root.reset()
    bots.clear()
    onIssued(issued)
    return ''
  }
  const form = callForm(
    { submit: actLabels.createKey, send: create, kind: 'makes' },
    fieldElement('Name', textField('name')),
    bots.root,
    life.root,
    fieldElement(
      'Updates per second, at most',
      textField('updates_per_second', 'no limit', 'numeric'),
    ),
    fieldElement(
      'Requests per second, at most',
      textField('requests_per_second', 'no limit', 'numeric'),
    ),
    element(
      'fieldset',
      { class: 'field whole' },
      element('legend', {}, 'Scopes'),
      ...scopes.map(scopeOf),
    ),
  )
  return cardElement('A new key', form.root)
}

function scopeOf([scope, text]: (typeof scopes)[number]): HTMLElement {
  const box = element('input', { type: 'checkbox', name: 'scopes', value: scope })
  return element('label', { class: 'check' }, box, text)
}

/** What is not given is left out. The server reads the texts of numbers, and says what is wrong with others. */
function wantedKey(form: FormData, bots: readonly string[]): object {
  const textOf = (name: string): string => {
    const value = form.get(name)
    return typeof value === 'string' ? value : ''
  }
  return {
    name: textOf('name'),
    scopes: form.getAll('scopes'),
    bots: bots.length > 0 ? bots : undefined,
    updates_per_second: textOf('updates_per_second') || undefined,
    requests_per_second: textOf('requests_per_second') || undefined,
  }
}
