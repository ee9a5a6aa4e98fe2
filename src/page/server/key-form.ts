/** The form that makes a key of the private API. */
import { cardElement, element, formElement, submitElement } from '../elements/element.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { IssuedKeyShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'

const scopes = [
  ['push', 'push: push updates'],
  ['read', 'read: read bots, updates and metrics'],
  ['manage', 'manage: change bots and their settings'],
  ['all', 'all: all of this, keys and backups'],
] as const
const fields = [
  ['Name', { name: 'name', required: true, maxlength: 64 }],
  ['Ids of its bots, with commas', { name: 'bots', placeholder: 'all bots' }],
  [
    'Updates per second, at most',
    { name: 'updates', inputmode: 'numeric', placeholder: 'no limit' },
  ],
  [
    'Requests per second, at most',
    { name: 'requests', inputmode: 'numeric', placeholder: 'no limit' },
  ],
  ['Expires after days', { name: 'days', inputmode: 'numeric', placeholder: 'never' }],
] as const

export function keyForm(
  { api, clock }: PageContext,
  onIssued: (key: IssuedKeyShape) => void,
): HTMLElement {
  const result = statusLine('error note', 'alert')
  const create = async (): Promise<string> => {
    const wanted = wantedKey(new FormData(form), Math.floor(clock.nowMs() / 1_000))
    const issued = await api.call('createKey', {}, { raw: JSON.stringify(wanted) })
    form.reset()
    onIssued(issued)
    return ''
  }
  const form = formElement(
    () => result.run(create),
    element('div', { class: 'controls' }, ...fields.map(fieldOf)),
    element('fieldset', {}, element('legend', {}, 'Scopes'), ...scopes.map(scopeOf)),
    submitElement('Create'),
    result.root,
  )
  return cardElement('Create a key', form)
}

function fieldOf([text, attributes]: (typeof fields)[number]): HTMLElement {
  return element('label', {}, text, element('input', { autocomplete: 'off', ...attributes }))
}

function scopeOf([scope, text]: (typeof scopes)[number]): HTMLElement {
  const box = element('input', { type: 'checkbox', name: 'scopes', value: scope })
  return element('label', { class: 'check' }, box, text)
}

/** What is not given is left out. The server reads the texts of numbers, and says what is wrong with others. */
function wantedKey(form: FormData, nowS: number): object {
  const textOf = (name: string): string => {
    const value = form.get(name)
    return typeof value === 'string' ? value : ''
  }
  const bots = textOf('bots').split(/[, ]+/)
  const days = textOf('days')
  return {
    name: textOf('name'),
    scopes: form.getAll('scopes'),
    bots: bots.some(Boolean) ? bots.filter(Boolean) : undefined,
    updates_per_second: textOf('updates') || undefined,
    requests_per_second: textOf('requests') || undefined,
    expires: /^\d+$/.test(days) ? nowS + Number(days) * 86_400 : days || undefined,
  }
}
