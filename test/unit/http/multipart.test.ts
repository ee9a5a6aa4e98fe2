import assert from 'node:assert/strict'
import { test } from 'node:test'
import { multipart, part, parts, read, refusalOf } from '../../support/bots/read-params.ts'

test('an attached file is found under its name, with a file name or without', async () => {
  const attach = part('certificate', 'attach://c1')
  const withName = parts(attach, part('c1', 'PEM', '; filename="c"'))
  const without = parts(part('c1', 'PEM'), attach)
  for (const body of [withName, without]) {
    assert.equal((await read({ type: multipart, body })).file('certificate')?.toString(), 'PEM')
  }
  const missing = await read({ type: multipart, body: parts(attach) })
  assert.equal(missing.file('certificate'), undefined)
  const itself = await read({ query: 'certificate=attach://certificate' })
  assert.equal(itself.file('certificate'), undefined)
})

test('multipart of every unusual shape is read', async () => {
  const shapes: readonly string[] = [
    '--B\r\ncontent-disposition:form-data;name="a"\r\n\r\n1\r\n--B--',
    '--B\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--B--\r\nepilogue',
    '--B\r\nCONTENT-DISPOSITION: FORM-DATA; NAME="a"\r\n\r\n1\r\n--B--\r\n',
    '--B\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; name="a"\r\nContent-Length: 1\r\n\r\n1\r\n--B--\r\n',
    'preamble\r\n--B \t\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--B--\r\n',
    '\r\n--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--B--\r\n',
    '--B\nContent-Disposition: form-data; name="a"\n\n1\n--B--\n',
    '--B\r\nX-Other: y\r\n\r\nnameless\r\n--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--B--',
    '--B\r\nContent-Disposition: form-data; x="; name=b"; name="a"\r\n\r\n1\r\n--B--',
  ]
  for (const body of shapes) {
    const params = await read({ type: multipart, body })
    assert.deepEqual([params.text('a'), params.file('a')], ['1', undefined], body)
  }
  for (const fileName of ['; filename=c.pem', ';FileName=""', `; filename*=UTF-8''c.pem`]) {
    const params = await read({ type: multipart, body: parts(part('a', '1', fileName)) })
    assert.deepEqual([params.text('a'), params.file('a')?.toString()], [undefined, '1'], fileName)
  }
})

test('content that looks like a boundary is content', async () => {
  for (const content of ['--B', 'x--B--', '\r\n--Bx', '\r\n--', '\n', '\r\n']) {
    const body = parts(part('a', `x${content}y`))
    assert.equal((await read({ type: multipart, body })).text('a'), `x${content}y`)
  }
})

test('broken multipart is refused with the reason', async () => {
  const missing = 'expected a boundary in the Content-Type of multipart form data'
  const cases: readonly (readonly [type: string, body: string, reason: string])[] = [
    ['multipart/form-data', '--B\r\n', missing],
    ['multipart/form-data; boundary=', '--B--\r\n', missing],
    ['multipart/form-data; boundary=""', '--B--\r\n', missing],
    [`multipart/form-data; boundary=${'b'.repeat(257)}`, '--B--\r\n', 'at most 256'],
    [multipart, '--C--\r\n', 'does not occur'],
    [multipart, 'x--B--\r\n', 'does not occur'],
    [multipart, '--B\r\nContent-Disposition: form-data; name="a"', 'within the headers'],
    [multipart, part('a', '1').toString(), 'without its closing boundary'],
  ]
  for (const [type, body, reason] of cases) {
    const refusal = await refusalOf({ type, body })
    assert.match(refusal, /^400 Bad Request: /)
    assert.ok(refusal.includes(reason), `${refusal} for ${body}`)
  }
})
