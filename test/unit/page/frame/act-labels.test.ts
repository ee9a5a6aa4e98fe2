/** One word for one act: on the page, in its questions and toasts, and in what the command line says of its commands. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { commandTable } from '../../../../src/modules/command-table.ts'
import { actLabels } from '../../../../src/page/frame/act-labels.ts'

const page = new URL('../../../../../src/page/', import.meta.url)

/** The word of each verb that the calls have. */
const words = {
  add: 'Add',
  cancel: 'Cancel',
  check: 'Check',
  delete: 'Remove',
  drop: 'Drop',
  erase: 'Erase',
  pause: 'Pause',
  push: 'Push',
  remove: 'Remove',
  replay: 'Deliver',
  resume: 'Resume',
  retry: 'Deliver',
  revoke: 'Revoke',
  rotate: 'Rotate',
} as const

/** An act on these things themselves: `remove all updates`, and not `remove the bot with its updates`. */
function ofThese(verb: string, things: string): RegExp {
  return new RegExp(
    String.raw`\b${verb}\w* (?:(?:the|a|an|all|one|these|some|\d+|…) )*(?:${things})\b`,
    'i',
  )
}

/** Other words for the same, and what is said in place of them. */
const unwanted = [
  [/\breject/i, 'refuse, or fail'],
  [/\brenew/i, 'rotate'],
  [/\b[Dd]elet(e|es|ed|ing|ion)\b/, 'remove'],
  [/\bdiscard|\bthrow/i, 'drop'],
  [
    /\b(push|send|sent|resend|resent|replay)\w*\b[^.]* again\b|\b(resen[dt]|redeliver|replayed)/i,
    'deliver again',
  ],
  [/\bretri(es|ed)\b|\bRetry\b|\btr(y|ied) (it )?(now|at once)\b/, 'deliver now'],
  [ofThese('remov', 'updates?|dead letters?|payloads?'), 'drop, or erase'],
  [ofThese('drop', 'bots?|webhooks?|relays?|keys?|links?|headers?'), 'remove, or revoke'],
  [ofThese('revok', 'signing|webhooks?|bots?|tokens?'), 'remove'],
  [/\bunpause|\bcontinue/i, 'resume'],
  [/\b(make|makes|made|issue|issues|issued)\b[^.]*\b(keys?|links?)\b/i, 'create'],
] as const satisfies readonly (readonly [RegExp, string])[]

function sourcesOfPage(): readonly (readonly [file: string, source: string])[] {
  return readdirSync(page, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => [file, readFileSync(new URL(file, page), 'utf8')] as const)
}

/** Returns the literals that are for people: they have a space, or begin with a capital. */
function textsIn(source: string): readonly string[] {
  const code = source.replaceAll(/\/\*.*?\*\//gs, '').replaceAll(/^\s*\/\/.*$/gm, '')
  return Array.from(code.matchAll(/(['"`])((?:\\.|(?!\1)[^\\])*)\1/gs), ([, , text = '']) =>
    text.replaceAll(/\$\{[^}]*\}/g, '…'),
  ).filter((text) => /^[A-Z]|[a-z] [a-z]/.test(text))
}

function assertNoneIn(where: string, text: string): void {
  for (const [pattern, word] of unwanted)
    assert.doesNotMatch(text, pattern, `${where}: say ${word}: ${text}`)
}

test('each button has the word of its call', () => {
  for (const [id, label] of Object.entries(actLabels)) {
    const word = Object.entries(words).find(([verb]) => id.startsWith(verb))?.[1]
    if (word !== undefined) assert(label.startsWith(word), `${id}: ${label}`)
  }
})

test('the texts of the page have no other word for an act', () => {
  const texts = sourcesOfPage().flatMap(([file, source]) =>
    textsIn(source).map((text) => [file, text] as const),
  )
  assert(texts.length > 400, 'the texts are found')
  for (const [file, text] of texts) assertNoneIn(file, text)
})

/** A row of a list has no room for a longer one, a question is answered with no, headers are a setting of a bot, and a filter says which. */
const ownLabels: readonly string[] = ['Pause', 'Cancel', 'Remove all headers', 'Erase these']

test('a button that acts gets its text from the table', () => {
  const label = new RegExp(
    String.raw`(?:buttonElement\(\s*|label: |submit: )'((?:${Object.values(words).join('|')})\b[^']*)'`,
    'g',
  )
  const own = sourcesOfPage()
    .flatMap(([, source]) => Array.from(source.matchAll(label), ([, text = '']) => text))
    .filter((text) => !ownLabels.includes(text))
  assert.deepEqual(own, [])
})

test('the command line has the same words', () => {
  for (const row of commandTable) assertNoneIn(row.name, row.sentence)
})

test('another word is found', () => {
  for (const text of [
    'The webhook rejects it.',
    'Renew the token',
    'Remove update 7?',
    'Delete the bot',
    'It is pushed again as 9',
    '3 keys are tried now.',
    'Drop the webhook',
  ])
    assert.throws(() => assertNoneIn('here', text), text)
})
