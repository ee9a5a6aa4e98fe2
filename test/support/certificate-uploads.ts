/**
 * setWebhook with an uploaded certificate, byte for byte as real clients put it on the wire (captured from the
 * version named), in both shapes: a file part `certificate`, or `certificate=attach://NAME` and a file part NAME.
 * Only what a test must choose is replaced: token, Host, url and certificate, and the lengths that follow from them.
 */

export interface CertificateUpload {
  readonly client: string
  readonly capturedUrl: string
  /** Behind the method's name. */
  readonly query: string
  /** Without Host and Content-Length. */
  readonly headers: readonly string[]
  /** The content of each chunk, or the whole body where it is not chunked. */
  readonly contents: readonly string[]
}

const capturedCertificate = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n'

/** The request as a sequence of writes. */
export function uploadWrites(
  upload: CertificateUpload,
  wishes: { readonly token: string; readonly url: string; readonly certificate: string },
): readonly string[] {
  const { capturedUrl, headers } = upload
  const contents = upload.contents.map((content) =>
    content.replace(capturedUrl, wishes.url).replace(capturedCertificate, wishes.certificate),
  )
  const query = upload.query.replace(
    encodeURIComponent(capturedUrl),
    encodeURIComponent(wishes.url),
  )
  const isChunked =
    headers.includes('Transfer-Encoding: chunked') || headers.includes('transfer-encoding: chunked')
  const length = Buffer.byteLength(contents.join(''))
  const head = [
    `POST /bot${wishes.token}/setWebhook${query} HTTP/1.1`,
    'Host: 127.0.0.1',
    ...headers,
    ...(isChunked ? [] : [`Content-Length: ${length}`]),
  ]
  const body = isChunked ? [...contents.map(chunk), '0\r\n\r\n'] : contents
  return [`${head.join('\r\n')}\r\n\r\n`, ...body]
}

function chunk(content: string): string {
  return `${Buffer.byteLength(content).toString(16)}\r\n${content}\r\n`
}

export const certificateUploads: readonly CertificateUpload[] = [
  {
    client: 'grammY 1.46.0',
    capturedUrl: 'https://bot.example.com/grammy',
    query: '',
    headers: [
      'content-type: multipart/form-data; boundary=----------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx',
      'connection: keep-alive',
      'Accept: */*',
      'User-Agent: node-fetch/1.0 (+https://github.com/bitinn/node-fetch)',
      'Accept-Encoding: gzip,deflate',
      'Transfer-Encoding: chunked',
    ],
    contents: [
      '------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx\r\n',
      'content-disposition:form-data;name="url"\r\n\r\nhttps://bot.example.com/grammy',
      '\r\n------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx\r\n',
      'content-disposition:form-data;name="certificate"\r\n\r\nattach://gm6ywaabq7fmwio9',
      '\r\n------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx\r\n',
      'content-disposition:form-data;name="allowed_updates"\r\n\r\n["message"]',
      '\r\n------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx\r\n',
      'content-disposition:form-data;name="max_connections"\r\n\r\n5',
      '\r\n------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx\r\n',
      'content-disposition:form-data;name="drop_pending_updates"\r\n\r\ntrue',
      '\r\n------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx\r\n',
      'content-disposition:form-data;name="gm6ywaabq7fmwio9";filename=c.pem\r\ncontent-type:application/octet-stream\r\n\r\n',
      '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n',
      '\r\n------------lwpm2mhoec41g5wd1yvwbdnl5bptn4nx--\r\n',
    ],
  },
  {
    client: 'telegraf 4.16.3',
    capturedUrl: 'https://bot.example.com/telegraf',
    query: '',
    headers: [
      'content-type: multipart/form-data; boundary=c13f8a0607d9a6b4af1f1ad077ffca35e3dc1f96ba3424ae8ad72f5008436777',
      'connection: keep-alive',
      'Accept: */*',
      'User-Agent: node-fetch/1.0 (+https://github.com/bitinn/node-fetch)',
      'Accept-Encoding: gzip,deflate',
      'Transfer-Encoding: chunked',
    ],
    contents: [
      '--c13f8a0607d9a6b4af1f1ad077ffca35e3dc1f96ba3424ae8ad72f5008436777\r\n',
      'content-disposition:form-data; name="method"\r\n\r\nsetWebhook',
      '\r\n--c13f8a0607d9a6b4af1f1ad077ffca35e3dc1f96ba3424ae8ad72f5008436777\r\n',
      'content-disposition:form-data; name="url"\r\n\r\nhttps://bot.example.com/telegraf',
      '\r\n--c13f8a0607d9a6b4af1f1ad077ffca35e3dc1f96ba3424ae8ad72f5008436777\r\n',
      'content-disposition:form-data; name="certificate"; filename="c.pem"\r\n\r\n-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n',
      '\r\n--c13f8a0607d9a6b4af1f1ad077ffca35e3dc1f96ba3424ae8ad72f5008436777\r\n',
      'content-disposition:form-data; name="max_connections"\r\n\r\n5',
      '\r\n--c13f8a0607d9a6b4af1f1ad077ffca35e3dc1f96ba3424ae8ad72f5008436777\r\n',
      'content-disposition:form-data; name="drop_pending_updates"\r\n\r\ntrue',
      '\r\n--c13f8a0607d9a6b4af1f1ad077ffca35e3dc1f96ba3424ae8ad72f5008436777\r\n',
      'content-disposition:form-data; name="allowed_updates"\r\n\r\n["message"]',
      '\r\n--c13f8a0607d9a6b4af1f1ad077ffca35e3dc1f96ba3424ae8ad72f5008436777--',
    ],
  },
  {
    client: 'gramio 0.10.0',
    capturedUrl: 'https://bot.example.com/gramio',
    query:
      '?url=https%3A%2F%2Fbot.example.com%2Fgramio&allowed_updates=%5B%22message%22%5D&max_connections=5&drop_pending_updates=true',
    headers: [
      'connection: keep-alive',
      'content-type: multipart/form-data; boundary=----formdata-undici-056092286248',
      'accept: */*',
      'accept-language: *',
      'sec-fetch-mode: cors',
      'user-agent: node',
      'accept-encoding: gzip, deflate',
    ],
    contents: [
      '------formdata-undici-056092286248\r\nContent-Disposition: form-data; name="certificate"; filename="c.pem"\r\nContent-Type: application/octet-stream\r\n\r\n-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n\r\n------formdata-undici-056092286248--\r\n',
    ],
  },
  {
    client: 'node-telegram-bot-api 2.1.0',
    capturedUrl: 'https://bot.example.com/ntba2',
    query: '',
    headers: [
      'connection: keep-alive',
      'content-type: multipart/form-data; boundary=----NodeTelegramBotApi64d805d405056d0fc868e4455c039403',
      'accept: */*',
      'accept-language: *',
      'sec-fetch-mode: cors',
      'user-agent: node',
      'accept-encoding: gzip, deflate',
      'transfer-encoding: chunked',
    ],
    contents: [
      '------NodeTelegramBotApi64d805d405056d0fc868e4455c039403\r\nContent-Disposition: form-data; name="url"\r\n\r\nhttps://bot.example.com/ntba2\r\n',
      '------NodeTelegramBotApi64d805d405056d0fc868e4455c039403\r\nContent-Disposition: form-data; name="allowed_updates"\r\n\r\n["message"]\r\n',
      '------NodeTelegramBotApi64d805d405056d0fc868e4455c039403\r\nContent-Disposition: form-data; name="max_connections"\r\n\r\n5\r\n',
      '------NodeTelegramBotApi64d805d405056d0fc868e4455c039403\r\nContent-Disposition: form-data; name="drop_pending_updates"\r\n\r\ntrue\r\n',
      '------NodeTelegramBotApi64d805d405056d0fc868e4455c039403\r\nContent-Disposition: form-data; name="certificate"; filename="certificate"\r\nContent-Type: application/octet-stream\r\n\r\n',
      '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n',
      '\r\n',
      '------NodeTelegramBotApi64d805d405056d0fc868e4455c039403--\r\n',
    ],
  },
  {
    client: 'aiogram 3.30.0',
    capturedUrl: 'https://bot.example.com/aiogram',
    query: '',
    headers: [
      'User-Agent: Python/3.13 aiohttp/3.11.16 aiogram/3.30.0',
      'Accept: */*',
      'Accept-Encoding: gzip, deflate',
      'Content-Type: multipart/form-data; boundary=29b9f846161d49e08e462e4ff579685e',
      'Transfer-Encoding: chunked',
    ],
    contents: [
      '--29b9f846161d49e08e462e4ff579685e\r\n',
      'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="url"\r\n\r\n',
      'https://bot.example.com/aiogram',
      '\r\n',
      '--29b9f846161d49e08e462e4ff579685e\r\n',
      'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="certificate"\r\n\r\n',
      'attach://T2xFRyzsHxkNRg',
      '\r\n',
      '--29b9f846161d49e08e462e4ff579685e\r\n',
      'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="max_connections"\r\n\r\n',
      '5',
      '\r\n',
      '--29b9f846161d49e08e462e4ff579685e\r\n',
      'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="allowed_updates"\r\n\r\n',
      '["message"]',
      '\r\n',
      '--29b9f846161d49e08e462e4ff579685e\r\n',
      'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="drop_pending_updates"\r\n\r\n',
      'true',
      '\r\n',
      '--29b9f846161d49e08e462e4ff579685e\r\n',
      'Content-Type: application/octet-stream\r\nContent-Disposition: form-data; name="T2xFRyzsHxkNRg"; filename="c.pem"\r\n\r\n',
      '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n',
      '\r\n',
      '--29b9f846161d49e08e462e4ff579685e--\r\n',
    ],
  },
  {
    client: 'python-telegram-bot 22.8',
    capturedUrl: 'https://bot.example.com/ptb',
    query: '',
    headers: [
      'Accept: */*',
      'Accept-Encoding: gzip, deflate',
      'Connection: keep-alive',
      'User-Agent: python-telegram-bot v22.8 (https://python-telegram-bot.org)',
      'Content-Type: multipart/form-data; boundary=af987e6d3b55fbdd3dc3492b76371f26',
    ],
    contents: [
      '--af987e6d3b55fbdd3dc3492b76371f26\r\nContent-Disposition: form-data; name="url"\r\n\r\nhttps://bot.example.com/ptb\r\n--af987e6d3b55fbdd3dc3492b76371f26\r\nContent-Disposition: form-data; name="max_connections"\r\n\r\n5\r\n--af987e6d3b55fbdd3dc3492b76371f26\r\nContent-Disposition: form-data; name="allowed_updates"\r\n\r\n["message"]\r\n--af987e6d3b55fbdd3dc3492b76371f26\r\nContent-Disposition: form-data; name="drop_pending_updates"\r\n\r\ntrue\r\n--af987e6d3b55fbdd3dc3492b76371f26\r\nContent-Disposition: form-data; name="certificate"; filename="c.pem"\r\nContent-Type: application/pem-certificate-chain\r\n\r\n-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n\r\n--af987e6d3b55fbdd3dc3492b76371f26--\r\n',
    ],
  },
]
