/**
 * Calls the private API with the session of this browser. A key is used once, to log in; it is kept nowhere.
 *
 * The page repeats its calls, so one that gets no response needs no handling: the client reports it as trouble of the
 * server, until the same call succeeds.
 */
import type { BrowserClock } from '../elements/browser-clock.ts'
import { pageCall, type PageCall, type PageInput } from './page-calls.ts'
import type { ResultShape } from './shapes.ts'

/** A response that is an error, or none. */
export class ApiError extends Error {
  /** 0 without a response. */
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
  }
}

export interface ApiClientOptions {
  /** The session has ended, or there was none. */
  onLoggedOut(): void
  /** Called with a sentence when calls get no response, or one that blames the server; undefined: all calls succeed again. */
  onTrouble(trouble: string | undefined): void
  readonly clock: BrowserClock
  /** As that of the browser. */
  readonly fetch: (path: string, request: ApiRequest) => Promise<ApiResponse>
}

/** The options of `fetch` that a call needs. */
export interface ApiRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
}

/** The part of a response that the page uses. */
export interface ApiResponse {
  readonly ok: boolean
  readonly status: number
  text(): Promise<string>
}

/** A call as it is sent, and how its end is taken. */
interface Call extends Omit<ApiRequest, 'signal'> {
  /** `callMsMax` by default. */
  readonly msMax?: number | undefined
  readonly isAside?: boolean | undefined
}

/** What a call sends beside its input. */
export interface SentCall {
  /** In place of the body of the input, as it is. */
  readonly raw?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Its failure is told where it was made, and is no trouble of the view: nothing makes the same call again. */
  readonly isAside?: boolean
}

/** Chosen: longer than the server waits for a worker that starts. A call without an end would stop the page. */
const callMsMax = 20_000
/** A check of an endpoint, or its verification, takes as long as a look-up, a connection and a response may take together. */
const endpointMsMax = 100_000
const callsMsMax: { readonly [Id in PageCall]?: number } = {
  changeWebhook: endpointMsMax,
  checkWebhook: endpointMsMax,
  setWebhook: endpointMsMax,
}

/** The server sees by this header that the request comes from its own page. */
const ownHeader = { 'postbote-dashboard': '1' }

export class ApiClient {
  readonly #options: ApiClientOptions
  /** By the path of the call. */
  readonly #troubles = new Map<string, string>()
  /** Counts the views: what a call of an earlier view meets is of no interest. */
  #view = 0

  constructor(options: ApiClientOptions) {
    this.#options = options
  }

  /** Begins a session. Rejects with the code UNAUTHORIZED if the key is wrong. */
  async login(key: string): Promise<void> {
    const headers = { ...ownHeader, authorization: `Bearer ${key}` }
    const { method, target } = pageCall('beginSession', {})
    await this.#send(target, { method, headers })
  }

  async logout(): Promise<void> {
    await this.call('endSession', {})
  }

  /**
   * Makes a call.
   *
   * @param id - that of the call in the table of operations
   * @param input - its parameters, query and body
   * @param sent - what differs from that: a body that is sent as it is, and headers
   * @returns the result
   */
  async call<Id extends PageCall>(
    id: Id,
    input: PageInput<Id>,
    sent?: SentCall,
  ): Promise<ResultShape<Id>> {
    const { value } = await this.read(id, input, sent)
    return value
  }

  /** Makes a call, as `call` does, and returns the text of the response, too. */
  async read<Id extends PageCall>(
    id: Id,
    input: PageInput<Id>,
    { raw, headers, isAside }: SentCall = {},
  ): Promise<{ readonly text: string; readonly value: ResultShape<Id> }> {
    const { method, target } = pageCall(id, input)
    const body = raw ?? (input.body === undefined ? undefined : JSON.stringify(input.body))
    const call = { method, headers: { ...headers, ...ownHeader }, msMax: callsMsMax[id], isAside }
    const response = await this.#send(target, body === undefined ? call : { ...call, body })
    const text = await response.text()
    return { text, value: JSON.parse(text) }
  }

  /** Returns the counters of the server, in the text format of Prometheus. */
  async metrics(): Promise<string> {
    const { method, target } = pageCall('getMetrics', {})
    const response = await this.#send(target, { method, headers: ownHeader })
    return response.text()
  }

  /** Forgets the troubles of the calls so far, because another view makes other calls. */
  beginView(): void {
    this.#view += 1
    this.#troubles.clear()
    this.#options.onTrouble(undefined)
  }

  async #send(
    path: string,
    { msMax = callMsMax, isAside = false, ...request }: Call,
  ): Promise<ApiResponse> {
    const view = isAside ? undefined : this.#view
    try {
      const response = await this.#fetch(path, request, msMax)
      if (!response.ok) throw await errorOf(response)
      this.#note({ view, path, trouble: undefined })
      return response
    } catch (error) {
      const shown = error instanceof ApiError ? error : unreachable()
      this.#note({ view, path, trouble: isTrouble(shown) ? troubleText(shown) : undefined })
      if (isUnauthorized(shown)) this.#options.onLoggedOut()
      throw shown
    }
  }

  async #fetch(
    path: string,
    request: Omit<ApiRequest, 'signal'>,
    msMax: number,
  ): Promise<ApiResponse> {
    const late = new AbortController()
    const cancel = this.#options.clock.after(msMax, () => late.abort())
    const { signal } = late
    try {
      return await this.#options.fetch(path, { ...request, signal })
    } finally {
      cancel()
    }
  }

  #note({ view, path, trouble }: Noted): void {
    if (view !== this.#view) return
    const [call = ''] = path.split('?', 1)
    if (trouble === undefined) this.#troubles.delete(call)
    else this.#troubles.set(call, trouble)
    const [first] = this.#troubles.values()
    this.#options.onTrouble(first)
  }
}

interface Noted {
  /** Undefined if the call is of none. */
  readonly view: number | undefined
  readonly path: string
  readonly trouble: string | undefined
}

/**
 * Returns whether the server is to blame, so that the same call may succeed later.
 *
 * @param error - what a call ended with
 */
export function isTrouble(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500)
}

/** Returns whether a call ended because the key is wrong, or the session over. */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401
}

/** Takes the failure of a call that the server does not have, because it is older than the page. */
export function ifOlder(error: unknown): undefined {
  if (!(error instanceof ApiError && error.status === 404)) throw error
}

/** The codes of calls whose worker is lost or starts. Their messages are written for one call of a bot. */
const lostCodes: ReadonlySet<string> = new Set([
  'STORE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
  'UNAVAILABLE',
])

/** Returns a sentence. */
function troubleText({ code, message }: ApiError): string {
  if (lostCodes.has(code)) return 'A part of the server does not respond at the moment.'
  return message.endsWith('.') ? message : `${message}.`
}

function unreachable(): ApiError {
  return new ApiError(0, 'UNREACHABLE', 'The server does not respond.')
}

async function errorOf(response: ApiResponse): Promise<ApiError> {
  const text = await response.text()
  try {
    const body: { readonly error: { readonly code: string; readonly message: string } } =
      JSON.parse(text)
    return new ApiError(response.status, body.error.code, body.error.message)
  } catch {
    return new ApiError(response.status, 'UNKNOWN', `The server responded with ${response.status}.`)
  }
}
