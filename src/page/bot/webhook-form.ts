/**
 * The form of a webhook. Each field shows its value of now, and one that is changed changes alone. The server shows neither the path
 * of the URL nor a secret: they stay, unless others are entered. Another URL, address or certificate sets the whole webhook, and no
 * secret of before goes there.
 */
import { plainText } from '../elements/field-error.ts'
import { actLabels } from '../frame/act-labels.ts'
import { wholeNumberOr } from '../elements/format.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { ApiError } from '../frame/api-client.ts'
import { callForm } from '../elements/call-form.ts'
import { type Child, element, setElementText } from '../elements/element.ts'
import { checkField, fieldElement, textField } from '../elements/fields.ts'
import type { PagePart } from '../elements/page-part.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { ResultShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'

export type WebhookState = ResultShape<'getWebhook'>

/** What the form shows, in the form in which it is sent. The server says what is wrong with a text that is no number. */
interface Wanted {
  readonly url: string
  readonly secret: 'keep' | 'replace' | 'remove'
  readonly secretToken: string
  readonly maxConnections: number | string | null
  readonly allowedUpdates: readonly string[] | null
  /** Where deliveries go, and what goes with that. */
  readonly endpoint: object
}

export interface WebhookFormOptions {
  /** Called when the webhook is another one; resolves to what it is then. */
  readonly onChanged: () => Promise<WebhookState>
  /** Buttons beside its own. */
  readonly others: readonly Child[]
}

/** Makes the form, which is filled in with what is shown to it. */
export function webhookForm(
  context: PageContext,
  queue: BotQueueName,
  { onChanged, others }: WebhookFormOptions,
): PagePart<WebhookState> {
  const { api, toast } = context
  const progress = statusLine('faint')
  const fields = webhookFields()
  let present: WebhookState | undefined
  const fill = (webhook: WebhookState): void => {
    present = webhook
    fields.show(webhook)
  }
  const change = async (body: object): Promise<WebhookState> => {
    const raw = JSON.stringify(body)
    await api.call('changeWebhook', ofQueue(queue, {}), { raw }).catch(ofField)
    return onChanged()
  }
  const set = async (body: object): Promise<void> => {
    const raw = JSON.stringify(body)
    const { description } = await api.call('setWebhook', ofQueue(queue, {}), { raw }).catch(ofField)
    toast(`${description}.`)
    fill(await onChanged())
  }
  const save = async (): Promise<string> => {
    if (present === undefined) return ''
    const wanted = fields.value()
    const isChange = wanted.url === ''
    const body = isChange ? changeOf(wanted, present) : wholeOf(wanted, present)
    const before = valuesBefore(body, present)
    if (!isChange || 'secret_token' in body) progress.say('The endpoint is verified…')
    try {
      if (!isChange) await set(body)
      else {
        fill(await change(body))
        toast('The webhook is changed.', before && (async () => show(await change(before))))
      }
      return ''
    } finally {
      progress.say('')
    }
  }
  const form = callForm(
    { submit: actLabels.changeWebhook, send: save, others },
    ...fields.roots,
    progress.root,
  )
  const show = (webhook: WebhookState): void => {
    if (form.isEdited()) return
    fill(webhook)
    form.settle()
  }
  return { root: form.root, show }
}

interface WebhookFields {
  readonly roots: readonly HTMLElement[]
  readonly value: () => Wanted
  readonly show: (webhook: WebhookState) => void
}

function webhookFields(): WebhookFields {
  const url = textField('url', '', 'url')
  const aboutUrl = element('p', { class: 'hint' })
  const urlField = fieldElement('URL', url, { isWide: true })
  urlField.append(aboutUrl)
  const secret = secretFields()
  const connections = textField('max_connections', '40', 'numeric')
  const types = textField('allowed_updates', 'the default set')
  const endpoint = endpointFields()
  return {
    roots: [
      urlField,
      ...secret.roots,
      fieldElement('Connections, at most', connections),
      fieldElement('Types of updates', types, {
        hint: 'Such as message, callback_query. Empty: the default set.',
      }),
      endpoint.root,
    ],
    value: () => ({
      url: url.value.trim(),
      ...secret.value(),
      maxConnections: connections.value === '' ? null : wholeNumberOr(connections.value.trim()),
      allowedUpdates: typesIn(types.value),
      endpoint: endpoint.value(),
    }),
    show(webhook) {
      const { host, max_connections: most, allowed_updates: allowed } = webhook
      url.value = ''
      url.placeholder = `https://${host ?? 'bot.example'}/…`
      setElementText(aboutUrl, host === null ? '' : pathText)
      connections.value = host === null ? '' : `${most ?? ''}`
      types.value = host === null ? '' : (allowed?.join(', ') ?? '')
      secret.show(webhook)
      endpoint.clear()
    },
  }
}

const pathText =
  'Stays as it is while this is empty. The path is not shown, as it may hold a secret such as the token of the bot.'

interface SecretFields {
  readonly roots: readonly HTMLElement[]
  readonly value: () => Pick<Wanted, 'secret' | 'secretToken'>
  readonly show: (webhook: WebhookState) => void
}

function secretFields(): SecretFields {
  const keep = element('option', { value: 'keep' })
  const replace = element('option', { value: 'replace' })
  const remove = element('option', { value: 'remove' }, 'Remove it')
  const choice = element('select', { name: 'secret' }, keep, replace, remove)
  const input = textField('secret_token')
  input.type = 'password'
  input.autocomplete = 'new-password'
  const field = fieldElement('New secret token', input)
  const chosen = (): Wanted['secret'] =>
    choice.value === 'replace' || choice.value === 'remove' ? choice.value : 'keep'
  const showField = (): void => {
    field.hidden = chosen() !== 'replace'
  }
  choice.addEventListener('change', showField)
  return {
    roots: [fieldElement('Secret token', choice), field],
    value: () => ({ secret: chosen(), secretToken: input.value }),
    show({ has_secret_token: has }) {
      setElementText(keep, has ? 'Set, and kept' : 'None')
      setElementText(replace, has ? 'Replace it' : 'Set one')
      remove.hidden = !has
      choice.value = 'keep'
      input.value = ''
      showField()
    },
  }
}

interface EndpointFields {
  readonly root: HTMLElement
  readonly value: () => object
  readonly clear: () => void
}

/** What belongs to a URL that is entered. */
function endpointFields(): EndpointFields {
  const address = textField('ip_address', 'as the name resolves')
  const certificate = element('textarea', { name: 'certificate', rows: 4, spellcheck: 'false' })
  const drop = checkField('drop_pending_updates', dropText)
  const root = element(
    'details',
    { class: 'options whole' },
    element('summary', {}, 'Address and certificate'),
    element('p', { class: 'hint' }, 'They are set together with a URL.'),
    element(
      'div',
      { class: 'fields' },
      fieldElement('Address', address),
      fieldElement('PEM, which is then the only trust root', certificate, { isWide: true }),
      drop.root,
    ),
  )
  return {
    root,
    value: () => ({
      ...(address.value === '' ? {} : { ip_address: address.value.trim() }),
      ...(certificate.value === '' ? {} : { certificate: certificate.value }),
      ...(drop.input.checked ? { drop_pending_updates: true } : {}),
    }),
    clear() {
      address.value = ''
      certificate.value = ''
      drop.input.checked = false
    },
  }
}

export const dropText = 'Drop the updates that wait'

function typesIn(text: string): readonly string[] | null {
  const types = text.split(/[\s,]+/).filter(Boolean)
  return types.length === 0 ? null : types
}

/** Returns the fields that differ from the present webhook, whose URL stays. */
function changeOf(wanted: Wanted, present: WebhookState): object {
  const [named] = Object.keys(wanted.endpoint)
  if (present.host === null) throw new Error('url: Enter the URL of the webhook.')
  if (named !== undefined)
    throw new Error('url: Enter the URL, too: with it, the whole webhook is set.')
  const { maxConnections: most, allowedUpdates: types } = wanted
  return {
    ...(told(most) === told(present.max_connections) ? {} : { max_connections: most }),
    ...(told(types) === told(present.allowed_updates) ? {} : { allowed_updates: types }),
    ...secretOf(wanted),
  }
}

/** Returns a whole webhook, with a URL that was entered. */
function wholeOf(wanted: Wanted, present: WebhookState): object {
  if (wanted.secret === 'keep' && present.has_secret_token) {
    throw new Error(
      'secret: The secret of before is not given to another URL. Enter it again, or remove it.',
    )
  }
  const { url, maxConnections: most, allowedUpdates: types, endpoint } = wanted
  const { secret_token: secret = null } = secretOf(wanted)
  return {
    url,
    ...endpoint,
    ...(most === null ? {} : { max_connections: most }),
    ...(types === null ? {} : { allowed_updates: types }),
    ...(secret === null ? {} : { secret_token: secret }),
  }
}

function secretOf({ secret, secretToken }: Wanted): { readonly secret_token?: string | null } {
  if (secret === 'keep') return {}
  if (secret === 'remove') return { secret_token: null }
  if (secretToken === '') throw new Error('secret_token: Enter the new secret.')
  return { secret_token: secretToken }
}

/** Returns what takes a change back; undefined if a secret has changed, which nobody knows any more. */
function valuesBefore(change: object, present: WebhookState): object | undefined {
  if ('secret_token' in change) return undefined
  const values = new Map<string, unknown>(Object.entries(present))
  return Object.fromEntries(Object.keys(change).map((name) => [name, values.get(name)]))
}

function told(value: unknown): string {
  return JSON.stringify(value)
}

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
