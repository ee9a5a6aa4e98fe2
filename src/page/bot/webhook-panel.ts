/**
 * The webhook of a queue: how it is set, a form that sets it, and a button that removes it. The server shows neither the URL nor a
 * secret, so the form begins empty and replaces the whole webhook.
 */
import { wholeNumberOr, formatCount } from '../elements/format.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import {
  buttonElement,
  buttonsElement,
  cardElement,
  element,
  formElement,
  submitElement,
} from '../elements/element.ts'
import { type Facts, factList, type PagePart } from '../elements/page-part.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { QueueShape, ResultShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'

const pauseMs = 5_000
type WebhookState = ResultShape<'getWebhook'>

const fields = [
  ['URL', { name: 'url', inputmode: 'url', required: true, placeholder: 'https://bot.example/…' }],
  ['Secret token', { name: 'secret_token', type: 'password', autocomplete: 'new-password' }],
  ['Connections, at most', { name: 'max_connections', inputmode: 'numeric', placeholder: '40' }],
  ['Types of updates', { name: 'allowed_updates', placeholder: 'the default set' }],
  ['Address', { name: 'ip_address', placeholder: 'as the name resolves' }],
] as const

export function webhookPanel(context: PageContext, queue: BotQueueName): PagePart<QueueShape> {
  const { api, may, poll } = context
  const facts = factList()
  let webhook: WebhookState | undefined
  let state: QueueShape | undefined
  const draw = (): void => facts.show(factsOf(state, webhook))
  const read = async (): Promise<void> => {
    webhook = await api.call('getWebhook', ofQueue(queue, {}))
    draw()
  }
  draw()
  poll(pauseMs, read)
  const form = may('manage') ? webhookForm(context, queue, read) : undefined
  const show = (shown: QueueShape): void => {
    state = shown
    form?.show(shown)
    draw()
  }
  return { root: cardElement('Webhook', facts.root, form?.root), show }
}

/** @param onChanged - called when the webhook is another one */
function webhookForm(
  context: PageContext,
  queue: BotQueueName,
  onChanged: () => Promise<void>,
): PagePart<QueueShape> {
  const { api, toast } = context
  const progress = statusLine('faint')
  const result = statusLine('error note', 'alert')
  const set = async (): Promise<string> => {
    progress.say('The endpoint is verified…')
    try {
      const raw = JSON.stringify(wantedWebhook(new FormData(form)))
      const { description } = await api.call('setWebhook', ofQueue(queue, {}), { raw })
      form.reset()
      toast(`${description}.`)
      await onChanged()
      return ''
    } finally {
      progress.say('')
    }
  }
  const remove = async (): Promise<string> => {
    const description = await removeWebhook(context, queue)
    if (description === undefined) return ''
    toast(`${description}.`)
    await onChanged()
    return ''
  }
  const removal = buttonElement('Remove the webhook', () => result.run(remove), { style: 'danger' })
  const drop = element('input', { type: 'checkbox', name: 'drop_pending_updates' })
  const form = formElement(
    () => result.run(set),
    ...fieldElements(),
    element(
      'div',
      { class: 'controls note' },
      element('label', { class: 'check' }, drop, dropText),
      buttonsElement(removal, submitElement('Set the webhook')),
    ),
    progress.root,
    result.root,
  )
  const show = ({ mode }: QueueShape): void => {
    removal.hidden = mode !== 'webhook'
  }
  return { root: form, show }
}

const dropText = 'Drop the updates that wait'

/** Removes the webhook if the reader agrees, and returns what the server says. */
async function removeWebhook(
  { api, ask }: PageContext,
  queue: BotQueueName,
): Promise<string | undefined> {
  const drop = element('input', { type: 'checkbox' })
  const isWanted = await ask({
    title: 'Remove the webhook?',
    text: 'Nothing is delivered any more, and updates wait for the polls of the bot.',
    fields: element('label', { class: 'check' }, drop, dropText),
    action: 'Remove the webhook',
    isDanger: true,
  })
  if (!isWanted) return undefined
  const query = { drop_pending_updates: drop.checked }
  const { description } = await api.call('deleteWebhook', ofQueue(queue, query))
  return description
}

function fieldElements(): readonly HTMLElement[] {
  const inputs = fields.map(([title, attributes]) => {
    const input = element('input', { autocomplete: 'off', spellcheck: 'false', ...attributes })
    const isLong = attributes.name === 'url'
    return element('label', { class: isLong ? 'whole' : undefined }, title, input)
  })
  return [
    element('p', { class: 'faint note' }, 'What is left out gets its default: all is replaced.'),
    element('div', { class: 'controls' }, ...inputs),
    element('details', { class: 'options' }, element('summary', {}, 'Certificate'), certificate()),
  ]
}

function certificate(): HTMLElement {
  const field = element('textarea', { name: 'certificate', rows: 4, spellcheck: 'false' })
  return element('label', { class: 'note' }, 'PEM, which is then the only trust root', field)
}

/** Returns the fields that were filled in. The server says what is wrong with a text that is no number. */
function wantedWebhook(form: FormData): object {
  const filled = [...form].flatMap(([name, value]) =>
    typeof value === 'string' && value !== '' ? [[name, fieldOf(name, value)] as const] : [],
  )
  return Object.fromEntries(filled)
}

function fieldOf(name: string, text: string): unknown {
  if (name === 'drop_pending_updates') return true
  if (name === 'max_connections') return wholeNumberOr(text)
  return name === 'allowed_updates' ? text.split(/[\s,]+/).filter(Boolean) : text
}

function factsOf(state: QueueShape | undefined, webhook: WebhookState | undefined): Facts {
  return [
    ['Mode', state?.mode ?? '–'],
    ['Host', state?.webhook_host ?? '–'],
    ['Connections, at most', formatCount(state?.max_connections)],
    ...factsOfWebhook(webhook),
    ['Keys that wait for a retry', formatCount(state?.parked_keys)],
    ['Delivered since the worker started', formatCount(state?.deliveries.delivered)],
  ]
}

function factsOfWebhook(webhook: WebhookState | undefined): Facts {
  return [
    ['Address', webhook?.ip_address ?? '–'],
    ['Types of updates', typesText(webhook)],
    ['Secret token', yesOrNo(webhook?.has_secret_token)],
    ['Own certificate', yesOrNo(webhook?.has_custom_certificate)],
  ]
}

function typesText(webhook: WebhookState | undefined): string {
  const { host = null, allowed_updates: types = null } = webhook ?? {}
  return types?.join(', ') ?? (host === null ? '–' : 'the default set')
}

function yesOrNo(is = false): string {
  return is ? 'yes' : 'no'
}
