/**
 * Calls the private API with the session of this browser. The admin key is used once, to log in; it is kept nowhere.
 */

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
  /** Called with each outcome: whether the server responds. */
  onReached(isReached: boolean): void
}

/** The server sees by this header that the request comes from its own page. */
const ownHeader = { 'postbote-dashboard': '1' }

export class ApiClient {
  readonly #options: ApiClientOptions

  constructor(options: ApiClientOptions) {
    this.#options = options
  }

  /** Begins a session. Rejects with the code UNAUTHORIZED if the key is wrong. */
  async login(key: string): Promise<void> {
    const headers = { ...ownHeader, authorization: `Bearer ${key}` }
    await this.#send('/v1/session', { method: 'POST', headers })
  }

  async logout(): Promise<void> {
    await this.delete('/v1/session')
  }

  /** @returns the response as the shape that the caller knows from docs/api.md */
  async get<Shape>(path: string): Promise<Shape> {
    return jsonOf(await this.#send(path, { headers: ownHeader }))
  }

  async text(path: string): Promise<string> {
    const response = await this.#send(path, { headers: ownHeader })
    return response.text()
  }

  async post<Shape>(path: string, body?: string): Promise<Shape> {
    const init: RequestInit = { method: 'POST', headers: ownHeader }
    return jsonOf(await this.#send(path, body === undefined ? init : { ...init, body }))
  }

  async delete<Shape>(path: string): Promise<Shape> {
    return jsonOf(await this.#send(path, { method: 'DELETE', headers: ownHeader }))
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    let response: Response
    try {
      response = await fetch(path, { ...init, credentials: 'same-origin', cache: 'no-store' })
    } catch {
      this.#options.onReached(false)
      throw new ApiError(0, 'UNREACHABLE', 'The server does not respond.')
    }
    this.#options.onReached(true)
    if (response.ok) return response
    const error = await errorOf(response)
    if (error.status === 401) this.#options.onLoggedOut()
    throw error
  }
}

async function jsonOf<Shape>(response: Response): Promise<Shape> {
  const shape: Shape = await response.json()
  return shape
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text()
  try {
    const body: { readonly error: { readonly code: string; readonly message: string } } =
      JSON.parse(text)
    return new ApiError(response.status, body.error.code, body.error.message)
  } catch {
    return new ApiError(response.status, 'UNKNOWN', `The server responded with ${response.status}.`)
  }
}
