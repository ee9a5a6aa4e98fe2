/**
 * Reads the responses on one connection strictly by HTTP/1.1. What a lenient client would accept (a missing length,
 * bytes after the last response, a header without a colon) is an error.
 */

export interface WireAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

interface Head {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly isHead: boolean
}

const statusLine = /^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]+$/
const headerLine = /^([!#$%&'*+.^_`|~\w-]+): ([\x20-\x7e]*)$/

export class AnswerReader {
  readonly answers: WireAnswer[] = []
  /** Number of times that the server asked for a body. */
  continued = 0
  /** Whether the nth response is one to HEAD. */
  readonly #isHead: (nth: number) => boolean
  #received: Buffer = Buffer.alloc(0)
  #head: Head | undefined
  #chunks: string[] = []
  #isOver = false

  constructor(isHead: (nth: number) => boolean) {
    this.#isHead = isHead
  }

  /** Throws if these bytes are not a response. */
  take(bytes: Buffer): void {
    if (this.#isOver) return
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
    while (this.#takeOne());
  }

  /** Throws if the connection ended within a response. */
  end(): void {
    if (this.#received.length > 0 || this.#head !== undefined) {
      throw new Error(`the connection ended within an answer: ${this.#received.toString()}`)
    }
  }

  #takeOne(): boolean {
    this.#head ??= this.#takeHead()
    if (this.#head === undefined) return false
    const body = this.#takeBody(this.#head)
    if (body === undefined) return false
    const { status, headers } = this.#head
    this.#head = undefined
    this.answers.push({ status, headers, body })
    return true
  }

  #takeHead(): Head | undefined {
    const end = this.#received.indexOf('\r\n\r\n')
    if (end === -1) return undefined
    const [first = '', ...lines] = this.#received.toString('latin1', 0, end).split('\r\n')
    this.#received = this.#received.subarray(end + 4)
    const status = Number(statusLine.exec(first)?.[1])
    if (Number.isNaN(status)) throw new Error(`no status line: ${JSON.stringify(first)}`)
    if (status === 100) {
      this.continued += 1
      return this.#takeHead()
    }
    const headers = new Map<string, string>()
    for (const line of lines) {
      const [, name, value = ''] = headerLine.exec(line) ?? []
      if (name === undefined) throw new Error(`no header: ${JSON.stringify(line)}`)
      const key = name.toLowerCase()
      if (headers.has(key)) throw new Error(`a header came twice: ${key}`)
      headers.set(key, value)
    }
    return { status, headers, isHead: this.#isHead(this.answers.length) }
  }

  #takeBody({ headers, isHead }: Head): string | undefined {
    const length = headers.get('content-length')
    const isChunked = headers.get('transfer-encoding') === 'chunked'
    if (isChunked === (length !== undefined)) throw new Error('expected one way to tell the length')
    if (isHead) {
      // The refusal of later bytes may replace this response, and it has a body. Nothing is read after the last response.
      this.#isOver = headers.get('connection') === 'close'
      if (this.#isOver) this.#received = Buffer.alloc(0)
      return ''
    }
    if (isChunked) return this.#takeChunks()
    const bytes = Number(length)
    if (!/^\d+$/.test(length ?? '')) throw new Error(`no length: ${length}`)
    if (this.#received.length < bytes) return undefined
    const body = this.#received.toString('utf8', 0, bytes)
    this.#received = this.#received.subarray(bytes)
    return body
  }

  #takeChunks(): string | undefined {
    for (;;) {
      const end = this.#received.indexOf('\r\n')
      if (end === -1) return undefined
      const size = this.#received.toString('latin1', 0, end)
      if (!/^[\da-f]+$/i.test(size)) throw new Error(`no chunk size: ${JSON.stringify(size)}`)
      const bytes = Number.parseInt(size, 16)
      if (this.#received.length < end + 2 + bytes + 2) return undefined
      if (this.#received.toString('latin1', end + 2 + bytes, end + 4 + bytes) !== '\r\n') {
        throw new Error('a chunk does not end where it should')
      }
      this.#chunks.push(this.#received.toString('utf8', end + 2, end + 2 + bytes))
      this.#received = this.#received.subarray(end + 4 + bytes)
      if (bytes === 0) return this.#chunks.splice(0).join('')
    }
  }
}
