import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutSecrets } from '../../../src/webhook/without-secrets.ts'

const basic = Buffer.from('user:pass/word').toString('base64')
const secrets = {
  path: '/hooks/bot4711%3AAAsecretOfTheBot?key=abcdefgh',
  headers: [
    'Content-Type',
    'application/json',
    'Authorization',
    `Basic ${basic}`,
    'X-Secret-Token',
    's3cret',
  ],
}

test('what an endpoint repeats of a request in its status line is blanked out', () => {
  for (const [said, shown] of [
    ['bad token s3cret, want other', 'bad token ***, want other'],
    ['s3\u0001cret', '***'],
    [`got Basic ${basic}`, 'got Basic ***'],
    ['no user:pass/word or pass/word', 'no *** or ***'],
    ['no bot 4711:AAsecretOfTheBot', 'no bot 4711:***'],
    ['no /hooks/bot4711:AAsecretOfTheBot?key=abcdefgh', 'no ***'],
    ['no bot4711%3AAAsecretOfTheBot here', 'no *** here'],
    ['wrong abcdefgh in hooks', 'wrong *** in hooks'],
    ['Bad Gateway: application/json', 'Bad Gateway: application/json'],
  ]) {
    assert.equal(withoutSecrets(said ?? '', secrets), shown)
  }
})
