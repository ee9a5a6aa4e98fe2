/** The headers that each delivery carries for a bot. Their values are secrets: they are sent, and never shown. */
import {
  buttonElement,
  buttonsElement,
  cardElement,
  element,
  formElement,
  setElementText,
  submitElement,
} from '../elements/element.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import type { BotShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'

export function headersPanel(
  { api, ask, atEnd, may, toast }: PageContext,
  botId: string,
): PagePart<BotShape> {
  const names = element('p', { class: 'faint lead' })
  const result = statusLine('error note', 'alert')
  const lines = element('textarea', {
    rows: 3,
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'X-Tenant: its value',
  })
  const put = async (headers: Readonly<Record<string, string>> | null): Promise<void> => {
    await api.call('changeBot', { id: botId, body: { headers } })
    lines.value = ''
  }
  const replace = async (): Promise<string> => {
    await put(headersOf(lines.value))
    toast('The headers are replaced.')
    return ''
  }
  const remove = async (): Promise<string> => {
    const isWanted = await ask({
      title: 'Remove all headers?',
      text: 'An endpoint that demands them refuses the deliveries. Their values cannot be shown.',
      action: 'Remove the headers',
      isDanger: true,
    })
    if (!isWanted) return ''
    await put(null)
    toast('The headers are removed.')
    return ''
  }
  atEnd(() => {
    lines.value = ''
  })
  const removal = buttonElement('Remove all headers', () => result.run(remove), { style: 'danger' })
  const form = formElement(
    () => result.run(replace),
    element('label', {}, 'New headers in place of all, one in each line', lines),
    element(
      'div',
      { class: 'controls note' },
      buttonsElement(removal, submitElement('Replace the headers')),
    ),
    result.root,
  )
  const show = ({ headers }: BotShape): void => {
    removal.hidden = headers === undefined
    setElementText(names, sentenceOf(headers))
  }
  const root = cardElement('Headers of deliveries', names, may('manage') ? form : undefined)
  return { root, show }
}

function sentenceOf(headers: readonly string[] | undefined): string {
  if (headers === undefined) return 'Deliveries carry no headers of the platform.'
  return `Each delivery carries ${headers.join(', ')}. The values are secrets, and are shown nowhere.`
}

/** Reads lines with a name and a value each. Throws an error without the text, which is a secret. */
function headersOf(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (lines.length === 0) throw new Error('Expected one "Name: value" in each line.')
  return Object.fromEntries(
    lines.map((line, nth) => {
      const [, name, value] = /^([^:\s]+):\s*(.*?)\s*$/.exec(line) ?? []
      if (name === undefined || value === undefined) {
        throw new Error(`Expected one "Name: value" in each line. Line ${nth + 1} has none.`)
      }
      return [name, value]
    }),
  )
}
