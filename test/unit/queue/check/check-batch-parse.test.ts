/** The check of updates compared with JSON.parse on drawn texts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { updateTypes } from '../../../../src/kit/update-types.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'
import { accept, refusalOf, refuse } from '../../../support/producers/update-verdict.ts'

/** Implements the rules of protocol.md §4 with JSON.parse, which cannot see duplicate keys. */
function isUpdateByParse(json: string): boolean {
  let update: unknown
  try {
    update = JSON.parse(json)
  } catch {
    return false
  }
  if (typeof update !== 'object' || update === null || Array.isArray(update)) return false
  const [entry, ...more] = Object.entries(update)
  if (entry === undefined || more.length > 0 || !updateTypes.includes(entry[0])) return false
  const isObject = typeof entry[1] === 'object' && entry[1] !== null && !Array.isArray(entry[1])
  return isObject && !/\p{Surrogate}/u.test(allTexts(json)) && depthOf(update) <= 64
}

/** Returns all texts of valid JSON, including those below a key that occurs again later, which JSON.parse hides. */
function allTexts(json: string): string {
  const texts = json.match(/"(?:[^"\\]|\\.)*"/g) ?? []
  return texts.map((text): string => JSON.parse(text)).join()
}

function depthOf(of: unknown): number {
  if (typeof of !== 'object' || of === null) return 0
  return (
    1 + Object.values(of).reduce((deepest: number, inner) => Math.max(deepest, depthOf(inner)), 0)
  )
}

test('every update that JSON.parse reads is accepted with the same content', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...updateTypes),
      fc.jsonValue({ maxDepth: 6, stringUnit: 'grapheme' }),
      fc.nat(4),
      (type, inner, indent) => {
        const whole = JSON.stringify({ [type]: { inner } }, null, indent)
        const { text } = accept(whole)
        assert.deepEqual(JSON.parse(`{${text}}`), JSON.parse(whole))
      },
    ),
    { numRuns: drawnRuns(1_000) },
  )
})

test('after any small change of an update the verdict is that of JSON.parse', () => {
  const pieces = [
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '0',
    '1',
    '.',
    'e',
    '-',
    '+',
    ' ',
    '\n',
    '\0',
    'u',
    'd',
    '8',
    'c',
    'true',
    'null',
    '\\u',
    '\\ud83d',
    '\\ude00',
    '\\n',
    'é',
    '😀',
    '"a":',
    ',"a":1',
    '"message"',
    '\u007f',
    '\u001f',
    '\ufeff',
  ]
  const change = fc.record({
    at: fc.nat(),
    removed: fc.nat(2),
    piece: fc.constantFrom('', ...pieces),
  })
  let accepted = 0
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme' }),
      fc.array(change, { maxLength: 3 }),
      (inner, changes) => {
        let json = JSON.stringify({
          message: { a: inner, b: [1.5, -2e3, true, null, '\\ud83d\\ude00'] },
        }).replaceAll('\\\\', '\\')
        for (const { at, removed, piece } of changes) {
          const from = at % (json.length + 1)
          json = (json.slice(0, from) + piece + json.slice(from + removed)).replaceAll(
            /\p{Surrogate}/gu,
            '?',
          )
        }
        const verdict = refusalOf(json)
        if (verdict === 'accepted') accepted++
        // JSON.parse sees a second "message" as the same key.
        if (!/"message"[^]*"message"/.test(json))
          assert.equal(verdict === 'accepted', isUpdateByParse(json), `${json} ${verdict}`)
      },
    ),
    { numRuns: drawnRuns(6_000) },
  )
  assert.ok(accepted > drawnRuns(1_000), 'the changes leave enough updates intact to say something')
})

test('random bytes are refused and cause nothing else', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => refuse(Buffer.from(bytes))),
    { numRuns: drawnRuns(2_000) },
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const verdict = refusalOf(
        Buffer.concat([Buffer.from('{"message":{"a":'), bytes, Buffer.from('}}')]),
      )
      assert.notEqual(verdict, '')
    }),
    { numRuns: drawnRuns(5_000) },
  )
})
