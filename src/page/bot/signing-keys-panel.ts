/** The keys that the deliveries of a queue are signed with: listed, added and removed. What verifies is shown once. */
import { actLabels } from '../frame/act-labels.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { secretField } from '../elements/copy-text.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { actButton } from '../frame/act.ts'
import { buttonsElement, element } from '../elements/element.ts'
import { callForm } from '../elements/call-form.ts'
import { fieldElement, overlapField } from '../elements/fields.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { SigningKeyShape } from '../frame/shapes.ts'
import { settingCard } from './setting-card.ts'
import { timeElement } from '../elements/page-part.ts'

const pauseMs = 5_000
const types = ['hmac-sha256', 'ed25519'] as const

export function signingKeysPanel(context: PageContext, queue: BotQueueName): HTMLElement {
  const { api, atEnd, clock, may, poll } = context
  const input = ofQueue(queue, {})
  const secret = secretField('What the receiver verifies with (copy it now: it is not shown again)')
  const type = element('select', {}, ...types.map((each) => element('option', {}, each)))
  const overlap = overlapField('The previous key')
  const none = noKeys()
  let count = 0
  async function refresh(): Promise<void> {
    const { signing_keys: keys } = await api.call('listSigningKeys', input)
    count = keys.length
    none.hidden = count > 0
    removeAll.hidden = !may('manage') || count < 2
    table.show(keys)
  }
  const removeOf = ({ key_id }: SigningKeyShape): HTMLElement =>
    buttonsElement(
      actButton(context, 'removeSigningKey', {
        label: actLabels.removeSigningKey,
        of: key_id,
        question: () => ({
          title: `Remove the signing key ${key_id}?`,
          text: 'Deliveries are not signed with it any more. A receiver that verifies with it refuses them.',
        }),
        input: () => ({ ...input, key_id }),
        said: () => `The signing key ${key_id} is removed.`,
        after: refresh,
      }),
    )
  const removeAll = actButton(context, 'removeSigningKeys', {
    label: actLabels.removeSigningKeys,
    question: () => ({
      title: `Remove all ${count} signing keys?`,
      text: 'Deliveries are not signed any more. A receiver that verifies them refuses them.',
    }),
    input: () => input,
    said: ({ removed }) =>
      `${removed === 1 ? '1 signing key is' : `${removed} signing keys are`} removed.`,
    after: refresh,
  })
  const add = async (): Promise<string> => {
    const body = {
      type: types.find((each) => each === type.value) ?? types[0],
      overlap: overlap.seconds(),
    }
    const added = await api.call('addSigningKey', { ...input, body })
    secret.show(added.key)
    await refresh()
    return `Copy the key ${added.key_id} now: it cannot be shown again.`
  }
  const form = callForm(
    { submit: actLabels.addSigningKey, send: add, kind: 'makes', others: [removeAll] },
    fieldElement('Type', type),
    overlap.root,
  )
  const actions = { title: 'Actions', isPlain: true, cell: removeOf, style: 'actions' }
  const columns = columnsOf(clock)
  const table = dataTable('Signing keys', may('manage') ? [...columns, actions] : columns)
  poll(pauseMs, refresh)
  atEnd(() => secret.show(undefined))
  return settingCard(
    'Signing keys',
    'Prove to the receiver that a delivery is from this server.',
    may('manage') ? form.root : undefined,
    secret.root,
    none,
    table.root,
  )
}

function noKeys(): HTMLElement {
  return emptyState({
    title: 'Deliveries are not signed.',
    text: 'With a key, each delivery carries a signature that its receiver can verify.',
    isHidden: true,
  })
}

function columnsOf(clock: PageContext['clock']): readonly Column<SigningKeyShape>[] {
  return [
    { title: 'Id', cell: (key) => key.key_id, isHead: true },
    { title: 'Type', cell: (key) => key.type },
    { title: 'Added', cell: (key) => timeElement(clock, key.created_at) },
    { title: 'Ends', cell: (key) => timeElement(clock, key.ends_at, 'never') },
  ]
}
