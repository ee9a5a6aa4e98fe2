import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressesInHosts, sharedLookup } from '../../../../src/delivery/endpoint/host-lookup.ts'

test('callers that look up one name at a time share the look-up and its failure', async () => {
  const asked: string[] = []
  const ends: ((error?: Error) => void)[] = []
  const lookup = sharedLookup((host) => {
    asked.push(host)
    return new Promise((resolve, reject) => {
      ends.push((error) => (error === undefined ? resolve(['192.0.2.1']) : reject(error)))
    })
  })
  const first = [lookup('one.example'), lookup('one.example'), lookup('two.example')]
  assert.deepEqual(asked, ['one.example', 'two.example'])
  ends[0]?.()
  ends[1]?.(new Error('no'))
  const results = await Promise.allSettled(first)
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected'],
  )
  void lookup('one.example')
  void lookup('two.example')
  assert.equal(asked.length, 4, 'what is over is not shared any more')
})

test('the hosts file lists addresses of both families, in any case, without comments', () => {
  const text = [
    '127.0.0.1 localhost',
    '10.0.0.7\tBot.example  bot # not.example',
    '# 10.0.0.8 bot.example',
    'fd00::7 bot.example.',
    'nonsense bot.example',
    'fe80::7%eth0 bot.example',
    '',
  ].join('\n')
  assert.deepEqual(addressesInHosts(text, 'bot.EXAMPLE.'), ['10.0.0.7', 'fd00::7'])
  assert.deepEqual(addressesInHosts(text, 'bot'), ['10.0.0.7'])
  assert.deepEqual(addressesInHosts(text, 'not.example'), [])
  assert.deepEqual(addressesInHosts(text, '10.0.0.7'), [])
})
