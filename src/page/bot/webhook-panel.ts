/**
 * The webhook of a queue: how it is set, a form that sets it, and a button that removes it. The server shows neither the URL nor a
 * secret, so the form begins empty and replaces the whole webhook.
 */
import { plainText } from '../elements/field-error.ts'
import { actLabels } from '../frame/act-labels.ts'
import { wholeNumberOr, formatCount } from '../elements/format.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { actButton } from '../frame/act.ts'
import { ApiError } from '../frame/api-client.ts'
import { callForm } from '../elements/call-form.ts'
import { element } from '../elements/element.ts'
import { checkField, fieldElement } from '../elements/fields.ts'
import { type Facts, factList, type PagePart } from '../elements/page-part.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { QueueShape, ResultShape } from '../frame/shapes.ts'
import { settingCard } from './setting-card.ts'
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
  const draw = (): void => {
    // A bot without a webhook has none of them. What is still read keeps its place.
    const isRead = webhook !== undefined || state?.mode !== 'webhook'
    facts.show(factsOf(state, webhook).filter(([, value]) => !isRead || value !== '–'))
  }
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
  const about = may('manage')
    ? 'Where updates are delivered. The form replaces the whole webhook: what is left out gets its default.'
    : 'Where updates are delivered.'
  return { root: settingCard('Webhook', about, facts.root, form?.root), show }
}

/** @param onChanged - called when the webhook is another one */
function webhookForm(
  context: PageContext,
  queue: BotQueueName,
  onChanged: () => Promise<void>,
): PagePart<QueueShape> {
  const { api, toast } = context
  const progress = statusLine('faint')
  const set = async (): Promise<string> => {
    progress.say('The endpoint is verified…')
    try {
      const raw = JSON.stringify(wantedWebhook(new FormData(form.root)))
      const { description } = await api
        .call('setWebhook', ofQueue(queue, {}), { raw })
        .catch(ofField)
      form.root.reset()
      toast(`${description}.`)
      await onChanged()
      return ''
    } finally {
      progress.say('')
    }
  }
  let drop = checkField('', dropText)
  const removal = actButton(context, 'deleteWebhook', {
    label: actLabels.deleteWebhook,
    question: () => {
      drop = checkField('drop_pending_updates', dropText)
      return {
        title: 'Remove the webhook?',
        text: 'Nothing is delivered any more, and updates wait for the polls of the bot.',
        fields: drop.root,
      }
    },
    input: () => ofQueue(queue, { drop_pending_updates: drop.input.checked }),
    said: () => 'The webhook is removed.',
    after: onChanged,
  })
  const form = callForm(
    { submit: actLabels.setWebhook, send: set, others: [removal] },
    ...fieldElements(),
    progress.root,
  )
  const show = ({ mode }: QueueShape): void => {
    removal.hidden = mode !== 'webhook'
  }
  return { root: form.root, show }
}

const dropText = 'Drop the updates that wait'

/** The field that a refusal in the words of the bot API is about; others are about where the URL leads to. */
const fieldsOfErrors = [
  ['secret token', 'secret_token'],
  ['IP address', 'ip_address'],
  ['certificate is', 'certificate'],
] as const

function ofField(error: unknown): never {
  if (!(error instanceof ApiError) || error.message.includes(': expected')) throw error
  const [, named] = fieldsOfErrors.find(([words]) => error.message.includes(words)) ?? []
  const name = named ?? (error.code === 'BAD_WEBHOOK' ? 'url' : undefined)
  throw name === undefined ? error : new Error(`${name}: ${plainText(error.message)}`)
}

function fieldElements(): readonly HTMLElement[] {
  const inputs = fields.map(([title, attributes]) => {
    const input = element('input', { autocomplete: 'off', spellcheck: 'false', ...attributes })
    return fieldElement(title, input, { isWide: attributes.name === 'url' })
  })
  const certificate = element('textarea', { name: 'certificate', rows: 4, spellcheck: 'false' })
  const pem = fieldElement('PEM, which is then the only trust root', certificate, { isWide: true })
  return [
    ...inputs,
    element(
      'details',
      { class: 'options whole' },
      element('summary', {}, 'Certificate'),
      element('div', { class: 'fields' }, pem),
    ),
    checkField('drop_pending_updates', dropText).root,
  ]
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
