/** Meaningless parameters and bodies: the texts, numbers and nestings that parsers are known to fail on. */
import fc from 'fast-check'

const nasty = fc.constantFrom(
  '',
  ' ',
  '0',
  '-0',
  '1e999',
  '-1',
  '9223372036854775808',
  '-9223372036854775809',
  '0x10',
  'NaN',
  'Infinity',
  'null',
  'undefined',
  'true',
  '[]',
  '{}',
  '["message"]',
  '["message",1]',
  '[[[[]]]]',
  '{"a":',
  '"',
  '\\',
  '\0',
  '\ud800',
  '\u2028',
  '%',
  '%00',
  '%ff',
  '%u0041',
  '+',
  'attach://',
  'attach://a',
  'attach://certificate',
  "' OR 1=1",
  '../../etc/passwd',
  '\r\nX: y',
)
export const junkText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: nasty },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }) },
)

/**
 * Polls with these parameters do not wait, and no webhook is ever set, because no url here names a host. `message`
 * stays among the allowed updates, because the polls of a bot without updates wait.
 */
const parameterNames = fc.constantFrom(
  'offset',
  'limit',
  'limit',
  'drop_pending_updates',
  'secret_token',
  'ip_address',
  'certificate',
  'max_connections',
  'a',
  '',
  '__proto__',
  'constructor',
  'length',
  'offset[]',
  'x\0y',
)

const isEncoded = fc.boolean()

export const query: fc.Arbitrary<string> = fc
  .array(fc.tuple(parameterNames, junkText, isEncoded, fc.constantFrom('=', '=', '==', '')), {
    maxLength: 4,
  })
  .map((pairs) =>
    pairs
      .map(
        ([name, text, encodes, sign]) =>
          `${plain(name)}${sign}${encodes ? plain(text) : bare(text)}`,
      )
      .join('&'),
  )

function plain(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString())
}

/** Removes what a target may not contain. */
function bare(text: string): string {
  return text.replace(/[^!"$-~]/gu, '')
}

const number = fc.constantFrom(
  '0',
  '-0',
  '1e400',
  '-1E+30',
  '123456789012345678901234567890',
  '0.1e-9',
  '01',
  '+1',
  '.5',
  '1.',
)
const flatJson = fc.oneof(
  number,
  junkText.map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\ud800"', '"\\u0000"', '"\\x"', "'a'", '[]', '{}', 'nul', '/**/', '\u00a0'),
)
const deep = fc
  .tuple(fc.constantFrom(1, 3, 65, 10_000), fc.constantFrom('[', '{"a":', '[[],'), fc.boolean())
  .map(([times, open, isClosed]) => {
    const close = open.startsWith('{') ? '}' : ']'
    return `${open.repeat(times)}1${isClosed ? close.repeat(times) : ''}`
  })
const jsonValue = fc.oneof({ weight: 6, arbitrary: flatJson }, { weight: 1, arbitrary: deep })

export const junkJson: fc.Arbitrary<string> = fc.oneof(
  { weight: 1, arbitrary: jsonValue },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        fc.array(fc.tuple(parameterNames, jsonValue), { maxLength: 4 }),
        fc.constantFrom('}', '}', '}', '', ',}', '}}', '} x', '}\0'),
      )
      .map(([members, end]) => {
        const texts = members.map(([name, value]) => `${JSON.stringify(name)}:${value}`)
        return `{${texts.join(',')}${end}`
      }),
  },
)

const disposition = fc.constantFrom(
  'form-data; name="limit"',
  'form-data; name=',
  'form-data',
  'form-data; name="',
  '',
  'form-data; name="certificate"; filename="a"',
  "form-data; filename*=utf-8''a; name=a",
  'attachment; name="a"',
  'form-data; name="a\\"b"',
  'form-data;;;name="offset"; name="limit"',
  'form-data; name="limit\0"',
  "form-data; name*=utf-8''limit",
  'form-data; name="=?utf-8?q?limit?="',
  'form-data; filename="..\\..\\a"; name="certificate"',
  'form-data; name=limit; filename',
  `form-data; name="${'x'.repeat(5_000)}"`,
  `form-data; name=${'\\"'.repeat(500)}`,
  `form-data${';a="'.repeat(200)}`,
)
const partHeaders = fc.constantFrom(
  '',
  'Content-Type: multipart/mixed; boundary=C\r\n',
  'Content-Transfer-Encoding: base64\r\n',
  'no colon\r\n',
  ': no name\r\n',
  'Content-Length: -1\r\n',
  'A: b\r\n folded\r\n',
  '\0\r\n',
  `X-Long: ${'x'.repeat(20_000)}\r\n`,
  'a:b\r\n'.repeat(1_000),
  'Content-Encoding: gzip\r\n',
  'Content-Type: text/plain; charset=utf-16\r\n',
  'Content-Disposition: form-data; name="offset"\r\n',
  '\r\n',
)
const partContent = fc.oneof(
  junkText.map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc
    .constantFrom('--B', '\r\n--B', '\r\n--Bx\r\n', '--C\r\n\r\nx\r\n--C--', '\n--B\n')
    .map((text) => Buffer.from(text)),
)
const part = fc
  .tuple(
    fc.constantFrom('--B\r\n', '--B\n', '--B', '-B\r\n'),
    partHeaders,
    disposition,
    partContent,
  )
  .map(([open, more, text, content]) =>
    Buffer.concat([
      Buffer.from(`${open}${more}Content-Disposition: ${text}\r\n\r\n`),
      content,
      Buffer.from('\r\n'),
    ]),
  )

/** Bodies with the boundary B, more or less correct. */
export const multipartJunk: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.constantFrom('', '\r\n', 'preamble', '--'),
    fc.array(part, { maxLength: 3 }),
    fc.constantFrom('--B--', '--B--\r\n', '--B', '--B-', '', '\r\n\r\n'),
  )
  .map(([before, parts, end]) => Buffer.concat([Buffer.from(before), ...parts, Buffer.from(end)]))
