/** Registers a bot, and shows its token once. */
import { wholeNumberOr } from '../elements/format.ts'
import { commandElement, secretField } from '../elements/copy-text.ts'
import { cardElement, element, formElement, submitElement } from '../elements/element.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import { statusLine } from '../elements/messages.ts'

const fields = [
  ['First name', { name: 'first_name', required: true, maxlength: 64, placeholder: 'Shop' }],
  ['Username', { name: 'username', required: true, maxlength: 64, placeholder: 'shop_bot' }],
  ['Id', { name: 'bot_id', inputmode: 'numeric', placeholder: 'the server chooses' }],
] as const
const tokenField = [
  'Token of another server',
  {
    name: 'token',
    type: 'password',
    autocomplete: 'new-password',
    placeholder: 'the server makes one',
  },
] as const

export function registerView({ api, atEnd, takesForeignTokens }: PageContext): PageView {
  const result = statusLine('error note', 'alert')
  const token = secretField('The token of the bot, which is shown only now')
  const next = element('div', { hidden: true })
  const register = async (): Promise<string> => {
    const form = new FormData(root)
    const filled = Object.fromEntries<unknown>([...form].filter(([, value]) => value !== ''))
    const { bot_id: id, ...names } = filled
    // The server says what is wrong with a text that is no number.
    const wanted = typeof id === 'string' ? wholeNumberOr(id) : id
    const body = { ...names, bot_id: wanted }
    const bot = await api.call('createBot', {}, { raw: JSON.stringify(body) })
    // The reader has the token that was given.
    token.show('token' in filled ? undefined : bot.token)
    const href = botHash({ botId: `${bot.bot_id}`, isTest: false })
    const others = bot.same_username ?? []
    const same = `The username is also that of bot ${others.join(', ')}.`
    next.replaceChildren(
      element('p', {}, 'Its program connects with the token, to this server in place of Telegram:'),
      commandElement('curl "$SERVER/bot$TOKEN/getMe"'),
      others.length === 0 ? '' : element('p', { class: 'degraded note' }, same),
      element(
        'p',
        { class: 'note' },
        element('a', { href, class: 'button' }, `Open bot ${bot.bot_id}`),
      ),
    )
    next.hidden = false
    root.reset()
    return ''
  }
  atEnd(() => token.show(undefined))
  const root = formElement(
    () => result.run(register),
    element(
      'div',
      { class: 'controls' },
      ...(takesForeignTokens ? [...fields, tokenField] : fields).map(([title, attributes]) =>
        element('label', {}, title, element('input', { autocomplete: 'off', ...attributes })),
      ),
      submitElement('Register'),
    ),
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
      root,
      result.root,
      token.root,
      next,
    ),
  )
  return { title: 'Register a bot', root: view }
}
