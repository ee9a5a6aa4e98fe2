/** What a text of the search stands for, and what matches it. Pure. */

interface NamedBot {
  readonly bot_id: number
  readonly username: string
  readonly first_name: string
}

/**
 * Returns what the server is asked for: people paste an address of a webhook, whose path may be a secret, or a token, of which only
 * the id may be sent.
 */
export function searchOf(text: string): string {
  const tidy = text.trim().replace(/^@/, '')
  const [, host] = /^[a-z]+:\/\/(?:[^/@]*@)?([^/?#]*)/i.exec(tidy) ?? []
  const [, id] = /^(?:bot)?(\d{1,16}):/.exec(tidy) ?? []
  return (host ?? id ?? tidy).slice(0, 64)
}

/** Returns the place of a bot among those that were found: what the reader has named in full is 0, then by what begins with the text. */
export function rankOf(
  { bot_id: id, username, first_name: name }: NamedBot,
  search: string,
): number {
  const lower = search.toLowerCase()
  const names = [`${id}`, username.toLowerCase(), name.toLowerCase()]
  if (names.includes(lower)) return 0
  const nth = names.findIndex((each) => each.startsWith(lower))
  return nth < 0 ? names.length + 1 : nth + 1
}

/** Whether each word of a text begins a word of a name. */
export function hasWords(name: string, text: string): boolean {
  const names = wordsOf(name)
  return wordsOf(text).every((word) => names.some((each) => each.startsWith(word)))
}

function wordsOf(text: string): readonly string[] {
  return text
    .toLowerCase()
    .split(/[\s/…]+/)
    .filter((word) => word !== '')
}
