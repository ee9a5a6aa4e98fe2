import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import {
  accessKeyHash,
  accessKeyText,
  newAccessKeyId,
  newAccessKeySecret,
  parseAccessKey,
} from '../../../src/access/access-key.ts'

test('a key is read back as its id and its secret', () => {
  for (let times = 0; times < 100; times++) {
    const key = { id: newAccessKeyId(randomBytes), secret: newAccessKeySecret(randomBytes) }
    assert.deepEqual(parseAccessKey(accessKeyText(key)), key)
  }
})

test('a text of any other shape is no key', () => {
  const id = '0123456789abcdef'
  const secret = 'A'.repeat(43)
  assert.notEqual(parseAccessKey(`pbk_${id}_${secret}`), undefined)
  for (const text of [
    '',
    `pbk_${id}_${secret}A`,
    `pbk_${id}_${secret.slice(1)}`,
    `pbk_${id.toUpperCase()}_${secret}`,
    `pbk_${id}-${secret}`,
    `PBK_${id}_${secret}`,
    `pbk_${id}_${secret}\n`,
    `pbk_${id}_${'+'.repeat(43)}`,
  ]) {
    assert.equal(parseAccessKey(text), undefined, text)
  }
})

test('what is stored of a secret is its SHA-256', () => {
  assert.equal(
    accessKeyHash('abc').toString('hex'),
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
})
