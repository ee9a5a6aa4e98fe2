import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readEventSecrets } from '../../../../src/features/events/event-secrets.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const secret = Buffer.alloc(32, 7).toString('base64')

test('each line of the secret file is a secret, whatever its line breaks are', (t) => {
  const eventsSecretFile = join(temporaryDirectory(t), 'secrets')
  writeFileSync(eventsSecretFile, `whsec_${secret}\n\n whsec_${secret} \r\n`)
  assert.deepEqual(readEventSecrets({ eventsSecretFile }), [`whsec_${secret}`, `whsec_${secret}`])
  assert.deepEqual(readEventSecrets({ eventsSecretFile: undefined }), [])
})

test('secrets that cannot be used are refused by the name of their file, and never shown', (t) => {
  const file = join(temporaryDirectory(t), 'secrets')
  const short = `whsec_${Buffer.alloc(8, 7).toString('base64')}`
  const many = Array.from({ length: 5 }, () => `whsec_${secret}`).join('\n')
  for (const text of ['', secret, short, `whsec_${secret}\nother`, many]) {
    writeFileSync(file, text)
    assert.throws(
      () => readEventSecrets({ eventsSecretFile: file }),
      (error) => {
        assert(error instanceof Error && error.message.includes(file))
        return !error.message.includes(secret)
      },
    )
  }
  const missing = { eventsSecretFile: `${file}.none` }
  assert.throws(() => readEventSecrets(missing), /cannot read the secrets/)
})
