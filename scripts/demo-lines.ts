/** What `./scripts/start` prints when the server is ready: shell commands with the addresses that are really bound. */
import { resolve } from 'node:path'
import type { ListenAddress } from '../src/http/listener.ts'

export interface Demo {
  readonly token: string
  readonly bot: ListenAddress
  readonly admin: ListenAddress
  readonly keyFile: string
}

/** As complete as bot frameworks expect it. */
const update = {
  message: {
    message_id: 1,
    date: 1_700_000_000,
    chat: { id: 1, type: 'private', first_name: 'Ada' },
    from: { id: 1, is_bot: false, first_name: 'Ada' },
    text: 'hello',
  },
}

export function demoLines({ token, bot, admin, keyFile }: Demo): string {
  const [botId] = token.split(':')
  const key = `"Authorization: Bearer $(cat ${quoted(keyFile)})"`
  const body = quoted(JSON.stringify(update))
  return `
The demo bot has the token ${token}

Push an update to it:
  curl -H ${key} -d ${body} ${target(admin, `/v1/bots/${botId}/updates`)}

Poll for it:
  curl ${target(bot, `/bot${token}/getUpdates?timeout=10`)}

`
}

/** The arguments of curl that name a resource at a listener. */
function target(address: ListenAddress, path: string): string {
  if ('path' in address) {
    return `--unix-socket ${quoted(resolve(address.path))} ${quoted(`http://localhost${path}`)}`
  }
  return quoted(`http://${reachable(address.host)}:${address.port}${path}`)
}

/** The addresses that mean all addresses of a machine are replaced by loopback addresses, to which curl can connect. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

/** Quotes the text as one word for a shell. */
function quoted(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
