import assert from 'node:assert/strict'
import { test } from 'node:test'
import { visible, visibleJson } from '../../../../src/kit/text/visible.ts'

/** By name, so that nothing of this file is invisible. */
const invisible: Readonly<Record<string, string>> = {
  'U+0000': '\0',
  'U+001B, escape': '\u001b',
  'U+0085, a line end of C1': '\u0085',
  'U+009B, an introducer of C1': '\u009b',
  'U+00AD, soft hyphen': '\u00ad',
  'U+034F, grapheme joiner': '\u034f',
  'U+115F, filler': '\u115f',
  'U+180E': '\u180e',
  'U+200B, zero width space': '\u200b',
  'U+200D, joiner': '\u200d',
  'U+200F, right-to-left mark': '\u200f',
  'U+2028, line separator': '\u2028',
  'U+202E, right-to-left override': '\u202e',
  'U+2060, word joiner': '\u2060',
  'U+2069, isolate': '\u2069',
  'U+2800, Braille blank': '\u2800',
  'U+3164, filler': '\u3164',
  'U+D800, half of a pair': '\ud800',
  'U+E000, private': '\ue000',
  'U+FEFF, byte order mark': '\ufeff',
  'U+FFA0, filler': '\uffa0',
  'U+FFF9, annotation': '\ufff9',
  'U+FFFC, object': '\ufffc',
  'U+FFFF, no character': '\uffff',
  'U+1D159': '\u{1d159}',
  'U+E0041, tag': '\u{e0041}',
  'U+E0100, variation selector 17': '\u{e0100}',
  'U+10FFFF': '\u{10ffff}',
}

test('each character that nobody can see becomes a mark, and those of the first variation selectors nothing', () => {
  for (const [name, character] of Object.entries(invisible)) {
    assert.equal(visible(`a${character}b`), 'a\ufffdb', name)
    assert.equal(visible(`a${character}b`, '?'), 'a?b', name)
  }
  for (const selector of ['\ufe00', '\ufe0e', '\ufe0f'])
    assert.equal(visible(`❤${selector}b`), '❤b')
  for (const blank of ['\u00a0', '\u1680', '\u2003', '\u202f', '\u3000']) {
    assert.equal(visible(`a${blank}b`), 'a b')
  }
})

test('what people write stays: letters of all scripts, accents, signs and emoji', () => {
  const text = 'Grüße, Привет, שלום, مرحبا, 你好, नमस्ते, e\u0301, 😀, 1 € ± §'
  assert.equal(visible(text), text)
  assert.equal(visibleJson(JSON.stringify(text)), JSON.stringify(text))
})

test('JSON keeps its value while each of these characters is escaped', () => {
  const values = [...Object.values(invisible), '\ufe0f', '\u00a0', '\u3000', 'a b']
  const json = JSON.stringify({ values }, undefined, 2)
  const shown = visibleJson(json)
  assert.deepEqual(JSON.parse(shown), { values })
  assert.match(shown, /^[\n -~]*$/)
  assert.equal(shown.split('\n').length, json.split('\n').length)
})
