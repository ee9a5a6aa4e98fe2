/** The webhook of a queue: how it is set, a form that changes it, and a button that removes it. */
import { actLabels } from '../frame/act-labels.ts'
import { formatCount } from '../elements/format.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { actButton } from '../frame/act.ts'
import { checkField } from '../elements/fields.ts'
import { type Facts, factList, type PagePart } from '../elements/page-part.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { QueueShape } from '../frame/shapes.ts'
import { arriving } from '../elements/waiting.ts'
import { settingCard } from './setting-card.ts'
import { dropText, webhookForm, type WebhookState } from './webhook-form.ts'

const pauseMs = 5_000

export function webhookPanel(context: PageContext, queue: BotQueueName): PagePart<QueueShape> {
  const { api, may, poll } = context
  const facts = factList()
  let webhook: WebhookState | undefined
  let state: QueueShape | undefined
  const factsNow = may('manage') ? factsBesideFields : factsOf
  const draw = (): void => {
    // A bot without a webhook has none of them. What is still read keeps its place.
    const isRead = webhook !== undefined || state?.mode !== 'webhook'
    facts.show(factsNow(state, webhook).filter(([, value]) => !isRead || value !== '–'))
  }
  const read = async (): Promise<WebhookState> => {
    webhook = await api.call('getWebhook', ofQueue(queue, {}))
    draw()
    return webhook
  }
  const removal = may('manage') ? removalButton(context, queue, read) : undefined
  const form =
    removal && webhookForm(context, queue, { onChanged: () => read(), others: [removal] })
  draw()
  poll(pauseMs, async () => {
    form?.show(await read())
    for (const arrived of arrivals) arrived()
  })
  const show = (shown: QueueShape): void => {
    state = shown
    if (removal !== undefined) removal.hidden = shown.mode !== 'webhook'
    draw()
  }
  const about = 'Where updates are delivered, and how.'
  const root = settingCard('Webhook', about, facts.root, form?.root)
  // The form, and the cards below, move as the facts and what is said of the URL become known.
  const arrivals = [facts.root, root].map((part) => arriving(context, part))
  return { root, show }
}

function removalButton(
  context: PageContext,
  queue: BotQueueName,
  onRemoved: () => Promise<unknown>,
): HTMLElement {
  let drop = checkField('', dropText)
  return actButton(context, 'deleteWebhook', {
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
    after: onRemoved,
  })
}

/** What a reader who may change the rest sees beside its fields. */
function factsBesideFields(
  state: QueueShape | undefined,
  webhook: WebhookState | undefined,
): Facts {
  return [
    ['Mode', state?.mode ?? '–'],
    ['Host', state?.webhook_host ?? '–'],
    ['Address', webhook?.ip_address ?? '–'],
    ['Own certificate', webhook?.has_custom_certificate === true ? 'yes' : '–'],
  ]
}

function factsOf(state: QueueShape | undefined, webhook: WebhookState | undefined): Facts {
  return [
    ['Mode', state?.mode ?? '–'],
    ['Host', state?.webhook_host ?? '–'],
    ['Connections, at most', formatCount(state?.max_connections)],
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
