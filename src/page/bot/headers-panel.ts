/** The headers that each delivery carries for a bot. Their values are secrets: they are sent, and never shown. */
import { actButton } from '../frame/act.ts'
import { callForm } from '../elements/call-form.ts'
import { element, setElementText } from '../elements/element.ts'
import { fieldElement } from '../elements/fields.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import { settingCard } from './setting-card.ts'
import type { BotShape } from '../frame/shapes.ts'

export function headersPanel(context: PageContext, botId: string): PagePart<BotShape> {
  const { api, atEnd, may, toast } = context
  const names = element('p', { class: 'faint' })
  const lines = element('textarea', {
    name: 'headers',
    rows: 3,
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'X-Tenant: its value',
  })
  const replace = async (): Promise<string> => {
    await api.call('changeBot', { id: botId, body: { headers: headersOf(lines.value) } })
    lines.value = ''
    toast('The headers are replaced.')
    return ''
  }
  atEnd(() => {
    lines.value = ''
  })
  const removal = actButton(context, 'changeBot', {
    label: 'Remove all headers',
    input: () => ({ id: botId, body: { headers: null } }),
    question: () => ({
      title: 'Remove all headers?',
      text: 'An endpoint that demands them refuses the deliveries. Their values cannot be shown.',
    }),
    said: () => 'The headers are removed.',
  })
  const form = callForm(
    { submit: 'Replace the headers', send: replace, others: [removal] },
    fieldElement('New headers in place of all, one in each line', lines, { isWide: true }),
  )
  const show = ({ headers }: BotShape): void => {
    removal.hidden = headers === undefined
    setElementText(names, sentenceOf(headers))
  }
  return {
    root: settingCard('Headers of deliveries', names, may('manage') ? form.root : undefined),
    show,
  }
}

function sentenceOf(headers: readonly string[] | undefined): string {
  if (headers === undefined) return 'Deliveries carry no headers of the platform.'
  return `Each delivery carries ${headers.join(', ')}. The values are secrets, and are shown nowhere.`
}

/** Reads lines with a name and a value each. Throws an error without the text, which is a secret. */
function headersOf(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (lines.length === 0) throw new Error('headers: expected one "Name: value" in each line.')
  return Object.fromEntries(
    lines.map((line, nth) => {
      const [, name, value] = /^([^:\s]+):\s*(.*?)\s*$/.exec(line) ?? []
      if (name === undefined || value === undefined) {
        throw new Error(
          `headers: expected one "Name: value" in each line; line ${nth + 1} has none.`,
        )
      }
      return [name, value]
    }),
  )
}
