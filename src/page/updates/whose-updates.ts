/** What a reader means by a text in the field for a chat, a user or an ordering key. Pure. */

/** What the server is asked for; neither: all updates. */
export interface Whose {
  /** Of a user or a chat, in digits. */
  readonly user?: string
  readonly ordering_key?: string
  /** What the reader should know of this, beside the field. */
  readonly note?: string
  /** Whether it can be nothing, so that the server need not be asked. */
  readonly isWrong?: true
}

/** As the server has it: up to 19 digits. */
const idPattern = /^-?[1-9]\d{0,18}$/
const pathOfId = /^(?:[a-z_]+\.)*(chat|from|user)\.id=(.*)$/

export function whoseUpdates(typed: string): Whose {
  const text = typed.trim()
  if (text === '') return {}
  if (idPattern.test(text)) return { user: text }
  const [, , id] = pathOfId.exec(text) ?? []
  if (id !== undefined) return idPattern.test(id) ? { ordering_key: text } : wrong(id)
  // Whoever writes a path, or a key as it is stored, knows that it is a key.
  if (text.includes('=')) return { ordering_key: text }
  if (/^-?\d+$/.test(text) || /^@|\s/.test(text)) return wrong(text)
  return {
    ordering_key: text,
    note: 'Taken for an ordering key. A chat or a user is found by its id, such as 7003.',
  }
}

function wrong(text: string): Whose {
  const note = /^-?\d+$/.test(text)
    ? 'An id has up to 19 digits, and the first is not 0.'
    : 'A chat or a user is found by its id in digits, such as 7003, and not by a name.'
  return { note, isWrong: true }
}
