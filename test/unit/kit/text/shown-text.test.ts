import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SecretFinder, secretsSearchedMax } from '../../../../src/kit/text/secret-finder.ts'
import { secretBytesMax, shownText } from '../../../../src/kit/text/shown-text.ts'

const secretToken = 'the+secret/token_1'
const secrets = new SecretFinder([secretToken, '/hooks/bot4711%3AAAsecretOfTheBot'])
const token = `4711:AA${'-b_C9'.repeat(7)}`

function shown(said: string, bytesMax = 1_024): string {
  return shownText(said, { bytesMax, secrets })
}

function codeOf(character: string, digits: number): string {
  return character.charCodeAt(0).toString(16).padStart(digits, '0')
}

/** Each character as `spelled` writes it, or only those that are no letters and digits. */
function spellings(text: string): readonly string[] {
  const each: readonly ((character: string) => string)[] = [
    (character) => character,
    (character) => `%${codeOf(character, 2)}`,
    (character) => `%${codeOf(character, 2).toUpperCase()}`,
    (character) => `%25${codeOf(character, 2)}`,
    (character) => String.raw`\u${codeOf(character, 4)}`,
    (character) => String.raw`\\u${codeOf(character, 4).toUpperCase()}`,
    (character) => String.raw`\x${codeOf(character, 2)}`,
    (character) => `&#${character.charCodeAt(0)};`,
    (character) => `&#${String(character.charCodeAt(0)).padStart(16, '0')};`,
    (character) => String.raw`\u{${codeOf(character, 1)}}`,
    (character) => String.raw`\\u{${codeOf(character, 8)}}`,
    (character) => `%u${codeOf(character, 4)}`,
    (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`,
    (character) => `&#x${codeOf(character, 2)};`,
    (character) => `${character}\u200b`,
    (character) => `${character}\u{e0041}`,
    (character) => `${character}\ufe0f`,
  ]
  return each.flatMap((spelled) => [
    text.replaceAll(/./g, spelled),
    text.replaceAll(/[^\da-z]/gi, spelled),
  ])
}

test('secrets and tokens are blanked out in each spelling that an endpoint may use', () => {
  for (const secret of [secretToken, token]) {
    // Without its semicolon, a number must not be followed by a digit.
    const bare = secret.replaceAll(/./g, (character) => `&#${character.charCodeAt(0)}`)
    for (const said of [...spellings(secret), bare])
      assert.match(shown(`no ${said} here`), /^no \*\*\*\ufffd? here$/)
    const json = JSON.stringify(JSON.stringify(secret))
    assert.doesNotMatch(shown(json.replaceAll('/', String.raw`\/`)), /secret|4711/)
  }
  assert.equal(shown('no &quot;the+secret&sol;token_1&quot;'), 'no &quot;***&quot;')
  // Without its semicolon, a number ends at what is no digit.
  assert.equal(shown('no the&#43secret&#47token&#95;1 here'), 'no *** here')
})

test('secrets and tokens are blanked out in base64 and base64url, wherever in it they begin', () => {
  for (const secret of [secretToken, token]) {
    for (const before of ['', 'a', 'ab', 'abc']) {
      const bytes = Buffer.from(`${before}${secret} and more`)
      assert.equal(shown(`got ${bytes.toString('base64url')}`), 'got ***')
      assert.match(shown(`got ${bytes.toString('base64')}.`), /^got \*\*\*=*\.$/)
      assert.equal(shown(`/x${bytes.toString('base64url')}`), '***')
    }
  }
  assert.equal(
    shown('got dGhpcyBpcyBubyBzZWNyZXQgYXQgYWxs'),
    'got dGhpcyBpcyBubyBzZWNyZXQgYXQgYWxs',
  )
})

test('a long secret is blanked out in base64 that has lines', () => {
  const long = words(256)
  const options = { bytesMax: 1_024, secrets: new SecretFinder([long]) }
  for (const lineEnd of ['\n', '\r\n', inJson('\r\n'), inJson('\n'), inJson(inJson('\r\n'))]) {
    for (const [length, before] of [
      [60, ''],
      [64, 'a'],
      [76, 'ab'],
    ] as const) {
      const encoded = Buffer.from(`${before}${long}.`).toString('base64')
      const lines = encoded.match(new RegExp(`.{1,${length}}`, 'g')) ?? []
      const shownLines = shownText(`got ${lines.join(lineEnd)}, so`, options)
      assert.match(shownLines, /^got \*\*\*=*, so$/, JSON.stringify([lineEnd, length]))
    }
  }
  const sentence = `${'long-word'.repeat(9)} and more`
  assert.equal(shownText(sentence, options), sentence)
})

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

test('nothing is shown of a text that would have to be searched for very many secrets', () => {
  const many = Array.from({ length: secretsSearchedMax + 1 }, (_, nth) => `secret-${nth}`)
  const options = { bytesMax: 100, secrets: new SecretFinder(many) }
  assert.equal(shownText('says no', options), '***')
  const fewer = { bytesMax: 100, secrets: new SecretFinder(many.slice(1)) }
  assert.equal(shownText('says secret-7, no', fewer), 'says ***, no')
})

test('wherever a text is cut, no part of a secret is shown, in whatever spelling', () => {
  const spelled = encodeURIComponent(secretToken)
  for (let before = 0; before < 200; before++) {
    const said = `${'.'.repeat(before)}${spelled}${'.'.repeat(2 * secretBytesMax)}`
    assert.match(shown(said, 100), /^\.*(?:\*\*\*)?\.*$/)
    // Here the beginning of the secret is the last that is read; what shrinks before it must not draw it nearer.
    const cut = `${'\u{e0041}'.repeat((secretBytesMax + 100 - before) >> 2)}${secretToken}`
    assert.doesNotMatch(shown(cut, 100), /th/)
  }
})

test('what is shown has the bytes that were asked for, and no character is cut in two', () => {
  assert.equal(shown('x'.repeat(100_000)).length, 1_024)
  assert.equal(shown('aäöü', 4), 'aä')
  assert.equal(shown('ab😀', 5), 'ab')
  assert.equal(shown('', 5), '')
  assert.equal(shown('a', 0), '')
})

test('of a secret whose spelling is longer than all that is read, no part is shown', () => {
  const spelled: readonly ((text: string) => string)[] = [
    escaped,
    (text) => text.replaceAll(/./g, (character) => String.raw`\\\\u${codeOf(character, 4)}`),
    (text) => text.replaceAll(/./g, (character) => `%2525${codeOf(character, 2)}`),
    (text) => text.replaceAll(/./g, (character) => `&#x${codeOf(character, 8)};`),
    (text) => escaped(Buffer.from(text).toString('base64')),
  ]
  const parts = ['x'.repeat(1_500), 'ab'.repeat(750), 'aab'.repeat(500), words(1_500)]
  for (const secret of parts) {
    const finder = new SecretFinder([secret])
    for (const [nth, spell] of spelled.entries()) {
      for (const before of [0, 1, 5, 37]) {
        const said = `${'.'.repeat(before)}${spell(secret)}${'.'.repeat(2 * secretBytesMax)}`
        const result = shownText(said, { bytesMax: 512, secrets: finder })
        assert.match(result, /^\.*\*\*\*\.*$/, `${nth} ${secret.slice(0, 9)} ${before}`)
      }
    }
  }
})

/** A text without a period. */
function words(length: number): string {
  let text = ''
  for (let nth = 0; text.length < length; nth++) text += `${(nth * 7_919) % 1_000_003}-`
  return text.slice(0, length)
}

function escaped(text: string): string {
  return text.replaceAll(/./g, (character) => String.raw`\u${codeOf(character, 4)}`)
}
