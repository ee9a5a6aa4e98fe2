/** Registers a bot by its names alone, or with what is behind a disclosure, and shows its token once. */
import { ApiError } from '../frame/api-client.ts'
import { actLabels } from '../frame/act-labels.ts'
import { callForm } from '../elements/call-form.ts'
import { commandElement, secretField } from '../elements/copy-text.ts'
import { cardElement, element } from '../elements/element.ts'
import { fieldElement, textField } from '../elements/fields.ts'
import { wholeNumberOr } from '../elements/format.ts'
import { errorText } from '../elements/messages.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import type { ResultShape } from '../frame/shapes.ts'

type NewBot = ResultShape<'createBot'>

export function registerView(context: PageContext): PageView {
  const { api, atEnd, takesForeignTokens } = context
  const token = secretField('The token of the bot (copy it now: it is not shown again)')
  const next = element('div', { hidden: true })
  const fields = registerFields(takesForeignTokens)
  const register = async (): Promise<string> => {
    next.hidden = true
    const { url, ...body } = fields.value()
    const bot = await api.call('createBot', {}, { raw: JSON.stringify(body) }).catch(ofId)
    // The reader has the token that was given.
    token.show('token' in body ? undefined : bot.token)
    const refused = url === undefined ? undefined : await setWebhook(context, bot, url)
    next.replaceChildren(...nextSteps(bot, refused))
    next.hidden = false
    form.root.reset()
    return ''
  }
  atEnd(() => token.show(undefined))
  const form = callForm(
    { submit: actLabels.createBot, send: register, kind: 'makes' },
    ...fields.roots,
  )
  const about =
    'The names are what getMe returns. The token lets a program act as the bot: only its hash is stored.'
  const view = element(
    'div',
    {},
    element('p', { class: 'crumbs' }, element('a', { href: '#/' }, 'Bots')),
    element('div', { class: 'heading' }, element('h1', {}, 'Register a bot')),
    cardElement(
      'A new bot',
      element('p', { class: 'faint lead' }, about),
      form.root,
      token.root,
      next,
    ),
  )
  return { title: 'Register a bot', root: view }
}

interface RegisterFields {
  readonly roots: readonly HTMLElement[]
  /** What was filled in. The server says what is wrong with a text that is no number. */
  readonly value: () => Readonly<Record<string, unknown>> & { readonly url?: string | undefined }
}

function registerFields(takesForeignTokens: boolean): RegisterFields {
  const names = [textField('first_name', 'Shop'), textField('username', 'shop_bot')] as const
  const url = textField('url', 'https://bot.example/…', 'url')
  const id = textField('bot_id', 'the server chooses', 'numeric')
  const token = element('input', {
    name: 'token',
    type: 'password',
    autocomplete: 'new-password',
    placeholder: 'the server makes one',
  })
  const hint = 'Without one, the program of the bot polls.'
  const more = [
    fieldElement('URL of its webhook', url, { hint, isWide: true }),
    fieldElement('Id', id),
    takesForeignTokens ? fieldElement('Token of another server', token) : undefined,
  ]
  return {
    roots: [
      fieldElement('First name', names[0]),
      fieldElement('Username', names[1]),
      element(
        'details',
        { class: 'options whole' },
        element('summary', {}, 'Webhook, id and more'),
        element('div', { class: 'fields' }, ...more),
      ),
    ],
    value: () => ({
      ...Object.fromEntries(
        [...names, token].flatMap((each) => (each.value === '' ? [] : [[each.name, each.value]])),
      ),
      ...(id.value === '' ? {} : { bot_id: wholeNumberOr(id.value) }),
      ...(url.value === '' ? {} : { url: url.value }),
    }),
  }
}

/** The id is taken. */
function ofId(error: unknown): never {
  throw error instanceof ApiError && error.code === 'BOT_EXISTS'
    ? new Error(`bot_id: ${error.message}`)
    : error
}

/** Returns why the webhook was not set; the bot is registered all the same. */
async function setWebhook(
  { api }: PageContext,
  { bot_id: id }: NewBot,
  url: string,
): Promise<string | undefined> {
  try {
    await api.call('setWebhook', { id, query: { test: false }, body: { url } })
    return undefined
  } catch (error) {
    return errorText(error)
  }
}

function nextSteps(bot: NewBot, refused: string | undefined): readonly HTMLElement[] {
  const others = bot.same_username ?? []
  const warnings = [
    ...(others.length === 0 ? [] : [`The username is also that of bot ${others.join(', ')}.`]),
    ...(refused === undefined ? [] : [`Its webhook is not set: ${refused}`]),
  ]
  const queue = { botId: `${bot.bot_id}`, isTest: false }
  const href = refused === undefined ? botHash(queue) : botHash(queue, 'settings')
  return [
    element('p', {}, 'Its program connects to this server in place of Telegram, such as:'),
    commandElement('curl "$SERVER/bot$TOKEN/getMe"'),
    element(
      'p',
      { class: 'faint note' },
      'SERVER is the address of this server for bots, such as http://localhost:8081, and TOKEN the token.',
    ),
    ...warnings.map((text) => element('p', { class: 'degraded note' }, text)),
    element(
      'p',
      { class: 'note' },
      element('a', { href, class: 'button' }, `Open bot ${bot.bot_id}`),
    ),
  ]
}
