/**
 * Requests as bot frameworks put them on the wire, captured from the real clients (name and version in each line).
 * `head` has no Host line; `pieces` are the writes that the server received one by one, chunk frames included.
 */
export interface ClientRequest {
  readonly client: string
  readonly head: readonly string[]
  readonly pieces: readonly string[]
  /** What the server must read out of it. */
  readonly params: Readonly<Record<string, string>>
  readonly certificate?: string
}

const certificate = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n'

/** Frames each content as one chunk. */
function chunked(...contents: readonly string[]): string {
  return contents
    .map((content) => `${Buffer.byteLength(content).toString(16)}\r\n${content}\r\n`)
    .join('')
}

const lastChunk = '0\r\n\r\n'
const json = 'Content-Type: application/json'
const form = 'Content-Type: application/x-www-form-urlencoded'
const isChunked = 'Transfer-Encoding: chunked'

export const clientRequests: readonly ClientRequest[] = [
  {
    client: 'go-telegram/bot getMe: multipart, chunked, zero bytes',
    head: [
      'POST /getMe HTTP/1.1',
      isChunked,
      'Content-Type: multipart/form-data; boundary=ff3f1cff793bd62334c6ea6f9be8d7b9d587f2971559de5bd7f2e642164d',
    ],
    pieces: [lastChunk],
    params: {},
  },
  {
    client: 'go-telegram/bot deleteWebhook: multipart, only the closing boundary',
    head: [
      'POST /deleteWebhook HTTP/1.1',
      isChunked,
      'Content-Type: multipart/form-data; boundary=982b04ec61a2844e96df7ada78485e820b399ac112815ff154f73ed25cee',
    ],
    pieces: [
      chunked('\r\n--982b04ec61a2844e96df7ada78485e820b399ac112815ff154f73ed25cee--\r\n'),
      lastChunk,
    ],
    params: {},
  },
  {
    client: 'go-telegram/bot getUpdates: multipart, chunked',
    head: [
      'POST /getUpdates HTTP/1.1',
      isChunked,
      'Content-Type: multipart/form-data; boundary=e7e85674a1c3a1031ba1329d4afd0a61699afe222088bad61fa0f9710256',
    ],
    pieces: [
      chunked(
        '--e7e85674a1c3a1031ba1329d4afd0a61699afe222088bad61fa0f9710256\r\nContent-Disposition: form-data; name="offset"\r\n\r\n',
        '1',
      ),
      chunked(
        '\r\n--e7e85674a1c3a1031ba1329d4afd0a61699afe222088bad61fa0f9710256\r\nContent-Disposition: form-data; name="timeout"\r\n\r\n',
        '59',
        '\r\n--e7e85674a1c3a1031ba1329d4afd0a61699afe222088bad61fa0f9710256--\r\n',
      ) + lastChunk,
    ],
    params: { offset: '1', timeout: '59' },
  },
  {
    client: 'grammY setWebhook: no space in part headers, file name without quotes, attach',
    head: [
      'POST /setWebhook HTTP/1.1',
      'content-type: multipart/form-data; boundary=----------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx',
      isChunked,
    ],
    pieces: [
      chunked(
        '------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx\r\n',
        'content-disposition:form-data;name="url"\r\n\r\nhttps://bot.example.com/grammy',
        '\r\n------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx\r\n',
        'content-disposition:form-data;name="certificate"\r\n\r\nattach://gm6ywaabq7fmwio9',
        '\r\n------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx\r\n',
        'content-disposition:form-data;name="gm6ywaabq7fmwio9";filename=c.pem\r\ncontent-type:application/octet-stream\r\n\r\n',
        certificate,
        '\r\n------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx--\r\n',
      ),
      lastChunk,
    ],
    params: { url: 'https://bot.example.com/grammy' },
    certificate,
  },
  {
    client: 'telegraf setWebhook: a foreign part "method", line break before the first boundary',
    head: [
      'POST /setWebhook HTTP/1.1',
      'content-type: multipart/form-data; boundary=c13f8a0607d9a6b4af1f1ad077ffca35',
      isChunked,
    ],
    pieces: [
      chunked(
        '--c13f8a0607d9a6b4af1f1ad077ffca35\r\n',
        'content-disposition:form-data; name="method"\r\n\r\nsetWebhook',
      ),
      chunked(
        '\r\n--c13f8a0607d9a6b4af1f1ad077ffca35\r\n',
        'content-disposition:form-data; name="url"\r\n\r\nhttps://bot.example.com/telegraf',
        '\r\n--c13f8a0607d9a6b4af1f1ad077ffca35\r\n',
        `content-disposition:form-data; name="certificate"; filename="c.pem"\r\n\r\n${certificate}`,
        '\r\n--c13f8a0607d9a6b4af1f1ad077ffca35--\r\n',
      ) + lastChunk,
    ],
    params: { url: 'https://bot.example.com/telegraf', method: 'setWebhook' },
    certificate,
  },
  {
    client: 'aiogram 3 setWebhook: Content-Type before Content-Disposition, attach',
    head: [
      'POST /setWebhook HTTP/1.1',
      'Content-Type: multipart/form-data; boundary=29b9f846161d49e08e462e4ff579685e',
      isChunked,
    ],
    pieces: [
      chunked(
        '--29b9f846161d49e08e462e4ff579685e\r\n',
        'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="certificate"\r\n\r\n',
        'attach://T2xFRyzsHxkNRg',
        '\r\n',
        '--29b9f846161d49e08e462e4ff579685e\r\n',
        'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="allowed_updates"\r\n\r\n',
        '["message"]',
        '\r\n',
        '--29b9f846161d49e08e462e4ff579685e\r\n',
        'Content-Type: application/octet-stream\r\nContent-Disposition: form-data; name="T2xFRyzsHxkNRg"; filename="c.pem"\r\n\r\n',
      ),
      chunked(certificate),
      chunked('\r\n', '--29b9f846161d49e08e462e4ff579685e--\r\n'),
      lastChunk,
    ],
    params: { allowed_updates: '["message"]' },
    certificate,
  },
  {
    client: 'gramio setWebhook: parameters in the query, the file in a multipart body',
    head: [
      'POST /setWebhook?url=https%3A%2F%2Fbot.example.com%2Fgramio&certificate=&drop_pending_updates=true HTTP/1.1',
      'content-type: multipart/form-data; boundary=----formdata-undici-056092286248',
      'content-length: 247',
    ],
    pieces: [
      '------formdata-undici-056092286248\r\nContent-Disposition: form-data; name="certificate"; filename="c.pem"\r\nContent-Type: application/octet-stream\r\n\r\n',
      certificate,
      '\r\n',
      '------formdata-undici-056092286248--\r\n',
    ],
    params: { url: 'https://bot.example.com/gramio', drop_pending_updates: 'true' },
    certificate,
  },
  {
    client: 'pyTelegramBotAPI setWebhook: a multipart body behind GET',
    head: [
      'GET /setWebhook?url=https%3A%2F%2Fbot.example.com%2Fpytba HTTP/1.1',
      'Content-Type: multipart/form-data; boundary=b0',
      'Content-Length: 147',
    ],
    pieces: [
      `--b0\r\nContent-Disposition: form-data; name="certificate"; filename="c.pem"\r\n\r\n${certificate}\r\n--b0--\r\n`,
    ],
    params: { url: 'https://bot.example.com/pytba' },
    certificate,
  },
  {
    client: 'nutgram setWebhook: Content-Length in parts, HTTP/2 upgrade offered',
    head: [
      'POST /setWebhook HTTP/1.1',
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQAAQAAAAIAAAAA',
      'Content-Type: multipart/form-data; boundary=a1a19938fea970f0a35f6dd17ce1574fdaacea60',
      isChunked,
    ],
    pieces: [
      chunked(
        '--a1a19938fea970f0a35f6dd17ce1574fdaacea60\r\nContent-Disposition: form-data; name="url"\r\nContent-Length: 28\r\n\r\nhttps://bot.example.com/hook\r\n--a1a19938fea970f0a35f6dd17ce1574fdaacea60\r\nContent-Disposition: form-data; name="drop_pending_updates"\r\nContent-Length: 0\r\n\r\n\r\n--a1a19938fea970f0a35f6dd17ce1574fdaacea60--\r\n',
      ) + lastChunk,
    ],
    params: { url: 'https://bot.example.com/hook' },
  },
  {
    client: 'nutgram getMe: JSON []',
    head: ['POST /getMe HTTP/1.1', 'Upgrade: h2c', json, 'Content-Length: 2'],
    pieces: ['[]'],
    params: {},
  },
  {
    client: 'telebot getMe: JSON null with a line feed',
    head: ['POST /getMe HTTP/1.1', json, 'Content-Length: 5'],
    pieces: ['null\n'],
    params: {},
  },
  {
    client: 'telebot getUpdates: JSON with texts for everything',
    head: ['POST /getUpdates HTTP/1.1', json, 'Content-Length: 55'],
    pieces: ['{"allowed_updates":"null","offset":"1","timeout":"10"}\n'],
    params: { allowed_updates: 'null', offset: '1', timeout: '10' },
  },
  {
    client: 'Telegram.Bot: POST without a body and without Content-Type',
    head: ['POST /getMe HTTP/1.1', 'Content-Length: 0'],
    pieces: [],
    params: {},
  },
  {
    client: 'TelegramBots (Java): JSON with charset and a foreign key',
    head: [
      'POST /getupdates HTTP/1.1',
      'Content-Type: application/json; charset=utf-8',
      'Content-Length: 80',
    ],
    pieces: ['{"method":"getupdates","offset":1,"limit":100,"timeout":50,"allowed_updates":[]}'],
    params: { method: 'getupdates', offset: '1', limit: '100', allowed_updates: '[]' },
  },
  {
    client: 'node-telegram-bot-api 0.x: parameters in the query of an empty POST',
    head: [
      'POST /setWebHook?secret_token=s3&allowed_updates%5B0%5D=message&url=https%3A%2F%2Fh HTTP/1.1',
      'Content-Length: 0',
    ],
    pieces: [],
    params: { secret_token: 's3', url: 'https://h', 'allowed_updates[0]': 'message' },
  },
  {
    client: 'go-telegram-bot-api getUpdates: form with allowed_updates=null',
    head: ['POST /getUpdates HTTP/1.1', form, 'Content-Length: 33'],
    pieces: ['allowed_updates=null&timeout=60&x'],
    params: { allowed_updates: 'null', timeout: '60' },
  },
  {
    client: 'typescript-telegram-bot-api getMe: a part "empty"',
    head: [
      'POST /getMe HTTP/1.1',
      'Content-Type: multipart/form-data; boundary=--------------------------014e21c79a46b54ae211949f',
      'Content-Length: 165',
    ],
    pieces: [
      '----------------------------014e21c79a46b54ae211949f\r\nContent-Disposition: form-data; name="empty"\r\n\r\nempty\r\n----------------------------014e21c79a46b54ae211949f--\r\n',
    ],
    params: { empty: 'empty' },
  },
]
