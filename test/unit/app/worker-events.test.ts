import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventTarget } from '../../../src/app/worker-events.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const secret = Buffer.alloc(32, 7).toString('base64')
const eventsUrl = 'https://alerts.example/hook'

test('each line of the secret file is a key that signs, and without an address there are none', async (t) => {
  const file = join(temporaryDirectory(t), 'secrets')
  writeFileSync(file, `whsec_${secret}\n\n whsec_${secret} \r\n`)
  const target = await eventTarget({ eventsUrl, eventsSecretFile: file }, 'east')
  assert.deepEqual(
    target?.keys.map((key) => key.secret),
    [secret, secret],
  )
  assert.equal(target?.idPrefix, 'event-east-')
  const none = { eventsUrl: undefined, eventsSecretFile: undefined }
  assert.equal(await eventTarget(none, undefined), undefined)
})

test('secrets that cannot be used are refused by the name of their file, and never shown', async (t) => {
  const file = join(temporaryDirectory(t), 'secrets')
  const short = `whsec_${Buffer.alloc(8, 7).toString('base64')}`
  const many = Array.from({ length: 5 }, () => `whsec_${secret}`).join('\n')
  for (const text of ['', secret, short, `whsec_${secret}\nother`, many]) {
    writeFileSync(file, text)
    await assert.rejects(eventTarget({ eventsUrl, eventsSecretFile: file }, undefined), (error) => {
      assert(error instanceof Error && error.message.includes(file))
      return !error.message.includes(secret)
    })
  }
  const missing = { eventsUrl, eventsSecretFile: `${file}.none` }
  await assert.rejects(eventTarget(missing, undefined), /cannot read the secrets/)
})
