/**
 * Bodies that are made to be slow to parse. None may take much longer than an honest body. The honest bodies are of
 * slow kinds, and which of them is the slowest depends on the version of Node.js.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { deflateRawSync, gzipSync } from 'node:zlib'
import { bodyGrowthMax, jsonNestingMax, jsonValuesMax } from '../../../src/bot-api/params.ts'
import { partHeaderLinesMax, partHeaderParametersMax } from '../../../src/http/multipart.ts'
import { bodyGrowthFreeBytes } from '../../../src/http/body.ts'
import { parameterBytesMax, parametersMax, partHeadBytesMax } from '../../../src/kit/limits.ts'
import {
  form,
  json,
  multipart,
  part,
  parts,
  read,
  refusalOf,
  type Request,
} from '../../support/bots/read-params.ts'

const size = parameterBytesMax
/** The size limit of a body with a certificate. */
const largeSize = 4 * size

/** The longest time that is allowed, in multiples of the slowest honest body's. These shapes took 6 to 30 times as long. */
const slownessMax = 3

function filled(start: string, middle: string, end: string, bytes = size): string {
  const room = bytes - start.length - end.length
  return start + middle.repeat(Math.ceil(room / middle.length)).slice(0, room) + end
}

const head = '--B\r\nContent-Disposition: form-data; name="a"'
const honest: readonly Request[] = [
  { type: json, body: filled('{"a":"', 'é', '"}', size / 2) },
  { type: form, body: filled('a=', '%D0%9F+', '') },
  {
    type: multipart,
    body: filled(
      `${head.replace('"a"', 'certificate')}; filename=x\r\n\r\n`,
      `${'MIIB'.repeat(16)}\n`,
      '\r\n--B--',
      largeSize,
    ),
    mayHoldCertificate: true,
  },
]
const slow: Readonly<Record<string, Request>> = {
  'arrays nested as deep as the body is long': {
    type: json,
    body: '{"a":' + '['.repeat(size / 2 - 5) + ']'.repeat(size / 2 - 5) + '}',
  },
  'the same, called a form': {
    type: form,
    body: '{"a":' + '['.repeat(size / 2 - 5) + ']'.repeat(size / 2 - 5) + '}',
  },
  'empty arrays': { type: json, body: filled('{"a":[', '[],', '0]}') },
  'the allowed number of new keys, each long': {
    type: json,
    body: `{${Array.from({ length: jsonValuesMax - 2 }, (_, nth) => `"${String(nth).padEnd(250, 'x')}":1`).join()}}`,
  },
  'the allowed number of objects': {
    type: json,
    body: `{"a":[${Array.from({ length: jsonValuesMax / 2 - 2 }, (_, nth) => `{"${nth}":1}`).join()}]}`,
  },
  'a number of a million digits': { type: json, body: filled('{"offset":', '9', '}') },
  'a name of a million characters': { type: json, body: filled('{"', 'k', '":1}') },
  'escapes alone': { type: json, body: filled('{"a":"', '\\u0001', '"}', size - 4) },
  'a form of plus signs': { type: form, body: filled('offset=', '+', '') },
  'a form of percent signs': { type: form, body: filled('offset=', '%', '') },
  'a form of escapes': { type: form, body: filled('offset=', '%C3%A9', '') },
  'a form of characters and a plus sign': {
    type: form,
    body: filled('offset=', 'é', '+', size / 2),
  },
  'a form of ampersands': { type: form, body: filled('', '&', 'a=1') },
  'a form of parameters': { type: form, body: filled('', 'a=1&', '') },
  'a form of braces': { type: form, body: filled('', '{', '') },
  'a body of dashes under the boundary "-"': {
    type: 'multipart/form-data; boundary=-',
    body: filled('---\r\nx: y\r\n\r\nx', '-', 'x'),
  },
  'a boundary of equal characters, of which the body is': {
    type: `multipart/form-data; boundary=${'a'.repeat(250)}`,
    body: filled('--', 'a', 'x'),
  },
  'lines that begin like the boundary': {
    type: multipart,
    body: filled(`${head}\r\n\r\n`, '\n--Bx', ''),
  },
  'blanks after the boundary': {
    type: multipart,
    body: filled(`${head}\r\n\r\n`, `\n--B${' '.repeat(30)}x`, ''),
  },
  'empty parts': { type: multipart, body: filled('', '--B\n\n\n', '') },
  'the allowed number of parts, with all headers they may have': {
    type: multipart,
    body:
      (
        '--B\n' +
        `content-disposition:x${';a=b'.repeat(partHeaderParametersMax)}\n`.repeat(
          Math.floor(size / parametersMax / (22 + 4 * partHeaderParametersMax)),
        ) +
        '\n\n'
      ).repeat(parametersMax - 1) + '--B--',
  },
  'header lines': { type: multipart, body: filled('--B\r\n', 'a:b\n', '') },
  'parameters of a header': { type: multipart, body: filled(head, ';a=b', '\r\n\r\n') },
  'quotes that do not end': { type: multipart, body: filled(head, ';a="\\', '\r\n\r\n') },
  'a header of one line': { type: multipart, body: filled(head, ' ', '\r\n\r\n') },
  'a certificate of dashes': {
    type: multipart,
    body: filled(`${head}; filename="x"\r\n\r\n`, '\n-', '\n--B--', largeSize),
    mayHoldCertificate: true,
  },
  'a large text where a certificate is expected': {
    type: multipart,
    body: Buffer.concat([
      Buffer.from(`${head}\r\n\r\n`),
      Buffer.alloc(largeSize - 200, 'é'),
      Buffer.from(
        '\r\n--B\r\nContent-Disposition: form-data; name=certificate; filename=x\r\n\r\nx\r\n--B--',
      ),
    ]),
    mayHoldCertificate: true,
  },
}

test('no body of parameters takes much longer to read than a normal one of its size', async (t) => {
  let honestMs = await slowestHonest()
  t.diagnostic(`the slowest honest body: ${honestMs.toFixed(1)} ms`)
  let fairMs = slownessMax * honestMs
  for (const [name, request] of Object.entries(slow)) {
    let tookMs = await fastest(request, fairMs)
    if (tookMs >= fairMs) {
      // The machine may have become slower since the start.
      honestMs = await slowestHonest()
      fairMs = slownessMax * honestMs
      tookMs = await fastest(request, fairMs)
    }
    t.diagnostic(`${name}: ${tookMs.toFixed(1)} ms`)
    assert.ok(tookMs < fairMs, `${name}: ${tookMs} ms, and ${fairMs} ms are fair`)
  }
})

async function slowestHonest(): Promise<number> {
  let slowestMs = 0
  for (const request of honest) slowestMs = Math.max(slowestMs, await fastest(request, 0))
  return slowestMs
}

/** Returns the least CPU time of five tries, or of up to ten tries if a busy machine keeps it above `fairMs`. */
async function fastest(request: Request, fairMs: number): Promise<number> {
  let bestMs = Number.POSITIVE_INFINITY
  for (let times = 0; times < 5 || (times < 10 && bestMs >= fairMs); times++) {
    const before = process.cpuUsage()
    try {
      const params = await read(request)
      params.text('a')
      params.integer('offset', { default: 0, min: 0, max: 1 })
      params.file('certificate')
    } catch {
      // A refusal is an acceptable end, too.
    }
    const { user, system } = process.cpuUsage(before)
    bestMs = Math.min(bestMs, (user + system) / 1_000)
  }
  return bestMs
}

const pairs = (count: number): string =>
  Array.from({ length: count }, (_, nth) => `p${nth}=1`).join('&')
const some = (count: number): Request => ({
  type: multipart,
  body: parts(...Array.from({ length: count }, (_, nth) => part(`p${nth}`, '1'))),
})
const array = (count: number): string => `{"a":[${Array(count).fill('1').join()}],"b":"x"}`
const withHead = (more: string): Request => ({
  type: multipart,
  body: `--B\r\n${more}Content-Disposition: form-data; name="a"\r\n\r\n1\r\n--B--`,
})
const parameters = (count: number): Request => ({
  type: multipart,
  body: `--B\r\nContent-Disposition: form-data${'; x="y;"'.repeat(count)}; name="a"\r\n\r\n1\r\n--B--`,
})

test('parameters are read up to their limit, and one more is refused', async () => {
  const refusal = `400 Bad Request: expected at most ${parametersMax} parameters`
  for (const at of ['query', 'body'] as const) {
    const of = (text: string): Request =>
      at === 'query' ? { query: text } : { type: form, body: text }
    assert.equal((await read(of(pairs(parametersMax)))).text(`p${parametersMax - 1}`), '1')
    assert.equal(await refusalOf(of(pairs(parametersMax + 1))), refusal)
  }
  assert.equal((await read(some(parametersMax))).text(`p${parametersMax - 1}`), '1')
  assert.match(await refusalOf(some(parametersMax + 1)), /^400 .*at most 1000 multipart parts/)
})

test('JSON is read up to its limits of values and nesting, whatever contains them', async () => {
  // The object, the array and "b" count as values, too.
  assert.equal((await read({ type: json, body: array(jsonValuesMax - 3) })).text('b'), 'x')
  assert.match(
    await refusalOf({ type: json, body: array(jsonValuesMax) }),
    /^400 Bad Request: JSON has too many values/,
  )
  for (const name of ['allowed_updates', 'unknown']) {
    const nested = (depth: number): Request => ({
      type: json,
      body: `{"${name}":${'['.repeat(depth)}${']'.repeat(depth)},"b":"]["}`,
    })
    assert.equal((await read(nested(jsonNestingMax - 1))).text('b'), '][')
    for (const type of [json, form, '']) {
      assert.match(
        await refusalOf({ ...nested(jsonNestingMax), type }),
        /^400 Bad Request: JSON is nested too deeply/,
      )
    }
  }
  const brackets = `{"a":"${'['.repeat(10_000)}\\"${','.repeat(10_000)}","b":"x"}`
  assert.equal((await read({ type: json, body: brackets })).text('b'), 'x', 'text is only text')
})

const linesOfHead = (count: number): Request => withHead('X-Y: z\r\n'.repeat(count))
const bytesOfHead = (count: number): Request => withHead(`X-Y: ${'z'.repeat(count)}\r\n`)
test('a part has a limited number of header lines, bytes and parameters', async () => {
  assert.equal((await read(linesOfHead(partHeaderLinesMax - 1))).text('a'), '1')
  assert.match(await refusalOf(linesOfHead(partHeaderLinesMax)), /^400 .*16 header lines/)
  assert.equal((await read(bytesOfHead(partHeadBytesMax - 100))).text('a'), '1')
  assert.match(await refusalOf(bytesOfHead(partHeadBytesMax)), /^400 .*16384 bytes/)
  assert.equal((await read(parameters(partHeaderParametersMax - 1))).text('a'), '1')
  assert.match(await refusalOf(parameters(partHeaderParametersMax)), /^400 .*16 parameters/)
})

test('a compressed body may grow a hundredfold, and a short one by any factor', async () => {
  const tooDense =
    /^413 .*expected compressed parameters to unpack to at most 100 times their size$/
  const packed = [
    ['gzip', gzipSync],
    ['deflate', deflateRawSync],
  ] as const
  for (const [encoding, pack] of packed) {
    const of = (bytes: number): Request => ({
      type: json,
      headers: { 'content-encoding': encoding },
      body: pack(`{"a":"${'x'.repeat(bytes - 8)}"}`),
    })
    assert.equal((await read(of(bodyGrowthFreeBytes))).text('a')?.length, bodyGrowthFreeBytes - 8)
    assert.match(await refusalOf(of(bodyGrowthFreeBytes + 1)), tooDense)
    assert.match(await refusalOf(of(size)), tooDense)
    // Mostly one character, with some noise.
    const noise = randomBytes(size / bodyGrowthMax).toString('base64')
    const body = pack(`{"b":"1","a":"${noise.padEnd(size - 20, 'x')}"}`)
    assert.ok(size / body.length > 50, `${body.length} bytes are no test of the bound`)
    const headers = { 'content-encoding': encoding }
    assert.equal((await read({ type: json, headers, body })).text('b'), '1')
  }
})

test('a file may be sent as text and is not converted to text on the way', async () => {
  const bytes = Buffer.from([0xff, 0xfe, 0x41])
  const body = parts(part('certificate', 'attach://c'), part('c', bytes))
  assert.deepEqual((await read({ type: multipart, body })).file('certificate'), bytes)
})
