/**
 * What to do about a bot in trouble: one sentence for each cause, and the command that shows more. The check of an endpoint gives
 * the same advice. Pure.
 */
import type { Health } from '../kit/states.ts'
import { sickStatuses } from './attempts/classify-response.ts'
import { webhookResponseTimeoutMs } from './limits.ts'

/** What an advice is about, where it is known. */
interface Place {
  readonly host: string
  readonly port: string
}

interface Advice {
  /** `{host}` and `{port}` are filled in. */
  readonly text: string
  /** What shows more: a check of the endpoint, what it has answered, or the state of the bot. */
  readonly shownBy: 'webhook check' | 'attempts' | 'bots show'
}

const check = { shownBy: 'webhook check' } as const
const attempts = { shownBy: 'attempts' } as const
const bot = { shownBy: 'bots show' } as const

const advices = {
  name: {
    ...check,
    text: 'Check that {host} is in DNS and that the name servers of this machine respond.',
  },
  addresses: {
    ...check,
    text: 'Point {host} to a public address, or start the server with an --allow-cidr for its address.',
  },
  proxy: { ...check, text: 'Check the proxy that --proxy names.' },
  connection: {
    ...check,
    text: 'Check that the endpoint listens on {port}, and that no firewall keeps this server from it.',
  },
  closed: {
    ...check,
    text: 'Look into the log of the endpoint: it has closed the connection without a response.',
  },
  late: {
    ...check,
    text: `Have the endpoint respond within ${webhookResponseTimeoutMs / 1_000} seconds, before it does what takes long.`,
  },
  certificate_expired: {
    ...check,
    text: 'Renew the certificate of the endpoint, and have its server load the new one.',
  },
  certificate_untrusted: {
    ...check,
    text: 'Use a certificate of a public authority together with its intermediate certificates, or upload your own with setWebhook.',
  },
  certificate_other_host: { ...check, text: 'Use a certificate that names {host}.' },
  client_certificate: {
    ...check,
    text: 'Let the endpoint accept connections without a client certificate.',
  },
  tls: {
    ...check,
    text: 'Check the TLS settings of the endpoint: TLS 1.2 or 1.3, with a certificate for servers and without a client certificate.',
  },
  no_http: { ...check, text: 'Check that the endpoint speaks HTTP/1.1.' },
  redirect: {
    ...check,
    text: 'Set the webhook to the address to which the endpoint redirects: deliveries do not follow redirects.',
  },
  refused: {
    ...attempts,
    text: 'Have the endpoint expect the secret_token of setWebhook, and look whether something before it refuses this server.',
  },
  no_path: { ...attempts, text: 'Check the path of the URL: the endpoint takes no POST there.' },
  gone: {
    ...attempts,
    text: 'Bring the endpoint back, or delete the webhook: after 410 for long, the server removes it.',
  },
  overload: {
    ...attempts,
    text: 'Check that the program of the endpoint runs behind its proxy, and that it is not overloaded.',
  },
  invalid: { ...attempts, text: 'Look at what the endpoint answers: it refuses these updates.' },
  program: { ...attempts, text: 'Look into the log of the endpoint: its program has failed.' },
  unknown: { ...attempts, text: 'Look at how the last attempts have ended.' },
  conflict: { ...bot, text: 'Stop all programs but one that use the token of the bot.' },
  unconfirmed: {
    ...bot,
    text: 'Have the program of the bot ask with the offset after the last update that it has handled.',
  },
  unpolled: {
    ...bot,
    text: 'Start the program of the bot, and look whether it can reach this server.',
  },
  behind: {
    ...bot,
    text: 'See whether the program of the bot is slow, or whether a limit slows its deliveries.',
  },
} as const satisfies Readonly<Record<string, Advice>>

export type TroubleCause = keyof typeof advices

/** Where the URL of the webhook is not known. */
const unnamed: Place = { host: 'its host', port: 'its port' }

/** Returns what to do about a cause, in one sentence. */
export function troubleAdvice(cause: TroubleCause, { host, port }: Place = unnamed): string {
  return advices[cause].text.replace('{host}', host).replace('{port}', port)
}

const causesByStatus: ReadonlyMap<number, TroubleCause> = new Map([
  [401, 'refused'],
  [403, 'refused'],
  [404, 'no_path'],
  [405, 'no_path'],
  [410, 'gone'],
])

/** Returns the cause of a status that is no success. */
export function causeOfStatus(status: number): TroubleCause {
  const known = causesByStatus.get(status)
  if (known !== undefined) return known
  if (sickStatuses.has(status)) return 'overload'
  if (status >= 500) return 'program'
  if (status >= 400) return 'invalid'
  return status >= 300 ? 'redirect' : 'no_http'
}

/** By how the sentence about a bot begins, which names the cause first (attempts/health.ts). The first that fits counts. */
const causesByText: readonly (readonly [begins: RegExp, cause: TroubleCause])[] = [
  [/^Proxy:/, 'proxy'],
  [/^Failed to resolve host/, 'name'],
  [/^IP address \S+ is reserved/, 'addresses'],
  [/^(?:Read timeout expired|endpoint does not respond)/, 'late'],
  [/^TLS: certificate has expired/, 'certificate_expired'],
  [/^TLS: certificate (?:is self-signed|chain|cannot)/, 'certificate_untrusted'],
  [/^TLS: certificate is for another/, 'certificate_other_host'],
  [/^TLS:/, 'tls'],
  [/^(?:Webhook connection closed|Connection (?:reset|closed|aborted)|Response cut)/, 'closed'],
  [/^(?:Connection |No route|Network is)/, 'connection'],
  [/^endpoint answer(?:s|ed) wrongly/, 'no_http'],
  [/^two clients poll/, 'conflict'],
  [/^polls confirm nothing/, 'unconfirmed'],
  [/^(?:no poll|last polled|updates expire before)/, 'unpolled'],
  [/^updates are .*late/, 'behind'],
]

const troubled: ReadonlySet<string | null> = new Set<Health>([
  'failing',
  'degraded',
  'unpolled',
  'behind',
])

/**
 * Returns the cause of the trouble of a bot; undefined for a bot without any.
 *
 * @param reason - the sentence of its health; `endpoint answers 302 Found; 3 failures in 12 s` for example
 */
export function troubleCauseOf(health: string | null, reason: string): TroubleCause | undefined {
  const cause = causeOfText(reason)
  // A conflict has no health of its own in its first minute.
  if (!troubled.has(health) && cause !== 'conflict') return undefined
  return cause ?? 'unknown'
}

function causeOfText(reason: string): TroubleCause | undefined {
  const [, status] = /^endpoint answer(?:s|ed) (\d{3})\b/.exec(reason) ?? []
  if (status !== undefined) return causeOfStatus(Number(status))
  return causesByText.find(([begins]) => begins.test(reason))?.[1]
}

/**
 * Returns the command that shows more of a cause.
 *
 * @param queue - the id of the bot, and `--test` for its /test/ queue
 */
export function troubleCommand(cause: TroubleCause, queue: string): string {
  const { shownBy } = advices[cause]
  const options = shownBy === 'attempts' ? ' --bodies' : ''
  return `postbote ${shownBy} ${queue}${options}`
}
