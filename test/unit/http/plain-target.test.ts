import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { plainTarget } from '../../../src/http/plain-target.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'

test('every spelling of a target becomes the plain one, and its query stays as it was sent', () => {
  for (const [sent, plain] of [
    ['/v1/bots/7/%74ail', '/v1/bots/7/tail'],
    ['/%76%31/bots/%37/t%61i%6C?payload=%74rue', '/v1/bots/7/tail?payload=%74rue'],
    ['/bot7%3Aa%2Db%5F%7E%2e/getMe', '/bot7:a-b_~./getMe'],
    ['http://h:8082/v1/events?last=1', '/v1/events?last=1'],
    ['HTTPS://user:word@[::1]:1/v1/updates', '/v1/updates'],
    ['http://h?last=1', '/?last=1'],
    ['http://h', '/'],
    ['/v1/events#x', '/v1/events'],
    ['/v1/events?last=1#%74', '/v1/events?last=1'],
    ['http://h/%74#/x?y', '/t'],
    ['', '/'],
  ]) {
    assert.equal(plainTarget(sent ?? ''), plain, sent)
  }
})

test('what is another target stays another one', () => {
  for (const target of [
    '/v1%2Fevents',
    '/v1/%2565vents',
    '/v1/events%3F',
    '/v1/events%23',
    '/v1/events%00',
    '/v1/events;x',
    '/v1/events/',
    '//v1/events',
    '/V1/events',
    '/v1/./events',
    '/x/../v1/events',
    '/v1/events%',
    '/v1/events%6',
    '/v1/%zzevents',
    '/v1/%%36%35vents',
    '/x?http://h/v1/events',
    '*',
  ]) {
    assert.equal(plainTarget(target), target)
  }
  assert.equal(plainTarget('/v1/%2e%2e/events'), '/v1/../events')
})

test('a plain target stays as it is, and its path has the same characters to a decoder', () => {
  const character = fc.constantFrom(...'%2657419abeAFvt/:.?#'.split(''))
  fc.assert(
    fc.property(fc.string({ unit: character }), (text) => {
      const plain = plainTarget(`/${text}`)
      assert.equal(plainTarget(plain), plain)
      const [path = ''] = `/${text}`.split(/[?#]/, 1)
      assert.equal(decodedOnce(plain.split('?', 1)[0] ?? ''), decodedOnce(path))
    }),
    { numRuns: drawnRuns(2_000) },
  )
})

/** Decodes each byte by itself, so that there is no invalid text. */
function decodedOnce(path: string): string {
  return path.replaceAll(/%([\da-f]{2})|[\s\S]/gi, (each: string, hex?: string) =>
    hex === undefined ? each : String.fromCharCode(Number.parseInt(hex, 16)),
  )
}
