/**
 * Answers over HTTP as no good server gives them, for everything that the server asks of others. They are data, so that another
 * process can give them.
 */
import { gzipSync } from 'node:zlib'

/** What a server does once the first bytes of a request have come. One character is one byte. */
export interface HostileAnswer {
  /** What is written at first. */
  readonly head: string
  /** What is then repeated for ever, as fast as it is taken. */
  readonly more?: string
  /** What is then written again and again, a piece now and then. */
  readonly drip?: string
  /** How the connection ends after that; by default it stays open. */
  readonly end?: 'end' | 'reset'
  /** Whether it does not wait for a request. */
  readonly isEarly?: true
}

type Answers = Readonly<Record<string, HostileAnswer>>

const ok = 'HTTP/1.1 200 OK\r\n'
const no = 'HTTP/1.1 500 No\r\n'
const chunks = 'Transfer-Encoding: chunked\r\n'
const length = 'Content-Length: 2\r\n'
const chunked = `${no}${chunks}\r\n`

/** Answers without an end. None is a success. */
export const endless = {
  'chunks of one byte': { head: chunked, more: '1\r\n \r\n' },
  'chunks of two bytes': { head: chunked, more: '2\r\n  \r\n' },
  'interim responses': { head: '', more: 'HTTP/1.1 103 Early Hints\r\n\r\n' },
  'interim responses of 100': { head: '', more: 'HTTP/1.1 100 Continue\r\n\r\n' },
  'interim responses with headers': {
    head: '',
    more: `HTTP/1.1 102 Processing\r\nA: ${'a'.repeat(15_000)}\r\n\r\n`,
  },
  'an interim response': { head: 'HTTP/1.1 103 Early Hints\r\n', more: 'A: a\r\n' },
  'an extension of a chunk': { head: `${chunked}1;`, more: 'x' },
  'extensions of every chunk': {
    head: chunked,
    more: `40;${'x'.repeat(60)}\r\n${' '.repeat(64)}\r\n`,
  },
  'zeros before the size of a chunk': { head: chunked, more: '0' },
  'zeros before the size of every chunk': { head: chunked, more: `${'0'.repeat(500)}1\r\n \r\n` },
  'a header': { head: `${no}A: `, more: 'a' },
  'a header of zero bytes': { head: `${no}A: `, more: '\0' },
  headers: { head: no, more: 'A: a\r\n' },
  'folded headers': { head: `${no}A: a\r\n`, more: ' a\r\n' },
  'a trailer': { head: `${chunked}0\r\nA: `, more: 'a' },
  trailers: { head: `${chunked}0\r\n`, more: 'A: a\r\n' },
  'a status line': { head: 'HTTP/1.1 500 ', more: 'No' },
  'empty lines before the status line': { head: '', more: '\r\n' },
  'what is not HTTP': { head: '', more: 'SSH-2.0-OpenSSH\r\n' },
  'zero bytes': { head: '', more: '\0' },
  'a size that no chunk can have': { head: chunked, more: 'f' },
  'a body without a length': { head: `${no}\r\n`, more: 'x' },
  'a body of an older server': { head: 'HTTP/1.0 500 No\r\n\r\n', more: 'x' },
  'a body whose length nothing has': {
    head: `${no}Content-Length: 9007199254740991\r\n\r\n`,
    more: 'x',
  },
  'chunks of usual sizes': { head: chunked, more: `1000\r\n${' '.repeat(4_096)}\r\n` },
  answers: { head: '', more: `${no}${length}\r\nno` },
} as const satisfies Answers

/** Answers that break off. None is a success. */
export const brokenOff = {
  'nothing, and the end': { head: '', end: 'end' },
  'nothing, and a reset': { head: '', end: 'reset' },
  'half a status line': { head: 'HTTP/1.1 200', end: 'end' },
  'a status line without its end': { head: 'HTTP/1.1 200 O', end: 'end' },
  'an interim response alone': { head: 'HTTP/1.1 100 Continue\r\n\r\n', end: 'end' },
  'half an interim response': { head: `HTTP/1.1 100 Continue\r\nX: ${ok}`, end: 'end' },
  'half a head': { head: `${no}X-A: b\r\nX-`, end: 'end' },
  'half a body': { head: `${no}Content-Length: 5\r\n\r\nab`, end: 'end' },
  'half a body, and a reset': { head: `${no}Content-Length: 5\r\n\r\nab`, end: 'reset' },
  'half a chunk': { head: `${chunked}5\r\nab`, end: 'end' },
  'chunks without the last one': { head: `${chunked}2\r\nab\r\n`, end: 'end' },
  'half a trailer': { head: `${chunked}0\r\nX-A: `, end: 'end' },
} as const satisfies Answers

/** What is no answer of HTTP/1. None is a success. */
export const notHttp = {
  'a greeting of SSH': { head: 'SSH-2.0-OpenSSH\r\n\r\n' },
  'a greeting of SMTP': { head: '220 mail.example ESMTP\r\n' },
  'an alert of TLS': { head: '\x15\x03\x01\0\x02\x02\x28' },
  'settings of HTTP/2': { head: '\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64' },
  'a preface of HTTP/2': { head: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' },
  'a page without a head': { head: '<!doctype html><title>200 OK</title>\r\n\r\n' },
  'a status line of a radio': { head: 'ICY 200 OK\r\n\r\n' },
  'a status line of RTSP': { head: `RTSP/1.0 200 OK\r\n${length}\r\n` },
  'a status line of ICE': { head: `ICE/1.0 200 OK\r\n${length}\r\n` },
  'a status line without a version': { head: '200 OK\r\n\r\n' },
  'a status line of HTTP/2': { head: 'HTTP/2 200\r\n\r\n' },
  'a status line of HTTP/9.9': { head: 'HTTP/9.9 200 OK\r\n\r\n' },
  'a status of four digits': { head: 'HTTP/1.1 2000 OK\r\n\r\n' },
  'a status of zeros': { head: 'HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n' },
  'a status below zero': { head: 'HTTP/1.1 -200 OK\r\nContent-Length: 0\r\n\r\n' },
  'a blank before the status line': { head: ' HTTP/1.1 200 OK\r\n\r\n' },
  'two blanks in the status line': { head: 'HTTP/1.1  200 OK\r\n\r\n' },
  'an upgrade': {
    head: 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
  },
  'the bytes 0 to 255': { head: String.fromCharCode(...Array(256).keys()) },
} as const satisfies Answers

const interim = 'HTTP/1.1 100 Continue\r\n\r\n'
const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX: \r\n\r\n'

/** Answers with a 2xx status line and bad framing. */
export const badlyFramed = {
  'two lengths': { head: `${ok}${length}${length}\r\nok` },
  'two different lengths': { head: `${ok}${length}Content-Length: 3\r\n\r\nok` },
  'a length and chunks': { head: `${ok}${length}${chunks}\r\n2\r\nok\r\n0\r\n\r\n` },
  'chunks and a length': { head: `${ok}${chunks}${length}\r\n2\r\nok\r\n0\r\n\r\n` },
  'a length that is no number': { head: `${ok}Content-Length: two\r\n\r\nok` },
  'a length below zero': { head: `${ok}Content-Length: -2\r\n\r\nok` },
  'a length with a sign': { head: `${ok}Content-Length: +2\r\n\r\nok` },
  'a length of 400 digits': { head: `${ok}Content-Length: ${'9'.repeat(400)}\r\n\r\nok` },
  'an empty length': { head: `${ok}Content-Length:\r\n\r\nok` },
  'a 204 with a length and a body': { head: `HTTP/1.1 204 No Content\r\n${length}\r\nok` },
  'a 204 with a length and without a body': { head: `HTTP/1.1 204 No Content\r\n${length}\r\n` },
  'a folded header': { head: `${ok}X-A: b\r\n c\r\n${length}\r\nok` },
  'a blank before a colon': { head: `${ok}X-A : b\r\n${length}\r\nok` },
  'a header without a colon': { head: `${ok}nonsense\r\n${length}\r\nok` },
  'a header without a name': { head: `${ok}: b\r\n${length}\r\nok` },
  'a zero byte in a header': { head: `${ok}X-A: \0\r\n${length}\r\nok` },
  'headers of 17 KiB': { head: `${ok}X-A: ${'x'.repeat(17_000)}\r\n${length}\r\nok` },
  'headers of 1 MB': { head: `${ok}X-A: ${'x'.repeat(1_000_000)}\r\n${length}\r\nok` },
  'a status line of 64 KiB': { head: `HTTP/1.1 200 ${'x'.repeat(65_536)}\r\n${length}\r\nok` },
  'a size of a chunk that is none': { head: `${ok}${chunks}\r\nzz\r\nok\r\n0\r\n\r\n` },
  'a size of a chunk below zero': { head: `${ok}${chunks}\r\n-2\r\nok\r\n0\r\n\r\n` },
  'a size of a chunk that no number has': {
    head: `${ok}${chunks}\r\n${'f'.repeat(17)}\r\nok`,
  },
  'chunks that are not the last encoding': {
    head: `${ok}Transfer-Encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
  },
  'chunks twice': {
    head: `${ok}Transfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
  },
  'an encoding of the transfer that nobody knows': {
    head: `${ok}Transfer-Encoding: xchunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
  },
  'line ends of one byte': { head: 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok' },
  'a status line without a reason, and two lengths': {
    head: `HTTP/1.0 299\r\n${length}${length}\r\nok`,
  },
  'no length': { head: `${ok}\r\nok` },
  'a head that does not end': { head: `${ok}X-A: b\r\nX-` },
  'less than it says': { head: `${ok}Content-Length: 3\r\n\r\nok` },
  'chunks without an end': { head: `${ok}${chunks}\r\n2\r\nok\r\n` },
  'no length and no body': { head: 'HTTP/1.0 200 OK\r\n\r\n' },
  'a 100 Continue that nobody asked for': { head: `${interim}${ok}${length}\r\nok` },
  'several interim responses': {
    head: `${interim}${hints}${interim}HTTP/1.1 102 Processing\n\n${ok}${length}\r\nok`,
  },
  'blank lines before the status line, and two lengths': {
    head: `\r\n\n${ok}${length}${length}\r\nok`,
  },
  'blank lines before an interim response and after it': {
    head: `\r\n${interim}\r\n${ok}${length}\r\nok`,
  },
  'an interim response and two lengths': { head: `${interim}${ok}${length}${length}\r\nok` },
} as const satisfies Answers

/** Returns a complete answer. */
export function whole(status: string, body: string, headers = ''): HostileAnswer {
  return { head: `HTTP/1.1 ${status}\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}` }
}

const json = 'Content-Type: application/json\r\n'
const result = (updates: string): string => `{"ok":true,"result":[${updates}]}`
/** A megabyte for a kilobyte. */
const bomb = gzipSync(Buffer.alloc(1_000_000, ' ')).toString('latin1')
const deep = 10_000

/** Complete answers that are refusals. */
export const refusals = {
  'a redirect in a circle': whole('302 Found', '', 'Location: /\r\n'),
  'a redirect to nowhere': whole('301 Moved', '', 'Location: \x9b31m\xff\r\n'),
  'a choice of nothing': whole('304 No', ''),
  'a pause of thousands of years': whole('429 No', '', `Retry-After: ${'9'.repeat(400)}\r\n`),
  'a pause until a year that no clock has': whole(
    '503 No',
    '',
    'Retry-After: Fri, 31 Dec 9999999 23:59:59 GMT\r\n',
  ),
  'a pause below zero': whole('503 No', '', 'Retry-After: -1\r\n'),
  'the last status': whole('999 No', 'no'),
  'control characters in the status line': whole('500 \x9b31m\x85\t', 'no'),
  'right-to-left in the status line': whole('500 \xe2\x80\xae\xf3\xa0\x81\x81', 'no'),
  'bytes that are no text': whole('500 No', '\xff\xfe\xc3\x28\xed\xa0\x80'),
  'a bomb': whole('500 No', bomb, 'Content-Encoding: gzip\r\n'),
  'an encoding that is a lie': whole('500 No', 'no', 'Content-Encoding: br, gzip, deflate\r\n'),
  'nine hundred headers': whole('500 No', 'no', 'A: \x80\r\n'.repeat(900)),
  'a failure before the request': { ...whole('400 No', 'no'), isEarly: true },
} as const satisfies Answers

/** Complete answers with 200 that say nothing that is asked for. */
export const oddContents = {
  'an empty body': whole('200 OK', '', json),
  'a status without content': { head: 'HTTP/1.1 204 No Content\r\n\r\n' },
  'a list of nothing': whole('200 OK', 'null', json),
  'a page': whole('200 OK', '<!doctype html><title>Welcome</title>', 'Content-Type: text/html\r\n'),
  'bytes that are no UTF-8': whole(
    '200 OK',
    result('{"update_id":1,"poll":{"a":"\xff\xfe"}}'),
    json,
  ),
  'half a pair of surrogates': whole('200 OK', result('{"update_id":1,"poll":{"a":"\\ud800"}}')),
  'deep brackets': whole('200 OK', '['.repeat(deep) + ']'.repeat(deep), json),
  'deep objects': whole('200 OK', `${'{"a":'.repeat(deep)}1${'}'.repeat(deep)}`, json),
  'a deep update': whole('200 OK', result(`{"update_id":1,"poll":${'['.repeat(deep)}`)),
  'a number of 60,000 digits': whole('200 OK', result('9'.repeat(60_000)), json),
  'a number that is infinite': whole('200 OK', '{"ok":true,"result":1e999999999}', json),
  'an id of 400 digits': whole('200 OK', result(`{"update_id":${'9'.repeat(400)},"poll":{}}`)),
  'an id below zero': whole('200 OK', result('{"update_id":-1,"poll":{}}'), json),
  'an id with a fraction': whole('200 OK', result('{"update_id":1.5,"poll":{}}'), json),
  'two ids': whole('200 OK', result('{"update_id":1,"update_id":2,"poll":{}}'), json),
  'two results': whole('200 OK', '{"ok":true,"result":[],"result":{}}', json),
  'keys of objects of JavaScript': whole('200 OK', '{"__proto__":{"ok":true,"result":[]}}', json),
  'a result that is no list': whole('200 OK', '{"ok":true,"result":{"length":100}}', json),
  'a result without end': whole('200 OK', '{"ok":true,"result":[{"update_id":1', json),
  'a thousand updates': whole('200 OK', result('{"update_id":1},'.repeat(1_000)), json),
  'a failure that is a success': whole('200 OK', '{"ok":false,"error_code":-1}', json),
  'a byte order mark': whole('200 OK', `\xef\xbb\xbf${result('')}`, json),
  'a success that is a bomb': whole('200 OK', bomb, 'Content-Encoding: gzip\r\n'),
  'a type of a kilobyte': whole('200 OK', 'ok', `Content-Type: a/b;${'x'.repeat(1_000)}\r\n`),
  'two answers at once': { head: `${ok}${length}\r\nok${no}${length}\r\nno` },
  'a success before the request': { ...whole('200 OK', 'ok'), isEarly: true },
} as const satisfies Answers

/** Answers that do not come, or come a byte now and then. None is a success. */
export const late = {
  nothing: { head: '' },
  'half a status line that stays so': { head: 'HTTP/1.1 5' },
  'half a head that stays so': { head: `${no}X-A: b\r\nX-` },
  'a head without its body': { head: `${no}Content-Length: 5\r\n\r\n` },
  'a byte of the status line': { head: 'HTTP/1.1 500 ', drip: 'x' },
  'a byte of the head': { head: `${no}X-A: `, drip: 'x' },
  'an interim response now and then': { head: '', drip: 'HTTP/1.1 102 Processing\r\n\r\n' },
  'a byte of an interim response': { head: 'HTTP/1.1 103 Early Hints\r\nA: ', drip: 'x' },
  'a byte of the body': { head: `${no}Content-Length: 1000000\r\n\r\n`, drip: 'x' },
  'a byte of a body without a length': { head: `${no}\r\n`, drip: 'x' },
  'a chunk of a byte': { head: chunked, drip: '1\r\n \r\n' },
  'a byte of an extension': { head: `${chunked}1;`, drip: 'x' },
  'a zero before the size of a chunk': { head: chunked, drip: '0' },
  'a byte of a trailer': { head: `${chunked}0\r\nA: `, drip: 'x' },
} as const satisfies Answers
