import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { examineCertificates } from '../../../../src/cli/doctor/examine-certificates.ts'
import { parseConfig } from '../../../../src/config/config.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import { issueCertificate, makeCertificate } from '../../../support/network/certificates.ts'

test('the doctor says until when a certificate is valid, and what is wrong with it', async (t) => {
  const directory = temporaryDirectory(t)
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 })
    return join(directory, name)
  }
  const { cert, key } = issueCertificate({
    name: 'x',
    from: '20200101000000Z',
    until: '20200201000000Z',
  })
  const place = ['--dir', join(directory, 'data')]
  const argv = [...place, '--http-cert', file('cert', cert), '--http-cert-key', file('key', key)]
  const options = parseConfig({ argv, env: {}, readFile: () => '' })
  const at = (month: number, day: number) =>
    examineCertificates(options, new FakeClock(Date.UTC(2020, month, day)))
  const looks = await Promise.all([at(0, 2), at(0, 20), at(1, 2), at(-1, 2)])
  const said = looks.map(([first]) => `${first?.level} ${first?.text}`)
  assert.match(said[0] ?? '', /^good .*is valid until 2020-02-01$/)
  assert.match(said[1] ?? '', /^warn .*is valid until 2020-02-01: renew it$/)
  assert.match(said[2] ?? '', /^bad .*expired on Feb .*2020.*: renew it$/)
  assert.match(said[3] ?? '', /^bad .*is not valid before Jan .*2020/)
  file('key', makeCertificate('x').key)
  assert.equal((await at(0, 2))[0]?.level, 'bad')
  const none = parseConfig({ argv: [], env: {}, readFile: () => '' })
  assert.deepEqual(await examineCertificates(none, new FakeClock()), [])
})
