/** The keys that the deliveries of a queue are signed with: listed, added and removed. What verifies is shown once. */
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { secretField } from '../elements/copy-text.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { buttonElement, buttonsElement, cardElement, element } from '../elements/element.ts'
import { overlapField } from '../elements/fields.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { SigningKeyShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'
import { timeElement } from '../elements/page-part.ts'

const pauseMs = 5_000
const types = ['hmac-sha256', 'ed25519'] as const

export function signingKeysPanel(context: PageContext, queue: BotQueueName): HTMLElement {
  const { api, atEnd, clock, may, poll } = context
  const result = statusLine('note')
  const secret = secretField('What the receiver verifies with, which is shown only now')
  const type = element('select', {}, ...types.map((each) => element('option', {}, each)))
  const overlap = overlapField('The previous key signs')
  const none = emptyState({
    title: 'Deliveries are not signed.',
    text: 'With a key, each delivery carries a signature that its receiver can verify.',
    isHidden: true,
  })
  const actions = { title: 'Actions', cell: removeOf, style: 'actions' }
  const columns = columnsOf(clock)
  const table = dataTable('Signing keys', may('manage') ? [...columns, actions] : columns)

  let count = 0
  const acts = removals(context, queue)
  const removeAll = buttonElement(
    'Remove all',
    () => result.run(() => acts.all(count).then(refreshed)),
    { style: 'danger' },
  )
  removeAll.hidden = true

  async function refresh(): Promise<void> {
    const { signing_keys: keys } = await api.call('listSigningKeys', ofQueue(queue, {}))
    none.hidden = keys.length > 0
    count = keys.length
    removeAll.hidden = count < 2
    table.show(keys)
  }

  async function refreshed(): Promise<string> {
    await refresh()
    return ''
  }

  function removeOf({ key_id: id }: SigningKeyShape): HTMLElement {
    const remove = (): void => result.run(() => acts.one(id).then(refreshed))
    return buttonsElement(buttonElement('Remove', remove, { of: id, style: 'danger small' }))
  }

  const add = async (): Promise<string> => {
    const body = {
      type: types.find((each) => each === type.value) ?? types[0],
      overlap: overlap.seconds(),
    }
    const added = await api.call('addSigningKey', { ...ofQueue(queue, {}), body })
    secret.show(added.key)
    await refresh()
    return `Copy the key ${added.key_id} now: it cannot be shown again.`
  }
  poll(pauseMs, refresh)
  atEnd(() => secret.show(undefined))
  const controls = element(
    'div',
    { class: 'controls' },
    element('label', {}, 'Type', type),
    overlap.root,
    buttonsElement(
      removeAll,
      buttonElement('Add a signing key', () => result.run(add), { style: 'primary' }),
    ),
  )
  return cardElement(
    'Signing keys',
    may('manage') ? controls : undefined,
    result.root,
    secret.root,
    none,
    table.root,
  )
}

interface Removals {
  readonly one: (id: string) => Promise<void>
  /** @param count - how many there are */
  readonly all: (count: number) => Promise<void>
}

/** What removes keys, after the reader has agreed. */
function removals({ api, ask, toast }: PageContext, queue: BotQueueName): Removals {
  const all = ofQueue(queue, {})
  return {
    async one(id) {
      const isWanted = await ask({
        title: `Remove the signing key ${id}?`,
        text: 'Deliveries are not signed with it any more. A receiver that verifies with it refuses them.',
        action: 'Remove the key',
        isDanger: true,
      })
      if (!isWanted) return
      await api.call('removeSigningKey', { ...all, key_id: id })
      toast(`The signing key ${id} is removed.`)
    },
    async all(count) {
      const isWanted = await ask({
        title: `Remove all ${count} signing keys?`,
        text: 'Deliveries are not signed any more. A receiver that verifies them refuses them.',
        action: 'Remove all keys',
        isDanger: true,
      })
      if (!isWanted) return
      const { removed } = await api.call('removeSigningKeys', all)
      toast(`${removed} signing keys are removed.`)
    },
  }
}

function columnsOf(clock: PageContext['clock']): readonly Column<SigningKeyShape>[] {
  return [
    { title: 'Id', cell: (key) => key.key_id, isHead: true },
    { title: 'Type', cell: (key) => key.type },
    { title: 'Added', cell: (key) => timeElement(clock, key.created_at) },
    { title: 'Ends', cell: (key) => timeElement(clock, key.ends_at, 'never'), style: 'wide' },
  ]
}
